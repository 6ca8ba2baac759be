"""Pages opened in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess

from tests.support.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--hide-scrollbars",
)


def opened(page, place, *flags):
    """What the browser gives for a page, and what was said on its console."""
    profile = place / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, [
        line for line in done.stderr.splitlines() if re.search(r":CONSOLE[:(]", line)
    ]
