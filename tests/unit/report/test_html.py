"""report.html: safe, self-contained, small, and complete without its script."""

import base64
import hashlib
import io
import json
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightline.fleet.groups import group
from flightline.fleet.result import Distribution, Report, RunInfo, TroubleGroup
from flightline.report import html, jsonfile, junit
from flightline.report.compact import compact
from flightline.report.html import _asset
from flightline.report.view import view
from flightline_node.model import Remedy, Status, Verdict
from tests.unit.report.factory import CHECKS, EVIL, finding, fleet, groups_of, hostile, row

ALLOWED_ADDRESSES = re.compile(r"#\w+|report\.json|junit\.xml")


class Page(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.text, self.scripts, self._within = [], [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        (self.scripts if self._within in ("script", "style") else self.text).append(data)

    def attributes(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


def rendered(report):
    stream = io.StringIO()
    html.write(report, stream, {"JSON": "report.json", "JUnit": "junit.xml"})
    return stream.getvalue()


def inline(page):
    return json.loads(page.scripts[1])


def test_the_page_asks_for_nothing_from_anywhere():
    page = Page(rendered(fleet(8, 2)[0]))
    names = {tag for tag, _ in page.tags}
    assert not names & {"link", "img", "iframe", "object", "embed", "audio", "video", "form", "base"}
    assert not page.attributes("src")
    assert all(ALLOWED_ADDRESSES.fullmatch(address) for address in page.attributes("href"))
    assert not re.search(r"url\(|@import", page.scripts[0])
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|import\(|sendBeacon|innerHTML|eval\(", page.scripts[2])


def test_the_policy_allows_our_style_and_script_and_nothing_else():
    page = Page(rendered(fleet(8, 2)[0]))
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(page.scripts[at].encode()).digest()).decode() for at in (0, 2)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not page.attributes("style"), "the policy would drop a style attribute"
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_our_own_files_cannot_end_their_element_early():
    assert "</" not in _asset("report.css")
    assert "</script" not in _asset("report.js")
    assert "<!--" not in _asset("report.js")


def test_hostile_text_stays_text():
    source = rendered(hostile()[0])
    page = Page(source)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert "img" not in {tag for tag, _ in page.tags}
    assert source.count("<script>alert(1)") == 0
    assert "<script>alert(1)</script>" in page.words, "it is shown as text"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff\ufffe\uffff]", source)
    hosts = inline(page)["host"]
    assert hosts[0].startswith('<script>alert(1)</script>"><img src=x onerror=alert(2)>[red]')
    assert hosts[1] == "{{ 7*7 }}{% raw %}&amp;</script><!--<script>"


def test_without_its_script_the_page_says_verdict_remedies_and_no_go_nodes():
    report, _ = fleet(40, 6)
    words = Page(rendered(report)).words
    assert "NO-GO" in words
    assert re.search(r"34 of 40 nodes go · 6 no-go", words)
    for node in report.rows:
        for item in node.findings:
            if item["status"] in ("FAIL", "UNKNOWN"):
                assert node.host in words
                assert item["message"] in words
                assert all(line in words for line in item["evidence"])


def test_copyable_hosts_of_a_remedy_are_all_of_them_each_once():
    report, _ = fleet(400, 120)
    page = view(report)
    for action in page.actions:
        wanted = {
            host
            for group in report.groups
            if group.status is not Status.WARN and group.remedy.row.title == action.title
            for host in group.hosts
        }
        assert set(action.hosts) == wanted
    first = page.actions[0]
    assert first.title == "Replace the instance"
    assert ",".join(first.hosts) in "".join(Page(rendered(report)).text)


def test_the_compact_cells_are_the_rows():
    report, _ = fleet(300, 40)
    data = compact(report, [])
    words = {"P": "PASS", "I": "INFO", "W": "WARN", "F": "FAIL", "U": "UNKNOWN", "X": "UNREACHABLE", "S": "SKIP"}
    for number, node in enumerate(report.rows):
        letters = data["patterns"][data["cells"][number]]
        seen = {check: words[letter] for check, letter in zip(data["checks"], letters, strict=True) if letter != "."}
        assert seen == {check: str(status) for check, status in node.cells.items()}
        assert data["go"][number] == ("g" if node.verdict is Verdict.GO else "n")
    assert len(data["patterns"]) < 60, "rows alike are stored once"


def test_a_check_that_only_one_node_has_is_a_column():
    report, _ = fleet(5, 0, checks=3)
    report.rows[2].cells["lost"] = Status.UNKNOWN
    data = compact(report, [])
    assert data["checks"][-1] == "lost"
    assert [data["patterns"][at][-1] for at in data["cells"]] == [".", ".", "U", ".", "."]


def all_bad(nodes, checks):
    rows = [
        row(
            f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal",
            [
                finding(check=check, status="FAIL", remedy="REPLACE", measured=number,
                        message=f"{check} {number * 7919 % 1000} is wrong",
                        expected=0, unit="errors", evidence=["x" * 300] * 8, device={"index": 3})
                for check in checks
            ],
            checks,
            instance_type="p5.48xlarge",
        )
        for number in range(nodes)
    ]  # fmt: skip
    return Report(RunInfo("R", "2026-11-21T03:00:00+00:00"), Verdict.NO_GO, checks, rows, [], groups_of(rows), [])


def test_a_thousand_nodes_stay_small():
    assert len(rendered(fleet(1000, 40)[0]).encode()) < 1_000_000


def test_the_worst_fleet_stays_under_five_megabytes_and_says_what_is_left_out():
    report = all_bad(1000, CHECKS[:60])
    source = rendered(report)
    assert len(source.encode()) < 5_000_000
    left_out = re.search(r"([\d,]+) more no-go nodes have no section here", source)
    sections = len(re.findall(r'<details class="node"', source))
    assert sections > 5
    assert sections + int(left_out.group(1).replace(",", "")) == 1000
    assert "more kinds of trouble" in source
    copyable = re.search(r'<div class="hostlist">.*?</pre>', source, re.S).group()
    assert all(node.host in copyable for node in report.rows), "no host is left out of the list to act on"


def test_histograms_are_drawn_to_scale():
    measure = Distribution("busbw", "GB/s", 111, (0.0, 1, 4, 5, 6, 9, 10.0), [1, 10, 100, 0], [])
    (drawn,) = view(Report(RunInfo("R", ""), Verdict.GO, [], [], [], [], [measure])).measures
    heights = [bar.height for bar in drawn.chart.bars]
    assert heights == [1.5, 6.4, 64.0], "an almost empty bin is still seen, an empty one is not"
    assert drawn.chart.median == 150.0
    assert (drawn.low, drawn.middle, drawn.high) == ("0 GB/s", "5 GB/s", "10 GB/s")


@pytest.mark.parametrize("quantiles", [(), (8.0,) * 7, (float("nan"),) * 7, (0.0, 0, 0, 0, 0, 0, float("inf"))])
def test_measures_that_cannot_be_drawn_are_listed(quantiles):
    measure = Distribution("gpus", "GPUs", 8, quantiles, [8], [])
    page = view(Report(RunInfo("R", ""), Verdict.GO, [], [], [], [], [measure]))
    assert page.measures == []
    assert [name for name, _, _ in page.flat] == ["gpus"]


def test_outliers_are_listed_and_marked():
    report, _ = fleet(50, 2)
    words = Page(rendered(report)).words
    assert "gpu-0003 GPU 5 318 GB/s -8.7" in words
    busbw = next(item for item in view(report).measures if item.outliers)
    assert busbw.chart.marks == [0.0, 9.5]


def test_what_a_fleet_finding_says_is_not_said_twice():
    twice = finding(check="uniform_driver", status="FAIL", remedy="UPDATE_SOFTWARE", message="driver 570, wanted 580")
    rows = [row("a", [twice], ["x"]), row("b", [], ["x"])]
    about_all = [{**twice, "message": "driver differs", "hosts": ["a"]}]
    report = Report(RunInfo("R", ""), Verdict.NO_GO, ["x"], rows, about_all, groups_of(rows), [])
    (action,) = view(report).actions
    assert [item.message for item in action.items] == ["driver 570, wanted 580"]
    about_all[0]["hosts"].append("b")
    report.groups.clear()
    (action,) = view(report).actions
    assert list(action.hosts) == ["a", "b"]


def test_checks_that_one_broken_probe_left_open_are_told_once_per_node():
    broken = [
        finding(
            check=check, status="UNKNOWN", remedy="INVESTIGATE", message="could not be measured: binary", evidence=["x"]
        )
        for check in ("a", "b", "c")
    ]
    other = finding(check="d", status="UNKNOWN", remedy="INVESTIGATE", message="could not be measured: hung")
    report = Report(RunInfo("R", ""), Verdict.NO_GO, [], [row("h", [*broken, other], [])], [], [], [])
    (node,) = view(report).details
    assert [item.check for item in node.loud] == ["a, b, c", "d"]


def test_a_no_go_without_any_finding_does_not_look_like_go():
    words = Page(rendered(Report(RunInfo("R", ""), Verdict.NO_GO, [], [], [], [], []))).words
    assert "no node in this run" in words
    assert "Nothing blocks" not in words
    silent = row("b", [finding(status="SKIP", message="not collected")], [])
    words = Page(rendered(Report(RunInfo("R", ""), Verdict.NO_GO, [], [silent], [], [], []))).words
    assert "without evidence it is no-go" in words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(JSON, JSON, JSON, JSON, st.sampled_from(["FAIL", "WARN", "UNKNOWN", "INFO", "SKIP"]))
def test_values_of_any_type_are_rendered_in_every_format(measured, device, evidence, hosts, status):
    item = finding(check="a", status=status, measured=measured, expected=device, device=device, evidence=evidence)
    item["message"] = evidence
    rows = [row("h", [item], ["a"])]
    where = [("h", "", measured), ("h", "x", device)]
    groups = [TroubleGroup("a", "A", Status(status), Remedy.REBOOT, "", "m", hosts, "u", where)]
    report = Report(RunInfo("R", ""), Verdict.NO_GO, ["a"], rows, [{**item, "hosts": hosts}], groups, [])
    assert len(Page(rendered(report)).tags) > 50
    stream = io.StringIO()
    junit.write(report, stream)
    jsonfile.write(report, [], stream)
    assert EVIL not in stream.getvalue()


@pytest.mark.parametrize("text", ["a" * 5_000_000, "0:" * 2_500_000, "\x1b[31m" * 1_000_000, '<&">' * 1_250_000])
def test_a_message_of_megabytes_costs_no_time_and_no_room(text):
    rows = [row("gpu-1", [finding(check="xid", status="FAIL", message=text, evidence=[text])], ["xid"])]
    report = Report(RunInfo("R", "2026-11-21T03:00:00+00:00"), Verdict.NO_GO, ["xid"], rows, [], group(rows), [])
    started, page, suite = time.process_time(), io.StringIO(), io.StringIO()
    html.write(report, page, {})
    junit.write(report, suite)
    assert time.process_time() - started < 5
    assert len(page.getvalue()) < 200_000 and len(suite.getvalue()) < 200_000


def test_places_are_listed_by_their_trouble_and_found_by_name():
    report, _ = fleet(60, 4)
    assert view(report).by_place == [], "all stand in one"
    for number, node in enumerate(report.rows):
        node.place = "" if number == 59 else f"rack-{number // 10}"
    found = view(report).by_place
    bad = [node.place or "no place known" for node in report.rows if node.verdict is Verdict.NO_GO]
    assert {place: count for place, _, count, _ in found if count} == {place: bad.count(place) for place in bad}
    assert [count for *_, count, _ in found] == sorted((count for *_, count, _ in found), reverse=True)
    assert sum(nodes for _, nodes, _, _ in found) == 60 and all(bool(checks) == bool(bad) for *_, bad, checks in found)
    data = compact(report, [])
    assert [data["places"][at] for at in data["place"]] == [node.place for node in report.rows]
