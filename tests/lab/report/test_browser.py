"""The page of a report in a real browser: it says nothing on the console, shows all its images, and
fits any width.
"""

from __future__ import annotations

import html
import json
import re

import pytest
from PIL import Image

from peerlearn import graphs
from peerlearn.lab.description.specs import Expectation, FigureSpec, Layout, StatisticsSpec
from peerlearn.lab.report.build import make_report
from tests.support.browser import BROWSER, NAMES, opened
from tests.support.lab_rows import graph_of, results_of, row, usual

WIDTHS = (400, 1200)
MEASURE = """
const told = [...document.querySelectorAll("iframe")].map(frame => {
  const page = frame.contentDocument, wide = page.documentElement.clientWidth;
  const outside = [...page.querySelectorAll("body *")].filter(each =>
    !each.parentElement.closest(".scroll, pre") && each.getBoundingClientRect().right > wide + 1);
  return {
    wide, needs: page.documentElement.scrollWidth,
    outside: outside.map(each => each.outerHTML.slice(0, 80)),
    images: [...page.images].map(each => [each.naturalWidth, each.getBoundingClientRect().width]),
    tables: page.querySelectorAll("table").length, text: page.body.innerText.length,
  };
});
document.getElementById("told").textContent = JSON.stringify(told);
"""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        BROWSER is None, reason=f"none of {', '.join(NAMES)} is installed, and a page needs one"
    ),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with everything on it, and names that are long or mean something to a browser."""
    folder = tmp_path_factory.mktemp("report")
    wide = {f"a_rather_long_name_of_a_model_{k} <b>&amp;": 0.1 + k / 50 for k in range(9)}
    rows = usual(
        data=("G50C", "Garageband", "Skills"),
        models={"C-RVFL": 0.06, **wide},
        agents=(5, 20),
        runs=2,
    )
    rows.append(
        row(
            "G50C",
            "C-RVFL",
            status="failed",
            failure="<script>alert(1)</script>",
            traceback="at line\n" * 3 + "x" * 300,
        )
    )
    layout = Layout(
        title="A report <script>alert(1)</script>",
        about=(
            "First.\n\nSecond, with "
            "averylongwordthatdoesnotendandgoesonandonandonandonandonandonandonandonandon."
        ),
        figures=(
            FigureSpec("lines", "lines", "error", "agents", unit="%"),
            FigureSpec("boxes", "boxes", "error", where={"agents": 5}),
            FigureSpec("none", "bars", "mae"),
        ),
        statistics=(StatisticsSpec("error"),),
        expectations=(
            Expectation("error", {"data": "G50C", "model": "C-RVFL"}, "table 1", 0.06, 0.01),
        ),
        missing={"Sylva": "it is nowhere to be had"},
        size="quick",
        text="title = 'x'\n" + "y" * 300,
    )
    networks = [
        graph_of(folder, "ER", graphs.erdos_renyi(n, 0.4, seed=1), agents=n) for n in (5, 10)
    ]
    results_of(folder, rows, layout, ("agents",), graphs=networks)
    return make_report(folder)[-1]


def test_the_console_is_heard(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<script>console.error('something bad')</script>")
    _, said = opened(page, tmp_path, "--dump-dom")
    assert len(said) == 1
    assert "something bad" in said[0]


def test_the_page_opens_without_a_word_on_the_console(report, tmp_path):
    dom, said = opened(report, tmp_path, "--dump-dom")
    assert said == []
    assert dom.count("<section") == 6
    assert "<script" not in dom.lower()


def test_images_are_there_and_nothing_is_too_wide(report, tmp_path):
    frames = "".join(
        (
            f'<iframe width="{width}" height="3000" style="border: 0" '
            f'srcdoc="{html.escape(report.read_text())}"></iframe>'
        )
        for width in WIDTHS
    )
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(
        f'{frames}<pre id="told"></pre><script>onload = () => {{ {MEASURE} }}</script>'
    )
    dom, said = opened(wrapper, tmp_path, "--dump-dom")
    assert said == []
    told = json.loads(html.unescape(re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)[1]))
    for width, page in zip(WIDTHS, told, strict=True):
        assert page["wide"] == width
        assert page["needs"] == width
        assert page["outside"] == []
        assert len(page["images"]) == 4  # lines, boxes, ranks, networks
        assert all(natural > 200 and shown > 200 for natural, shown in page["images"])
        assert page["tables"] >= 6
        assert page["text"] > 2000


@pytest.mark.parametrize(("scheme", "brightest"), [(0, False), (1, True)], ids=["dark", "light"])
def test_the_page_is_more_than_its_background(report, tmp_path, scheme, brightest):
    picture = tmp_path / "page.png"
    colours = f"--blink-settings=preferredColorScheme={scheme}"
    opened(report, tmp_path, colours, "--window-size=1200,2000", f"--screenshot={picture}")
    with Image.open(picture) as image:
        assert image.size == (1200, 2000)
        assert (image.convert("L").getpixel((2, 2)) > 250) == brightest
        colours = image.convert("RGB").getcolors(1 << 24)
    assert len(colours) > 200
    assert max(count for count, _ in colours) < 0.97 * 1200 * 2000
