"""How long tests wait for anything at all.

The limit only bounds how late a test fails. Nothing is meant to come near it, on a busy machine
neither.
"""

from __future__ import annotations

PATIENCE = 900.0  # seconds
