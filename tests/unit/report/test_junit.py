"""junit.xml: valid XML whatever nodes send, right counts, and never green where the verdict is red."""

import io
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightline.fleet.result import NodeRow, Report, RunInfo
from flightline.report import junit
from flightline_node.model import BLOCKING, Status, Verdict
from tests.unit.report.factory import finding, fleet, hostile, row


def parsed(report):
    stream = io.StringIO()
    junit.write(report, stream)
    return ElementTree.fromstring(stream.getvalue().encode("utf-8"))


def report_of(rows, verdict=Verdict.NO_GO, about_all=()):
    return Report(RunInfo("R1", "2026-11-21T03:00:00+00:00"), verdict, ["a", "b"], rows, list(about_all), [], [])


def outcomes(suite):
    kinds = {"failure", "error", "skipped"}
    return Counter(next((child.tag for child in case if child.tag in kinds), "ok") for case in suite.iter("testcase"))


@pytest.mark.parametrize("make", [lambda: fleet(8, 2), lambda: fleet(80, 30), hostile])
def test_counts_are_those_of_the_cases(make):
    report, _ = make()
    root = parsed(report)
    for suite in [root, *root.iter("testsuite")]:
        seen = outcomes(suite)
        assert int(suite.get("tests")) == sum(seen.values())
        assert int(suite.get("failures")) == seen["failure"]
        assert int(suite.get("errors")) == seen["error"]
        assert int(suite.get("skipped")) == seen["skipped"]


def test_only_what_blocks_is_listed_and_the_rest_is_counted():
    report, _ = fleet(80, 9)
    suites = {suite.get("name"): suite for suite in parsed(report).iter("testsuite")}
    assert set(suites) == {node.host for node in report.rows if node.verdict is Verdict.NO_GO} | {"fleet"}
    for node in report.rows:
        if node.host in suites:
            cases = {case.get("name"): len(case) for case in suites[node.host].iter("testcase")}
            assert cases == {check: 1 for check, status in node.cells.items() if status in BLOCKING}
    told = {item.get("name"): item.get("value") for item in suites["fleet"].iter("property")}
    assert (told["nodes"], told["go"], told["no_go"]) == ("80", "71", "9")
    everything = Counter(status for node in report.rows for status in node.cells.values())
    assert {name: int(told[f"checks_{name.lower()}"]) for name in everything} == dict(everything)


@pytest.mark.parametrize(("bad", "tag"), [(0, None), (2, "failure")])
def test_the_verdict_is_always_a_case(bad, tag):
    case = parsed(fleet(8, bad)[0]).find("testsuite[@name='fleet']/testcase[@name='verdict']")
    assert [child.tag for child in case] == ([tag] if tag else [])


def test_each_blocking_status_has_its_outcome():
    found = [
        finding(check=status.lower(), status=status, message=f"it is {status}", remedy="REBOOT", evidence=["line"])
        for status in ("INFO", "WARN", "FAIL", "UNKNOWN", "UNREACHABLE", "SKIP")
    ]
    suite = parsed(report_of([row("h", found, ["pass"])])).find("testsuite[@name='h']")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == {"fail", "unknown", "unreachable"}
    for name, tag in {"fail": "failure", "unknown": "error", "unreachable": "error"}.items():
        (child,) = cases[name]
        assert (child.tag, child.get("message")) == (tag, f"it is {name.upper()}")
    assert cases["fail"][0].get("type") == "REBOOT"
    assert "| line" in cases["fail"][0].text


def test_an_explained_finding_says_by_what():
    found = [finding(check="a", status="FAIL", message="7 of 8")]
    found[0]["explained_by"] = {"cause": "gpu_off_bus", "check": "gpu_lost", "message": "a GPU is lost"}
    failure = parsed(report_of([row("h", found, [])])).find("testsuite[@name='h']/testcase/failure")
    assert "explained by: gpu_lost: a GPU is lost" in failure.text


def test_the_worst_of_several_findings_decides_and_all_are_told():
    found = [
        finding(check="a", status="WARN", message="warm"),
        finding(check="a", status="FAIL", message="burning", device={"index": 2}),
    ]
    failure = parsed(report_of([row("h", found, [])])).find("testsuite[@name='h']/testcase/failure")
    assert failure.get("message") == "burning"
    assert "GPU 2: burning" in failure.text
    assert "warm" in failure.text


def test_a_no_go_host_without_a_failing_case_is_not_green():
    silent = row("h", [finding(check="a", status="SKIP", message="not collected")], [])
    root = parsed(report_of([silent]))
    assert int(root.get("errors")) == 1
    assert root.find(".//testcase[@name='verdict']/error") is not None


def test_a_no_go_run_of_go_hosts_is_not_green():
    good = row("h", [], ["a"])
    assert int(parsed(report_of([good])).get("failures")) == 1
    assert int(parsed(report_of([])).get("failures")) == 1
    red = {**finding(check="uniform", status="FAIL", message="two drivers"), "hosts": ["h"]}
    root = parsed(report_of([good], about_all=[red]))
    assert (root.get("failures"), root.get("errors")) == ("2", "0"), "the finding and the verdict"
    assert "hosts: h" in root.find(".//testsuite[@name='fleet']//failure").text
    assert parsed(report_of([good], Verdict.GO)).get("failures") == "0"


def test_a_status_of_a_later_version_is_an_error():
    strange = NodeRow("h", Verdict.NO_GO, Status.UNKNOWN, findings=[finding(check="a", status="SUPER")])
    assert int(parsed(report_of([strange])).get("errors")) == 1


@settings(max_examples=150)
@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_gives_valid_xml(text):
    found = [
        finding(
            check=text or "x",
            status=status,
            message=text,
            unit=text,
            measured=text,
            device={"name": text},
            evidence=[text],
        )
        for status in ("FAIL", "WARN")
    ]
    skipped = finding(check="s", status="SKIP", message=text)
    hosts = [row(text, [*found, skipped], [], instance_type=text, instance_id=text)]
    root = parsed(report_of(hosts, about_all=[{**finding(status="FAIL", message=text), "hosts": [text]}]))
    assert int(root.get("failures")) == 3, "the host's, the fleet's and the verdict"
