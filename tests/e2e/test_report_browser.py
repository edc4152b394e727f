"""report.html in a real browser: it draws, it answers, it asks no network, and text from nodes stays text.

Runs Debian's chromium headless; skipped where there is none.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flightline.report import write_all
from tests.unit.report import fleets
from tests.unit.report.factory import fleet, hostile
from tests.unit.report.test_html import Page

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",  # tests run as root in containers, where its sandbox cannot start
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
NO_PAGE = "not an origin"
"""The initiator that Chromium's log gives to requests of the browser itself."""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian package chromium)"),
]


@dataclass
class Visit:
    """What came of opening a page: the tree after its script ran, the console, the addresses it asked for."""

    page: Page
    console: list[str]
    asked: list[str]

    def attribute(self, id_, name):
        return next(attrs.get(name) for _, attrs in self.page.tags if attrs.get("id") == id_)

    @property
    def root(self):
        return next(attrs for tag, attrs in self.page.tags if tag == "html")


def chromium(path, profile, *flags):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def visit(path: Path, tmp_path: Path, *flags: str) -> Visit:
    log = tmp_path / "net.json"
    done = chromium(path, tmp_path / "profile", f"--log-net-log={log}", *flags, "--dump-dom")
    assert done.returncode == 0, done.stderr
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Visit(Page(done.stdout), console, asked_by_page(log))


def asked_by_page(log):
    events = json.loads(log.read_text())["events"]
    starts = [event["params"] for event in events if "initiator" in event.get("params", {})]
    return [start["url"] for start in starts if start["initiator"] != NO_PAGE and not start["url"].startswith("file:")]


def written(tmp_path, made):
    report, records = made
    return write_all(report, records, tmp_path / "report")["html"]


def with_script(path: Path, script: str) -> Path:
    """The page with one more script at its end, and without the policy that would refuse it."""
    source = path.read_text()
    source, dropped = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    assert dropped == 1
    changed = path.with_name("changed.html")
    changed.write_text(source.replace("</body>", f"<script>{script}</script></body>"))
    return changed


def said(seen: Visit) -> Any:
    """What an added script left on the body as JSON."""
    return json.loads(next(attrs["data-said"] for tag, attrs in seen.page.tags if tag == "body"))


def test_the_script_runs_and_draws_every_cell(tmp_path):
    report, records = fleet(8, 2)
    seen = visit(written(tmp_path, (report, records)), tmp_path)
    assert seen.console == []
    assert seen.root.get("data-ready"), "the script did not reach its end"
    assert int(seen.attribute("map-canvas", "data-cells")) == sum(len(node.cells) for node in report.rows)
    assert seen.attribute("node-table", "data-rows") == "8"
    assert "8 of 8 nodes" in seen.page.words


def test_the_page_asks_no_network_and_the_log_would_tell(tmp_path):
    path = written(tmp_path, fleet(8, 2))
    assert visit(path, tmp_path).asked == []
    canary = with_script(path, "new Image().src = 'http://canary.invalid/x.png'")
    assert visit(canary, tmp_path).asked == ["http://canary.invalid/x.png"]


def test_the_policy_stops_a_script_that_is_not_ours(tmp_path):
    path = written(tmp_path, fleet(2, 0))
    smuggled = path.with_name("smuggled.html")
    smuggled.write_text(path.read_text().replace("</body>", "<script>document.title = 'owned'</script></body>"))
    seen = visit(smuggled, tmp_path)
    assert "owned" not in seen.page.words
    assert any("Content Security Policy" in line for line in seen.console)


def test_hostile_text_is_shown_as_text(tmp_path):
    seen = visit(written(tmp_path, hostile()), tmp_path)
    tags = [tag for tag, _ in seen.page.tags]
    assert (tags.count("script"), tags.count("img"), tags.count("style")) == (2, 0, 1)
    assert not [name for _, attrs in seen.page.tags for name in attrs if name.startswith("on")]
    assert seen.console == []
    assert seen.asked == []
    assert seen.root.get("data-ready")
    table = seen.page.words[seen.page.words.index("2 of 2 nodes") :]
    assert '<script>alert(1)</script>"><img src=x onerror=alert(2)>[red]' in table
    assert "{{ 7*7 }}{% raw %}&amp;</script>" in table


def test_a_thousand_nodes_open_fast(tmp_path):
    report, records = fleet(1000, 40)
    path = written(tmp_path, (report, records))
    for _ in range(3):  # the best of three, because other tests share the machine
        seen = visit(path, tmp_path)
        if int(seen.root["data-ready"]) < 2000:
            break
    assert seen.console == []
    assert int(seen.root["data-ready"]) < 2000, "milliseconds until the page had drawn"
    assert seen.attribute("map-canvas", "data-rows") == "60"
    assert "1,000 of 1,000 nodes" in seen.page.words


def test_more_nodes_than_pixels_are_joined_in_columns_and_the_page_says_so(tmp_path):
    seen = visit(written(tmp_path, fleet(4000, 40, 12)), tmp_path)
    assert seen.console == []
    assert int(seen.attribute("map-canvas", "data-columns")) < 2000
    assert re.search(r"a column stands for up to \d+ nodes and shows the worst", seen.page.words)


