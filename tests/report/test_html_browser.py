"""The page as a real browser lays it out: cells there, nothing overflows, no script, no fetch."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from earshot.listeners.address import Address
from earshot.report import Format, render
from earshot.validation.result import Cause, Report
from earshot.validation.terms import Stage
from tests.report import samples

pytestmark = [pytest.mark.e2e, pytest.mark.requires("chromium")]

CSP = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
OPTIONS = """
--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync
--disable-background-networking --disable-component-update
"""
MEASURE = """
<script>
const faults = [];
addEventListener("error", (event) => faults.push(String(event.message || event.type)), true);
addEventListener("load", () => {
  const all = [...document.body.querySelectorAll("*")];
  const wide = document.documentElement.clientWidth;
  const scrolls = (item) => item.closest(".scroll, figure");
  const outside = all.filter((item) => {
    const box = item.getBoundingClientRect();
    return box.width > 0 && !scrolls(item) && box.right > wide + 1;
  });
  const svg = document.querySelector("#topology");
  const cut = [...document.querySelectorAll("#topology g")].filter((group) => {
    const frame = group.querySelector("rect").getBBox();
    return [...group.querySelectorAll("text")].some((text) => {
      const box = text.getBBox();
      return box.x + box.width > frame.x + frame.width
        || box.y + box.height > frame.y + frame.height;
    });
  });
  const seen = (item) => {
    const box = item.getBoundingClientRect();
    return box.width > 20 && box.height > 15;
  };
  const result = {
    faults,
    pageOverflows: document.documentElement.scrollWidth > wide,
    outside: outside.map((item) => item.outerHTML.slice(0, 120)),
    cutLabels: cut.map((item) => item.textContent.trim()),
    tiles: Object.fromEntries([...document.querySelectorAll("[data-cell]")].filter(seen).map(
      (item) => [item.dataset.cell, item.dataset.verdict])),
    picture: svg ? svg.getBoundingClientRect().width : 0,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name),
    background: getComputedStyle(document.body).backgroundColor,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
  const holder = document.createElement("pre");
  holder.id = "measured";
  holder.textContent = JSON.stringify(result);
  document.body.append(holder);
});
</script>
"""


def browse(report: Report, folder: Path, width: int = 1100, dark: bool = False) -> dict[str, Any]:
    """The layout of the page of ``report`` in a browser window of ``width`` pixels."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    assert browser is not None
    page, replacement_count = CSP.subn("", render(report, Format.HTML))
    assert replacement_count == 1  # the page forbids scripts; the measuring one has to get in
    file = folder / "report.html"
    file.write_text(page.replace("</head>", f"{MEASURE}</head>"), encoding="utf-8")
    completed = subprocess.run(
        [
            browser,
            *OPTIONS.split(),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},900",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
        env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
    )
    measured_match = re.search(r'<pre id="measured">(.*?)</pre>', completed.stdout, re.DOTALL)
    assert measured_match, completed.stderr[-2000:]
    result: dict[str, Any] = json.loads(html.unescape(measured_match[1]))
    return result


def long_names() -> Report:
    """Forty brokers with names as long as names get, one of them failing."""
    name = ".".join(["a-rather-long-label-of-a-broker-somewhere-in-a-large-company"] * 4)
    cells = [
        samples.cell("EXTERNAL", broker).model_copy(
            update={"address": Address(name, 9000 + broker)}
        )
        for broker in range(1, 41)
    ]
    cause = Cause(kind="timeout", observed=name * 2, expected=name, remedy=name)
    cells[7] = samples.failed(cells[7], Stage.TCP, cause)
    return samples.report(cells, cluster=name)


@pytest.mark.parametrize("name", ["all_pass", "dead_broker", "executor_fails", "hostile"])
def test_the_page_shows_every_cell_and_nothing_overflows(name: str, tmp_path: Path) -> None:
    report = samples.ALL[name]()
    page = browse(report, tmp_path)
    assert page["tiles"] == {
        f"{cell.vantage}/{cell.listener}/{cell.broker}": str(cell.verdict) for cell in report.cells
    }
    assert page["faults"] == []
    assert page["requests"] == []
    assert not page["pageOverflows"] and page["outside"] == []
    assert page["cutLabels"] == []
    assert page["picture"] > 500


@pytest.mark.parametrize("width", [500, 1100])
def test_long_names_wrap_in_narrow_and_wide_windows(width: int, tmp_path: Path) -> None:
    page = browse(long_names(), tmp_path, width)
    assert len(page["tiles"]) == 40
    assert not page["pageOverflows"] and page["outside"] == []
    assert page["cutLabels"] == []


def test_the_page_turns_dark_with_the_reader(tmp_path: Path) -> None:
    (tmp_path / "light").mkdir()
    (tmp_path / "dark").mkdir()
    light = browse(samples.drift(), tmp_path / "light")
    dark = browse(samples.drift(), tmp_path / "dark", dark=True)
    assert (light["dark"], dark["dark"]) == (False, True)
    assert light["background"] == "rgb(251, 251, 249)"
    assert dark["background"] == "rgb(21, 25, 30)"
