"""The terminal summary: what is wrong, where and what to do, on 80 columns, and never steered by a node."""

import io
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from flightline.report import print_summary
from flightline.result import Group, Report, RunInfo
from flightline_node.model import Remedy, Status, Verdict
from tests.unit.report.factory import EVIL, finding, fleet, hostile, row

LINKS = {"html": Path("out/report.html"), "json": Path("out/report.json")}


def printed(report, width=80, links=LINKS, **console):
    stream = io.StringIO()
    print_summary(report, Console(file=stream, width=width, **console), links)
    return stream.getvalue()


def report_of(rows, verdict=Verdict.NO_GO, **rest):
    given = {"fleet": [], "groups": [], "distributions": [], "run": RunInfo("R1", "2026-11-21T03:00:00+00:00", "x")}
    return Report(verdict=verdict, checks=["gpu_count"], rows=rows, **{**given, **rest})


def test_the_banner_comes_first_and_says_the_counts():
    report, _ = fleet(8, 2)
    first = printed(report).splitlines()[0]
    assert first.strip() == "NO-GO  6 of 8 nodes go · 2 no-go · 0 unreachable"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("nodes", [8, 1000])
def test_it_fits_the_width_without_a_terminal_and_without_escapes(width, nodes):
    report, _ = fleet(nodes, nodes // 10 + 1)
    text = printed(report, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines()[1:])


def test_a_group_says_hosts_devices_values_and_remedy():
    where = [(f"gpu-{number:03d}", "GPU 3", 4) for number in range(1, 13)] + [
        (f"gpu-{number}", "GPU 1", 9) for number in range(500, 540, 2)
    ]
    group = Group(
        "ecc", "ECC errors", Status.FAIL, Remedy.RESET_GPU, "Reset the GPU.", "GPU 3: 4 errors", 0, "errors", where
    )
    text = printed(report_of([row("gpu-001", [finding(status="FAIL")], [])], groups=[group]), 120)
    assert "FAIL ecc: ECC errors (32 hosts)" in text
    assert re.search(r"measured +4 to 9, expected 0 errors", text)
    assert "GPU 3 (4 errors) on gpu-[001-012]; GPU 1 (9 errors) on gpu-500, gpu-502" in text
    assert "+13 more hosts" in text
    assert re.search(r"do +RESET_GPU: Reset the GPU\.", text)


def test_failures_come_before_unknown_and_warnings_last():
    report, _ = fleet(1000, 60)
    text = printed(report)
    assert text.index("FAIL ") < text.index("UNREACHABLE reach") < text.index("UNKNOWN dcgm") < text.index("Warnings")
    assert text.index("The fleet as a whole") < text.index("Warnings")
    assert text.rstrip().splitlines()[-1].strip().startswith("NO-GO"), "a long summary ends with the verdict again"


def test_it_ends_with_links_and_commands_to_copy():
    report, _ = fleet(8, 2)
    text = printed(report)
    assert re.search(r"html +out/report\.html", text)
    assert "flightline report 20261121T030000Z" in text
    assert "flightline history gpu-0003" in text


def test_a_path_is_not_broken_over_lines():
    path = Path("/" + "/".join(["very-long-folder"] * 12))
    report, _ = fleet(8, 0)
    assert str(path) in printed(report, links={"html": path})


def test_text_from_nodes_cannot_steer_the_terminal():
    report, _ = hostile()
    text = printed(report, force_terminal=True, color_system="truecolor")
    ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ours)
    assert "\x1b[31mred" not in text
    assert "[red]" in ours, "markup from a node is text"
    assert "'<script>" in ours, "a host in a command to copy is quoted for the shell"


def test_an_ascii_console_gets_ascii():
    report, _ = hostile()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    print_summary(report, Console(file=stream, width=80), LINKS)
    stream.flush()
    text = stream.buffer.getvalue().decode("ascii")
    assert text.splitlines()[0].strip() == "NO-GO  1 of 2 nodes go, 1 no-go, 0 unreachable"
    assert EVIL not in text


def test_go_says_go():
    report, _ = fleet(8, 0)
    text = printed(report)
    assert text.splitlines()[0].strip() == "GO  8 of 8 nodes go · 0 no-go · 0 unreachable"
    assert "FAIL" not in text
    assert "history" not in text


def test_a_no_go_that_no_count_explains_is_explained():
    good = row("a", [], ["gpu_count"])
    about_all = [{**finding(check="uniform", status="FAIL", message="two drivers"), "hosts": ["a"]}]
    assert "about the fleet as a whole" in printed(report_of([good], fleet=about_all))
    assert "FAIL uniform (1 host)" in printed(report_of([good], fleet=about_all))
    assert "no node in this run" in printed(report_of([]))
    silent = row("b", [finding(status="SKIP", message="not collected")], [])
    assert silent.verdict is Verdict.NO_GO
    assert "nothing was judged on: b" in printed(report_of([silent]))


def test_an_unfinished_run_says_so():
    report = report_of([row("a", [], ["gpu_count"])], verdict=Verdict.GO, run=RunInfo("R", "2026-11-21T03:00:00+00:00"))
    assert "did not finish" in printed(report)


def test_hundreds_of_kinds_of_trouble_are_cut_and_counted():
    groups = [
        Group(f"check_{number}", "", Status.FAIL, Remedy.REBOOT, "", "bad", None, "", [("a", "", None)])
        for number in range(90)
    ]
    text = printed(report_of([row("a", [finding(status="FAIL")], [])], groups=groups))
    assert text.count("FAIL check_") == 25
    assert "+65 more kinds of trouble, all in the report" in text


def test_each_host_is_told_once_what_to_do_by_the_remedy_that_makes_the_others_needless():
    def group(check, remedy, *hosts):
        where = [(host, "", 1) for host in hosts]
        return Group(check, check, Status.FAIL, remedy, "", "broken", 0, "", where)

    groups = [
        group("a", Remedy.INVESTIGATE, "gpu-1", "gpu-2", "gpu-9"),
        group("b", Remedy.REBOOT, "gpu-2"),
        group("c", Remedy.REPLACE, "gpu-1"),
    ]
    fleet_finding = {**finding(status="FAIL"), "remedy": "UPDATE_SOFTWARE", "hosts": ["gpu-1", "gpu-7"]}
    text = printed(report_of([row("gpu-1", [finding(status="FAIL")], [])], groups=groups, fleet=[fleet_finding]))
    told = text.split("What to do now\n")[1].split("\n\n")[0]
    assert [line.strip() for line in told.splitlines()] == [
        "REPLACE: gpu-1",
        "REBOOT: gpu-2",
        "UPDATE_SOFTWARE: gpu-7",
        "INVESTIGATE: gpu-9",
    ]
