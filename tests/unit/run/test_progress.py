"""The live line: who is awaited, for how long, and how long it can still take."""

import io

import pytest
from rich.console import Console

from flightline.run.live import HostOutcome
from flightline.run.progress import Tally, watching
from flightline_node.model import Status

START = 1_795_000_000.0


def answered(host, *, go=True, why=()):
    return HostOutcome(host, go, Status.PASS if go else Status.FAIL, 7.5, list(why))


def tally(now, hosts=500, ends_at=START + 420):
    made = Tally(lambda: now[0])
    made.expect(hosts, ends_at)
    return made


def test_it_names_who_is_awaited_longest_and_the_time_left():
    now = [START]
    made = tally(now)
    for number in range(1, 20):
        now[0] = START + number
        made.begin(f"gpu-{number:03}")
    for number in range(1, 17):
        made.count(answered(f"gpu-{number:03}", go=number != 5))
    now[0] = START + 58
    assert made.line() == "16/500 hosts, 1 no-go; waiting for gpu-017 (41 s) and 483 more, 6 min 2 s left"


def test_the_line_of_five_hundred_nodes_fits_eighty_columns():
    now = [START]
    made = tally(now)
    made.begin("ip-10-0-123-231.eu-west-1.compute.internal")
    made.no_go = 120
    assert len(made.line()) <= 110
    made = tally(now)
    made.begin("gpu-0017")
    assert len(made.line()) <= 80


@pytest.mark.parametrize(
    ("ends_at", "wanted"),
    [(None, ""), (START - 1, ", past its end: concluding"), (START, ", 0 s left"), (START + 380, ", 6 min 20 s left")],
)
def test_the_time_left(ends_at, wanted):
    assert tally([START], 2, ends_at).line() == f"0/2 hosts, 0 no-go{wanted}"


def test_the_last_one_is_awaited_alone():
    made = tally([START], 1, None)
    made.begin("gpu-1")
    assert made.line() == "0/1 hosts, 0 no-go; waiting for gpu-1 (0 s)"
    made.count(answered("gpu-1"))
    assert made.line() == "1/1 hosts, 0 no-go"


def test_a_host_that_is_asked_again_is_awaited_from_the_first_time_on():
    now = [START]
    made = tally(now, 1, None)
    made.begin("gpu-1")
    now[0] += 30
    made.begin("gpu-1")
    assert "(30 s)" in made.line()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_watcher_shows_no_go_as_it_comes_and_no_escape_of_a_node(terminal):
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=terminal, color_system=None)
    with watching(console) as watcher:
        watcher.expect(["gpu-1", "gpu-2\x1b[2J"], START)
        watcher.begin("gpu-2\x1b[2J")
        watcher.answer(answered("gpu-2\x1b[2J", go=False, why=["xid: \x1b]0;x\x07", "b", "c"]))
    shown = stream.getvalue()
    assert "no-go: xid" in shown and "and 1 more" in shown
    assert "\x1b[2J" not in shown and "\x1b]0" not in shown


def test_without_a_terminal_the_end_is_said_at_the_start():
    stream = io.StringIO()
    with watching(Console(file=stream, width=100)) as watcher:
        watcher.expect(["gpu-1"], START)
    assert stream.getvalue() == "1 host, judged by 11:06:40 UTC at the latest\n"
