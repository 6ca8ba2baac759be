"""peerlearn: agents that hold their own data learn one model by talking to their neighbors.

Public names are found in the files of the package and imported when they are first used: see
`peerlearn.public_names`.
"""

from peerlearn.moved import keep_old_paths
from peerlearn.public_names import lazy

__version__ = "0.7.0"

__getattr__, __dir__ = lazy(__name__)
keep_old_paths()
