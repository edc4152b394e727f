"""The terminal summary: what is wrong, where and what to do, on 80 columns, and never steered by a node."""

import io
import re
import time
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from flightline.fleet.groups import group
from flightline.fleet.result import Report, RunInfo
from flightline.report.terminal import print_summary
from flightline_node.model import Verdict
from tests.unit.report import fleets
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
    assert first.strip() == "NO-GO  6 of 8 nodes go, 2 no-go"


@pytest.mark.parametrize("nodes", fleets.FLEETS)
def test_the_banner_s_numbers_add_up(nodes):
    report = fleets.report(nodes)
    go, total, no_go, unreachable, unknown = (
        int(number or 0)
        for number in re.match(
            r" NO-GO  (\d+) of (\d+) nodes go, (\d+) no-go(?: \(of these (\d+) unreachable, (\d+) unknown\))?",
            printed(report),
        ).groups()
    )
    assert go + no_go == total == nodes == len(report.rows)
    faults = [fault for node in fleets.FLEETS[nodes].values() for fault in node]
    assert unreachable == faults.count(fleets.UNREACHABLE)
    assert unknown == sum(faults.count(fault) for fault in ("tool_hung", "kernel_log_denied", fleets.LOST))


@pytest.mark.parametrize("nodes", fleets.FLEETS)
@pytest.mark.parametrize("width", fleets.WIDTHS)
def test_the_summary_is_as_reviewed(nodes, width):
    kept = fleets.name(nodes, width).read_text(encoding="utf-8")
    assert fleets.shown(nodes, width) == kept, "python -m tests.unit.report.fleets writes it anew; read it then"


def test_sixty_four_nodes_with_nine_no_go_fit_on_one_screen():
    rows = [max(-(-cell_len(line) // 80), 1) for line in fleets.shown(64, 80).splitlines()]
    assert sum(rows) <= 50, "lines to copy are wrapped by the terminal"


@pytest.mark.parametrize("nodes", fleets.FLEETS)
def test_every_no_go_node_is_named(nodes):
    text = fleets.shown(nodes, 80).split("What to do")[0]
    listed = {host for word in re.findall(r"gpu-[\[\]0-9-]+", text) for host in expanded(word)}
    assert listed >= {row.host for row in fleets.report(nodes).rows if row.verdict is Verdict.NO_GO}


def expanded(word):
    found = re.fullmatch(r"gpu-\[(\d+)-(\d+)\]", word)
    if not found:
        return [word]
    return [f"gpu-{number:0{len(found[1])}}" for number in range(int(found[1]), int(found[2]) + 1)]


def test_a_hung_node_is_not_shown_with_another_s_dead_gpu():
    dead = finding(
        check="nvlink_links",
        status="UNKNOWN",
        remedy="INVESTIGATE",
        message="nvlink: Unable to determine the device handle for GPU3: 0000:86:00.0",
    )
    hung = finding(
        check="nvlink_links",
        status="UNKNOWN",
        remedy="INVESTIGATE",
        message="could not be measured: nvidia-smi nvlink -s: no answer within 8 s",
    )
    rows = [row("gpu-1", [dead], []), row("gpu-2", [hung], [])]
    assert len(group(rows)) == 2
    text = printed(report_of(rows, groups=group(rows)))
    assert re.search(r"gpu-1 .*device handle", text) and re.search(r"gpu-2 .*no answer within 8 s", text)


def test_a_message_of_megabytes_costs_nothing():
    huge = [
        finding(check="xid", status="FAIL", message="a" * 5_000_000),
        finding(check="sxid", status="FAIL", message="\x1b1:" * 1_700_000),
    ]
    rows = [row(f"gpu-{number}", list(huge), []) for number in range(4)]
    started = time.process_time()
    text = printed(report_of(rows, groups=group(rows)))
    assert time.process_time() - started < 5 and len(text) < 20_000


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("nodes", [8, 1000])
def test_it_fits_the_width_without_a_terminal_and_without_escapes(width, nodes):
    report, _ = fleet(nodes, nodes // 10 + 1)
    text = printed(report, width)
    kept = text.split("To copy")[0]
    assert max(cell_len(line) for line in kept.splitlines()) <= width, "only what is to be copied may be longer"
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines()[1:])


def test_failures_are_told_by_node_and_warnings_last():
    report, _ = fleet(1000, 60)
    text = printed(report)
    assert text.index("No-go nodes") < text.index("What to do") < text.index("Warnings") < text.index("To copy")


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
    assert text.splitlines()[0].strip() == "NO-GO  1 of 2 nodes go, 1 no-go"
    assert EVIL not in text


def test_go_says_go():
    report, _ = fleet(8, 0)
    text = printed(report)
    assert text.splitlines()[0].strip() == "GO  8 of 8 nodes go, 0 no-go"
    assert "FAIL" not in text
    assert "history" not in text


def test_a_no_go_that_no_count_explains_is_explained():
    good = row("a", [], ["gpu_count"])
    about_all = [{**finding(check="uniform", status="FAIL", message="two drivers"), "hosts": ["a"]}]
    assert "about the fleet as a whole" in printed(report_of([good], fleet=about_all))
    assert "FAIL uniform NONE" in printed(report_of([good], fleet=about_all))
    assert "no node in this run" in printed(report_of([]))
    silent = row("b", [finding(status="SKIP", message="not collected")], [])
    assert silent.verdict is Verdict.NO_GO
    assert "nothing was judged on: b" in printed(report_of([silent]))


def test_an_unfinished_run_says_so():
    report = report_of([row("a", [], ["gpu_count"])], verdict=Verdict.GO, run=RunInfo("R", "2026-11-21T03:00:00+00:00"))
    assert "did not finish" in printed(report)


def test_hundreds_of_kinds_of_trouble_are_cut_and_counted():
    bad = [
        finding(check=f"check_{'a' * number}", status="FAIL", remedy="REBOOT", message="b" * number)
        for number in range(90)
    ]
    text = printed(report_of([row(f"gpu-{number}", [one], []) for number, one in enumerate(bad)]))
    assert text.count("  REBOOT") == 61, "60 nodes and what to do"
    assert "+30 more nodes, all in the report" in text


def test_each_node_is_told_what_to_do_by_the_remedy_that_makes_the_others_needless():
    def bad(check, remedy):
        return finding(check=check, status="FAIL", remedy=remedy, message="broken")

    rows = [
        row("gpu-1", [bad("a", "INVESTIGATE"), bad("c", "REPLACE")], []),
        row("gpu-10", [bad("b", "REBOOT"), bad("a", "INVESTIGATE")], []),
        row("gpu-9", [bad("a", "FIX_CONFIG")], []),
    ]
    told = printed(report_of(rows)).split("No-go nodes\n")[1].split("\n\n")[0]
    assert [" ".join(line.split()) for line in told.splitlines()] == [
        "gpu-1 REPLACE broken (also a)",
        "gpu-9 FIX_CONFIG broken",
        "gpu-10 REBOOT broken (also a)",
    ]
