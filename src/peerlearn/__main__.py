"""python -m peerlearn: the command, also where it is not on the path."""

from peerlearn.cli import main

if __name__ == "__main__":
    main(prog_name="peerlearn")
