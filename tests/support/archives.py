"""Files of saved models, and what somebody may have made of them."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from peerlearn.errors import PeerlearnError
from peerlearn.models import archive

any_array = arrays_of.arrays(
    st.one_of(
        arrays_of.floating_dtypes(),
        arrays_of.integer_dtypes(),
        arrays_of.unicode_string_dtypes(max_len=3),
    ),
    arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def arrays_in(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def changed(path, where, about=(), text=None, drop=(), **arrays):
    """A copy of the archive with other arrays, other entries in its text, or another text."""
    held = arrays_in(path)
    entries = {**json.loads(held["about"].item()), **dict(about)}
    held |= {"about": np.array(json.dumps(entries)) if text is None else text, **arrays}
    np.savez(where, **{name: array for name, array in held.items() if name not in drop})
    return where


def tampered(path, data):
    """A copy with up to two arrays and two entries of the text of any kind."""
    held = arrays_in(path)
    text = json.loads(held.pop("about").item())
    arrays = data.draw(st.dictionaries(st.sampled_from(sorted(held)), any_array, max_size=2))
    about = data.draw(st.dictionaries(st.sampled_from(sorted(text)), any_json, max_size=2))
    return changed(path, path.with_name("other.npz"), about, **arrays)


def usable_or_refused(path):
    try:
        saved = archive.load(path)
    except PeerlearnError:
        return
    assert len(saved.predict(np.zeros((2, saved.model.n_features_in_)))) == 2
