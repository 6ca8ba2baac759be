"""python -m peerlearn: the command, also where it is not on the path."""

from peerlearn.cli import main

main(prog_name="peerlearn")
