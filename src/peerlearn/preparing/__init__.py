"""scikit-learn transformers that prepare tables: numbers, categories and gaps become inputs.

All of them are fitted by a few sums over the network. They take tables and shares, as models do.
"""

from peerlearn.public_names import lazy

__getattr__, __dir__ = lazy(__name__)
