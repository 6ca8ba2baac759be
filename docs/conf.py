"""Settings of the documentation site: sphinx-build -W docs site."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402
import links  # noqa: E402
import reference  # noqa: E402

import peerlearn  # noqa: E402

project = "peerlearn"
version = release = peerlearn.__version__
copyright = "the authors of peerlearn, MIT licence"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.json", "gallery/*.py", "gallery/*.zip"]
templates_path = ["_templates"]
default_role = "literal"  # docstrings put names between single backticks
nitpicky = False
suppress_warnings: list[str] = []

# Pages
myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 3  # pages link to headings of each other
highlight_language = "none"  # of blocks that do not name theirs: shell commands, trees of files
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300

# The reference: one page per public name, from the docstrings
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# The gallery: every example but the one for MPI, which needs half a minute to start it, is run
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!05_)\d\d_\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "default_thumb_file": str(HERE / "demo.png"),
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

# How it looks: everything comes from the packages that are installed, nothing from the network
html_theme = "pydata_sphinx_theme"
html_title = f"peerlearn {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: object) -> None:
    """Connect what is done to pages and docstrings before Sphinx reads them."""
    reference.setup(app)
    docstrings.setup(app)
    links.setup(app)
