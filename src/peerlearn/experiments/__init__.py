"""Experiments: runs leave plain files in a folder, and tables and figures are made from those files alone."""