PROBE = """
const say = {};
const rows = () => [...document.querySelectorAll("#node-table tbody tr")].map((row) => row.cells[0].textContent);
const set = (id, value, type) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(type));
};
const canvas = document.getElementById("map-canvas");
const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, cancelable: true}));
const tip = document.getElementById("tip");
say.first = rows();
document.querySelector("th[data-sort=host] button").click();
say.byHost = rows();
document.querySelector("th[data-sort=host] button").click();
say.byHostDown = rows();
say.sorted = document.querySelector("th[data-sort=host]").getAttribute("aria-sort");
set("node-verdict", "n", "change");
say.bad = rows();
set("node-verdict", "", "change");
key("ArrowDown");
for (let step = 0; step < 400 && !/: FAIL/.test(tip.textContent); step += 1) {
  const before = tip.textContent;
  key("ArrowRight");
  if (tip.textContent === before) { key("ArrowDown"); for (let back = 0; back < 80; back += 1) key("ArrowLeft"); }
}
say.tip = tip.textContent;
say.spoken = document.getElementById("map-cell").textContent;
say.host = tip.querySelector("b").textContent;
key("Enter");
say.hash = location.hash;
const section = document.querySelector(location.hash);
say.section = section.querySelector("summary strong").textContent;
say.open = section.open;
const box = canvas.getBoundingClientRect();
canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.right - 3, clientY: box.bottom - 3}));
say.hover = tip.hidden ? "" : tip.textContent;
canvas.dispatchEvent(new PointerEvent("pointerleave"));
say.gone = tip.hidden;
dispatchEvent(new Event("beforeprint"));
say.folded = document.querySelectorAll("details:not([open])").length;
say.paper = canvas.getBoundingClientRect().right < 700;
dispatchEvent(new Event("afterprint"));
set("node-text", "gpu-0007", "input");
setTimeout(() => { say.filtered = rows(); document.body.dataset.said = JSON.stringify(say); }, 300);
"""


def test_filter_sort_keyboard_pointer_and_print(tmp_path):
    report, records = fleet(8, 2)
    path = with_script(written(tmp_path, (report, records)), PROBE)
    seen = visit(path, tmp_path, "--virtual-time-budget=3000")
    assert seen.console == []
    told = said(seen)
    hosts = [node.host for node in report.rows]
    bad = {node.host for node in report.rows if node.verdict == "no-go"}
    assert set(told["first"][:2]) == bad, "the nodes that matter come first"
    assert told["byHost"] == hosts
    assert told["byHostDown"] == hosts[::-1]
    assert told["sorted"] == "descending"
    assert set(told["bad"]) == bad
    assert told["filtered"] == ["gpu-0007"]
    assert re.match(r"gpu-\d+\w+: FAIL\. .+", told["tip"])
    assert told["spoken"].startswith(f"{told['host']}, ")
    assert told["host"] in bad
    assert told["section"] == told["host"], "Enter leads to the node of the cell"
    assert told["hash"] == f"#n{hosts.index(told['host'])}"
    assert told["open"]
    assert told["hover"].startswith("gpu-0008slurmd: PASS")
    assert told["gone"]
    assert told["folded"] == 0, "paper shows what is folded on the screen"
    assert told["paper"], "the map fits the paper"


PAINT = """
const canvas = document.getElementById("map-canvas");
const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const seen = new Set();
for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join(","));
const page = getComputedStyle(document.body).backgroundColor;
document.body.dataset.said = JSON.stringify({page, colours: [...seen]});
"""


@pytest.mark.parametrize(
    ("flags", "background", "cells"),
    [
        ((), "rgb(255, 255, 255)", {"192,39,27", "211,232,225", "242,182,50"}),
        (("--force-dark-mode",), "rgb(20, 23, 27)", {"240,80,63", "35,67,60", "217,160,32"}),
    ],
    ids=["light", "dark"],
)
def test_light_and_dark_paint_the_map_in_their_colours(tmp_path, flags, background, cells):
    told = said(visit(with_script(written(tmp_path, fleet(8, 2)), PAINT), tmp_path, *flags))
    assert told["page"] == background
    assert cells <= set(told["colours"]), "FAIL, PASS and WARN"


def test_without_javascript_what_is_shown_is_enough(tmp_path):
    """The page's script is cut out and noscript unwrapped: Chromium prints no tree with scripts off."""
    report, records = fleet(8, 2)
    path = written(tmp_path, (report, records))
    source = re.sub(r"<script>.*?</script>", "", path.read_text(), flags=re.S)
    path.write_text(re.sub(r"</?noscript>", "", source))
    shown = said(
        visit(with_script(path, "document.body.dataset.said = JSON.stringify(document.body.innerText)"), tmp_path)
    )
    assert "NO-GO" in shown
    assert "6 of 8 nodes go" in shown
    for group in report.groups:
        assert group.message in shown
        assert all(host in shown for host in group.hosts)
    assert "The map needs JavaScript" in shown
    assert "Copy hosts" not in shown, "controls that cannot work are not shown"
    assert "Filter" not in shown


def test_a_large_fleet_s_map_shows_trouble_first_by_rack_and_name(tmp_path):
    report = fleets.report(500)
    for number, node in enumerate(report.rows):
        node.place = f"rack-{(number * 7) % 11}"
    path = written(tmp_path, (report, lambda: iter(())))
    script = (
        "document.body.dataset.said = JSON.stringify([document.getElementById('map-says').textContent, "
        "[...document.querySelectorAll('#map-labels div')].map((one) => one.className === 'loud'), "
        "[...document.querySelectorAll('#short tbody tr')].length])"
    )
    says, loud, listed = said(visit(with_script(path, script), tmp_path))
    assert "trouble first, then by rack or zone and name" in says
    assert loud == sorted(loud, reverse=True) and any(loud), "the checks in trouble stand on top"
    assert listed == 12
