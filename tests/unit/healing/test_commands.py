"""flightline incidents and flightline remediate, as people and scripts meet them."""

import json
import sys
import time
from datetime import datetime, timezone

import click
import pexpect
import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.commands import remediate
from flightline.console import Console
from flightline.healing import act, persons
from flightline.healing.journal.incident import APPROVED, EVERY, PROPOSED, Moment, advance
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.stamps import later
from flightline.healing.plan.planner import Do, NextStep
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore, StoreError
from flightline_node.judge.checks import CHECKS

from .made import T0, H, incident, through, trouble

WAY = (H.QUARANTINED, H.DRAINED, H.STARTED, H.REPAIRED, H.VERIFIED, H.RETURNED)


def timed(one, *moments):
    """(kind, seconds after T0), each by the watcher or the remediator."""
    for kind, after_s in moments:
        one = advance(one, Moment(later(T0, after_s), kind, "flightline-remediate", f"why {kind}", jobs=("77",)))
    return one


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Two incidents that are over, after 100 s and 300 s, and one that is open."""
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "80")
    with SqliteStore(path) as runs:
        runs.start(Run("R1", T0))
    with SqliteLedger(path) as ledger:
        ledger.save(timed(incident("gpu-01"), *((kind, 20.0 * n) for n, kind in enumerate(WAY))), None)
        ledger.save(
            timed(incident("gpu-02", at=later(T0, -1)), *((kind, 60.0 * n) for n, kind in enumerate(WAY))), None
        )
        ledger.save(
            timed(incident("gpu-03", trouble(serial="1650000000099"), at=later(T0, 5)), (H.QUARANTINED, 6)), None
        )
    return path


def call(*arguments, **more):
    done = CliRunner().invoke(cli, list(arguments), **more)
    return done.exit_code, done.output


def test_incidents_fit_on_80_columns(store):
    status, out = call("incidents")
    assert status == 1, "one is open"
    assert max(map(len, out.splitlines())) <= 80
    assert out.index("gpu-03") < out.index("gpu-01") < out.index("gpu-02"), "newest first"
    assert "quarantined" in out and "returned" in out and "jobs 77" in out
    assert "+3 more" in out, "of a long way its beginning and its end"


def test_what_is_in_an_incident_cannot_draw_on_the_terminal(store):
    with SqliteLedger(store) as ledger:
        ledger.save(incident("gpu-04", trouble(check="x\x1b[2J[bold]"), at=later(T0, 9)), None)
    status, out = call("incidents", "gpu-04")
    assert status == 1 and "\x1b" not in out and "gpu-04" in out


def test_open_incidents_alone(store):
    status, out = call("incidents", "--open")
    assert status == 1 and "gpu-03" in out and "gpu-01" not in out
    with SqliteLedger(store) as ledger:
        (one,) = ledger.incidents(only_open=True)
        ledger.save(through(one, H.LEFT), None)
    status, out = call("incidents", "--open")
    assert status == 0 and "no incident" in out


@pytest.mark.parametrize("name", ["gpu-03", "i-gpu-03", "1650000000099"])
def test_incidents_of_a_node_an_instance_or_a_gpu(store, name):
    status, out = call("incidents", name)
    assert status == 1 and "gpu-03" in out and "gpu-01" not in out


def test_incidents_of_nobody(store):
    assert call("incidents", "gpu-77") == (0, "no incident\n")


def test_times_are_those_of_the_incidents(store):
    _, out = call("incidents", "--json")
    took = {one["phase"]: one for one in json.loads(out)["took"]}
    whole = took["detected to returned"]
    assert (whole["count"], whole["mean_s"]) == (2, pytest.approx((100 + 301) / 2))
    assert (whole["p50_s"], whole["p90_s"], whole["p99_s"]) == (
        pytest.approx(100),
        pytest.approx(301),
        pytest.approx(301),
    )
    assert took["detected to quarantined"]["count"] == 3
    _, text = call("incidents")
    assert "p99" in text and "detected to returned" in text


def test_incidents_for_scripts(store):
    status, out = call("incidents", "--json", "--open")
    (one,) = json.loads(out)["incidents"]
    assert status == 1 and (one["host"], one["state"]) == ("gpu-03", "quarantined")
    assert [event["what"] for event in one["events"]] == ["detected", "quarantined"]


def test_without_a_store_it_is_said_and_ends_with_2(tmp_path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "nothing.sqlite"))
    done = CliRunner().invoke(cli, ["incidents"])
    assert isinstance(done.exception, StoreError) and "no run store here" in str(done.exception)


STEP = NextStep(incident("gpu-07"), Do.QUARANTINE, "the finding asks for REBOOT", "job 77 runs on to the end")


def asked(said):
    """What the prompt of mode ask answers to what a person types, and what the person saw."""
    seen = {}

    @click.command()
    def prompt():
        seen["answer"] = remediate._ask(Console(soft_wrap=False))(STEP)

    done = CliRunner().invoke(prompt, input=said)
    return seen.get("answer"), done


@pytest.mark.parametrize(
    ("said", "answer"), [("y\n", True), ("yes\n", True), ("n\n", False), ("\n", False), ("perhaps\nn\n", False)]
)
def test_a_person_decides_each_step(said, answer):
    found, done = asked(said)
    assert found is answer
    assert "gpu-07" in done.output and "job 77 runs on" in done.output, "what it does to jobs is said before"


@pytest.mark.parametrize("said", ["", "\x03", "perhaps"])
def test_who_gives_no_answer_allows_nothing(said):
    """The end of the input, and what is no answer: the command ends, and no step is taken."""
    found, done = asked(said)
    assert found is None and done.exit_code != 0


PROMPT = """
from flightline.commands import remediate
from flightline.console import Console
from tests.unit.healing.test_commands import STEP
print("answer", remediate._ask(Console(soft_wrap=False))(STEP))
"""


def test_ctrl_c_at_a_terminal_takes_no_step():
    terminal = pexpect.spawn(sys.executable, ["-c", PROMPT], timeout=60, encoding="utf-8")
    terminal.expect("take this step")
    # A signal that comes between the prompt and readline's select waits there for the next one, as a person would press it.
    ended = lambda: terminal.sendintr() or terminal.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=5) == 0  # noqa: E731
    assert any(ended() for _ in range(10))
    terminal.close()
    assert "answer" not in terminal.before and terminal.exitstatus != 0


def test_a_service_goes_on_when_a_round_cannot_be_taken(monkeypatch):
    """No run yet, another remediator at work, a table that throttles: each is said, and the next round comes."""
    rounds, slept = [StoreError("no run yet"), StoreError("ThrottlingException"), True], []

    def advise(*_):
        found = rounds.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(seconds):
        slept.append(seconds)
        if not rounds:
            raise KeyboardInterrupt

    monkeypatch.setattr(act, "advise", advise)
    monkeypatch.setattr(time, "sleep", sleep)
    done = CliRunner().invoke(cli, ["remediate", "--every", "30"])
    assert slept == [30.0, 30.0, 30.0]
    assert "no run yet; next round in 30 s" in done.output and "ThrottlingException" in done.output


def test_the_same_plan_is_shown_once(capsys):
    report = remediate._reporter(Console(soft_wrap=False), "advise", True)
    from .made import fleet, plan

    site = remediate.settings((), None)
    for one in (incident("n1"), incident("n1"), incident("n2")):
        known = fleet(one)
        report(plan(known, site), known, site, "", "", "")
    assert capsys.readouterr().out.count("flightline-plan/1") == 2


def refused(why, *words):
    done = CliRunner().invoke(cli, list(words))
    assert isinstance(done.exception, StoreError)
    assert why in str(done.exception)


def proposed(store):
    with SqliteLedger(store) as ledger:
        (one,) = ledger.incidents(name="gpu-03")
        ledger.save(advance(one, Moment(later(T0, 9), H.NOTED, "test", about=PROPOSED, step="REBOOT")), None)


def moments(store):
    with SqliteLedger(store) as ledger:
        return ledger.incidents(name="gpu-03")[0].events


def test_a_person_lets_a_proposed_step_be_taken_or_not(store):
    for option in ("--approve", "--veto"):
        refused("saw no step that waits for a person", "remediate", option, "gpu-03")
    proposed(store)
    assert call("remediate", "--approve", "gpu-03") == (0, "gpu-03: REBOOT is taken in the next round\n")
    assert (moments(store)[-1].about, moments(store)[-1].step) == (APPROVED, "REBOOT")
    status, out = call("remediate", "--veto", "gpu-03")
    assert (status, out) == (0, "gpu-03: REBOOT is not taken; --retry gpu-03 goes on\n")
    assert moments(store)[-1].what == H.HELD
    assert call("remediate", "--approve", "a", "--veto", "b")[0] == 2


def test_a_pause_is_kept_said_everywhere_and_ended(store):
    status, out = call("remediate", "--pause", "an upgrade")
    assert status == 0
    assert "no node was asked" in out or "nodes did not answer" in out or "paused; `flightline" in out
    assert "paused by" in call("incidents")[1]
    with SqliteLedger(store) as ledger:
        assert "an upgrade" in ledger.stops()[EVERY]
    assert call("remediate", "--resume")[0] == 0
    refused("saw no pause", "remediate", "--resume")


def test_a_replay_says_what_was_planned_and_changes_nothing(store, monkeypatch):
    monkeypatch.setattr(persons, "now_utc", lambda: later(T0, 3600))
    before = store.read_bytes()
    status, out = call("remediate", "--run", "R1", "--replay", "24", "--set", "approval=REBOOT")
    assert status == 0
    assert "none taken" in out.splitlines()[0]
    assert "gpu-02  quarantine REBOOT" in out
    assert store.read_bytes() == before


def test_the_age_of_proof_is_shown_and_is_a_gate(tmp_path, monkeypatch):
    path = tmp_path / "runs.sqlite"
    now, names = datetime.now(timezone.utc).isoformat(timespec="seconds"), ("n1", "n2")
    run = Run("R1", later(now, -7200)[:19] + "+00:00", "standard", "hosts.yml", tuple(map(ExpectedHost, names)))
    findings = [
        {"check": check.id, "status": "PASS", "message": "good"}
        for check in CHECKS.values()
        if check.level == "standard"
    ]
    with SqliteStore(path) as runs:
        runs.start(run)
        runs.save("R1", {"host": "n1", "verdict": "go", "findings": findings})
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    status, out = call("runs", "--age")
    assert (status, [line.split() for line in out.splitlines()[1:]]) == (
        0,
        [["n2", "none", "none"], ["n1", "2.0", "h", "none"]],
    )
    gates = {("3", "n1"): 0, ("1", "n1"): 1, ("3", "n[1-2]"): 1, ("3", "n9"): 1}
    assert {given: call("runs", "--max-age", given[0], "--nodes", given[1])[0] for given in gates} == gates
    assert call("runs", "--max-age", "3", "--nodes", "n1", "--level", "deep")[0] == 1
    assert 'flightline_proof_age_hours{node="n2",level="deep"} +Inf' in call("runs", "--prometheus")[1]
