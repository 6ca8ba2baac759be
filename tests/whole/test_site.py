"""The documentation site: it is built without a warning, lacks nothing, and asks no network."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import peerlearn
from tests.support.browser import BROWSER, opened
from tests.support.pages import ROOT

pytestmark = pytest.mark.processes

FEW = "sphinx_gallery_conf.filename_pattern=/0[12]_"  # test_house runs all examples
WIDTHS = (400, 1280)
LOOKED_AT = (
    "index.html",
    "reference/peerlearn.RVFLClassifier.html",
    "gallery/index.html",
    "deploy.html",
)
MEASURE = """
document.getElementById("found").textContent = JSON.stringify(
  [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, width = page.documentElement.clientWidth;
    const outside = [...page.querySelectorAll("article, article *")].filter(each =>
      !each.parentElement.closest("pre, table") && each.getBoundingClientRect().right > width + 1);
    const broken = [...page.images].filter(each => each.complete && each.naturalWidth == 0);
    return [width, outside.map(each => each.tagName + " " + each.className), broken.length];
  }));
"""


def test_the_site_is_built_without_a_warning_and_lacks_nothing(tmp_path):
    """One test, because it takes a minute to build."""
    site = build(tmp_path)
    for name in peerlearn.__all__:
        page = (site / f"reference/peerlearn.{name}.html").read_text()
        assert f'id="peerlearn.{name}"' in page or f'id="module-peerlearn.{name}"' in page, name
    for example in (ROOT / "examples").glob("*.py"):
        assert (site / f"gallery/{example.stem}.html").exists()
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists()
    assert (site / "_images/sphx_glr_02_train_together_001.png").exists()
    model = (site / "reference/peerlearn.RVFLClassifier.html").read_text()
    assert '<span class="classifier">int or None, default None</span>' in model
    assert "<th>solver</th><td>Gram</td>" in (site / "tutorials/first-steps.html").read_text()
    assert links_that_lead_nowhere(site) == []
    if BROWSER:
        check_widths(site, tmp_path)


def build(folder):
    """Build a copy, because the gallery and the reference are written beside the pages."""
    ignored = shutil.ignore_patterns("gallery", "reference", "__pycache__")
    for part in ("docs", "examples"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-D", FEW, "docs", "site"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def links_that_lead_nowhere(site):
    """Return what pages load from the network, and links to files that are not there."""
    found = []
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]+)"', text)
        found += [f"{page.name} loads {target}" for target in loaded if "//" in target]
        for target in {*loaded, *re.findall(r'<a\b[^>]*?href="([^"#]+)', text)}:
            path = page.parent / html.unescape(re.split(r"[?#]", target)[0])
            if ":" not in target and not path.exists():
                found.append(f"{page.name} -> {target}")
    return found


def check_widths(site, folder):
    """Look at some pages in a browser, narrow and wide: all images are there, nothing is
    cut off.
    """
    frames = "".join(
        f'<iframe width="{width}" height="2000" style="border: 0" src="site/{page}"></iframe>'
        for page in LOOKED_AT
        for width in WIDTHS
    )
    wrapper = folder / "wrapper.html"
    script = f"<script>onload = () => {{ {MEASURE} }}</script>"
    wrapper.write_text(f'{frames}<pre id="found"></pre>{script}')
    dom, _ = opened(wrapper, folder, "--allow-file-access-from-files", "--dump-dom")
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1])
    for (page, width), seen in zip(
        [(page, width) for page in LOOKED_AT for width in WIDTHS], found, strict=True
    ):
        assert seen == [width, [], 0], page
