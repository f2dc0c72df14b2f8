"""The HTML report in a real browser: it sorts, fits wide and narrow windows, follows light and dark, and loads nothing."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessions import fold
from sessions.events import CandidateProposed
from tests.support.sessions.measured_sessions import measured
from tui.facts.report import report_of
from tui.facts.report.reading import ReportReader
from tui.print.report import as_html

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt-get install chromium"),
]
HOSTILE = "<img src='http://127.0.0.1:9/x' onerror='document.title=1'><script>document.title = 'run'</script>"
PROBE = """
<script>
  const names = () => [...document.querySelectorAll("table.data")[0].tBodies[0].rows].map((row) => row.cells[0].textContent);
  const speedup = [...document.querySelectorAll("table.data")[0].querySelectorAll("button")][1];
  const seen = {before: names()};
  speedup.click();
  seen.up = names();
  speedup.click();
  seen.down = names();
  seen.wider = document.documentElement.scrollWidth - window.innerWidth;
  seen.ground = getComputedStyle(document.body).backgroundColor;
  seen.text = getComputedStyle(document.body).color;
  seen.plots = [...document.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 100).length;
  seen.loaded = performance.getEntriesByType("resource").length;
  seen.title = document.title;
  document.documentElement.innerHTML = "<body>" + JSON.stringify(seen) + "</body>";
</script>
"""


@functools.cache
def page() -> str:
    """Return the report of a measured session, with a hostile strategy in a model's reply."""
    events = [
        msgspec.structs.replace(event, strategy=HOSTILE, source=f"{event.source}\n# {HOSTILE}\n")
        if isinstance(event, CandidateProposed)
        else event
        for event in measured()
    ]
    return as_html(ReportReader([report_of(fold(events))], None).document(kernels=True))


def look(folder: Path, width: int, *, dark: bool) -> dict[str, Any]:
    """Open the page in a browser and return what the probe saw."""
    file = folder / "page.html"
    file.write_text(page().replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    done = subprocess.run(
        [
            *(str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"),
            *(f"--window-size={width},900", f"--blink-settings=preferredColorScheme={0 if dark else 1}"),
            *("--virtual-time-budget=2000", "--dump-dom", file.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )  # fmt: skip
    text = done.stdout.partition("<body>")[2].partition("</body>")[0]
    return json.loads(text)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (600, True)])
def test_page_works_in_a_browser(tmp_path: Path, width: int, *, dark: bool) -> None:
    seen = look(tmp_path, width, dark=dark)
    slower_first = ["rms_norm#1/1", "softmax#1/3", "matmul#1/1"]
    assert seen["up"] == slower_first, "1.02x, >= 2.24x, then the unknown one"
    assert seen["before"] == seen["down"] == ["softmax#1/3", "rms_norm#1/1", "matmul#1/1"]
    assert seen["wider"] <= 0, "pixels by which the page is wider than the window"
    assert (seen["ground"], seen["text"]) == (
        ("rgb(17, 20, 23)", "rgb(223, 228, 232)") if dark else ("rgb(255, 255, 255)", "rgb(27, 31, 36)")
    )
    assert seen["plots"] >= 3, "bars and two curves"
    title = report_of(fold(measured())).session
    assert (seen["loaded"], seen["title"]) == (0, title), "nothing of a model ran"
