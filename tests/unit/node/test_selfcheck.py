"""A configured node judges itself by the file that the role wrote."""

import json

import pytest

from flightline_node import selfcheck
from flightline_node.tell import logline
from flightline_node.watch import claim
from tests.unit.made import node_settings

SETTINGS = node_settings(host="gpu-07", instance_type="none", instance_id="i-0123456789abcdef0", checks=["uptime"])


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "node.json"

    def write(**changes):
        path.write_text(json.dumps({**SETTINGS, **changes}))
        return ["--settings", str(path)]

    return write


def test_a_go_is_exit_status_0_with_record_and_log(settings, tmp_path, capsys):
    record, log = tmp_path / "record.json", tmp_path / "records.jsonl"
    given = [*settings(), "--record", str(record), "--log", str(log), "--run-prefix", "boot"]
    assert selfcheck.check(given) == 0
    kept = json.loads(record.read_text())
    assert (kept["host"], kept["instance_id"], kept["verdict"]) == ("gpu-07", "i-0123456789abcdef0", "go")
    piece = logline.parse(log.read_text().splitlines()[0])
    assert piece and piece.run.startswith("boot-")
    assert logline.join([piece])["host"] == "gpu-07"
    assert "gpu-07: go at level quick" in capsys.readouterr().out


def test_a_no_go_is_exit_status_1_with_the_reason(settings, capsys):
    given = settings(checks=["sysctl"], expected={"sysctl": {"kernel.ostype": "Plan 9"}})
    assert selfcheck.check([*given, "--reason"]) == 1
    assert (
        capsys.readouterr().out
        == "flightline: sysctl: kernel.ostype is Linux, wanted Plan 9 by check at quick for other_value\n"
    )


def test_a_second_run_appends_to_the_log(settings, tmp_path):
    log = tmp_path / "records.jsonl"
    for _ in range(2):
        selfcheck.check([*settings(), "--log", str(log)])
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": ["no_such_check"]}, "no_such_check"),
        ({"instance_type": "p99.metal"}, "p99.metal"),
        ({"thresholds": []}, "without thresholds; wanted: every input of a node; do: run playbooks/site.yml"),
        ({"thresholds": {"memory.no_such": 1}}, "memory.no_such"),
    ],
)
def test_settings_that_mean_nothing_are_exit_status_2(settings, changes, said, capsys):
    assert selfcheck.check(settings(**changes)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_missing_or_broken_file_is_exit_status_2(tmp_path, text, capsys):
    path = tmp_path / "node.json"
    if text is not None:
        path.write_text(text)
    assert selfcheck.check(["--settings", str(path)]) == 2
    assert "do: run playbooks/site.yml for this node" in capsys.readouterr().err


def test_a_fault_of_the_library_is_no_verdict(settings, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(selfcheck, "run", broken)
    assert selfcheck.check(settings()) == 2
    assert "the node was not judged" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_no_verdict(settings, tmp_path, capsys):
    assert selfcheck.check([*settings(), "--record", str(tmp_path / "no" / "record.json")]) == 2
    assert "do: check free space" in capsys.readouterr().err


def test_explain_reads_and_judges_nothing(settings, monkeypatch, capsys):
    monkeypatch.setattr(selfcheck, "run", None)
    assert selfcheck.check([*settings(), "--explain"]) == 0
    assert "1 checks at level quick for none" in capsys.readouterr().out


def test_a_reason_is_short_and_says_how_many_more():
    finding = {"check": "xid", "status": "FAIL", "reason": "xid.79", "message": "GPU 3\nfell off " + "x" * 200}
    text = selfcheck.reason(
        {"verdict": "no-go", "level": "quick", "findings": [finding, finding, {**finding, "status": "WARN"}]}
    )
    assert text.startswith("flightline: xid: GPU 3 fell off x")
    assert text.endswith("x (+1) by check at quick for xid.79")
    assert len(text) == claim.MOST_CHARS


def test_no_go_without_evidence_says_so():
    said = selfcheck.reason({"verdict": "no-go", "level": "quick", "findings": []})
    assert said == "flightline: node: nothing could be judged by check at quick for no_verdict"


def test_a_node_in_quarantine_is_no_go_whatever_it_measures(settings, tmp_path, capsys):
    marker = {
        "schema": "flightline-quarantine/1",
        "since": "2026-11-22T10:00:00Z",
        "by": "flightline-watch",
        "run": "watch-1",
        "findings": [{"check": "xid", "message": "GPU 3: Xid 79"}],
    }
    (tmp_path / "quarantine.json").write_text(json.dumps(marker))
    record = tmp_path / "record.json"
    assert selfcheck.check([*settings(), "--directory", str(tmp_path), "--reason", "--record", str(record)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("flightline: quarantine: xid: GPU 3: Xid 79; in quarantine since 2026-11-22T10:00:00Z")
    kept = json.loads(record.read_text())
    assert (kept["verdict"], kept["findings"][0]["check"]) == ("no-go", "quarantine")
    (tmp_path / "quarantine.json").unlink()
    assert selfcheck.check(settings()) == 0


def test_while_healing_is_paused_a_hook_of_slurm_changes_nothing(settings, tmp_path, capsys):
    given = settings(checks=["sysctl"], expected={"sysctl": {"kernel.ostype": "Plan 9"}})
    hook = [*given, "--reason", "--slurm", "gpu-07", "--directory", str(tmp_path), "--log", str(tmp_path / "log")]
    (tmp_path / "paused.json").write_text('{"by": "ada", "at": "2026-11-26", "why": "an upgrade"}')
    assert selfcheck.check(hook) == 0
    assert "paused by ada at 2026-11-26: an upgrade; it would have said: flightline: sysctl" in capsys.readouterr().out
    assert "no-go" in (tmp_path / "log").read_text(), "what it found is kept"
    (tmp_path / "paused.json").write_text("{torn")
    assert selfcheck.check(hook) == 0, "a pause that cannot be read is one"
    (tmp_path / "paused.json").unlink()
    assert selfcheck.check(hook) == 1
