"""A configured node judges itself by the file that the role wrote."""

import json

import pytest

from flightline_node import logline, site_run

SETTINGS = {
    "host": "gpu-07",
    "instance_type": "none",
    "instance_id": "i-0123456789abcdef0",
    "level": "quick",
    "checks": ["uptime"],
    "skip": [],
    "expected": {},
    "thresholds": {},
    "waivers": [],
    "options": {},
}


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
    assert site_run.main(given) == 0
    kept = json.loads(record.read_text())
    assert (kept["host"], kept["instance_id"], kept["verdict"]) == ("gpu-07", "i-0123456789abcdef0", "go")
    piece = logline.parse(log.read_text().splitlines()[0])
    assert piece.run.startswith("boot-")
    assert logline.join([piece])["host"] == "gpu-07"
    assert "gpu-07: go at level quick" in capsys.readouterr().out


def test_a_no_go_is_exit_status_1_with_the_reason(settings, capsys):
    given = settings(checks=["sysctl"], expected={"sysctl": {"kernel.ostype": "Plan 9"}})
    assert site_run.main([*given, "--reason"]) == 1
    assert capsys.readouterr().out == "flightline: sysctl: kernel.ostype is Linux, wanted Plan 9\n"


def test_a_second_run_appends_to_the_log(settings, tmp_path):
    log = tmp_path / "records.jsonl"
    for _ in range(2):
        site_run.main([*settings(), "--log", str(log)])
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": ["no_such_check"]}, "no_such_check"),
        ({"instance_type": "p99.metal"}, "p99.metal"),
        ({"thresholds": []}, "without thresholds; do: run playbooks/site.yml"),
        ({"thresholds": {"memory.no_such": 1}}, "memory.no_such"),
    ],
)
def test_settings_that_mean_nothing_are_exit_status_2(settings, changes, said, capsys):
    assert site_run.main(settings(**changes)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_missing_or_broken_file_is_exit_status_2(tmp_path, text, capsys):
    path = tmp_path / "node.json"
    if text is not None:
        path.write_text(text)
    assert site_run.main(["--settings", str(path)]) == 2
    assert "do: run playbooks/site.yml for this node" in capsys.readouterr().err


def test_a_fault_of_the_library_is_no_verdict(settings, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(site_run, "run", broken)
    assert site_run.main(settings()) == 2
    assert "the node was not judged" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_no_verdict(settings, tmp_path, capsys):
    assert site_run.main([*settings(), "--record", str(tmp_path / "no" / "record.json")]) == 2
    assert "do: check free space" in capsys.readouterr().err


def test_explain_reads_and_judges_nothing(settings, monkeypatch, capsys):
    monkeypatch.setattr(site_run, "run", None)
    assert site_run.main([*settings(), "--explain"]) == 0
    assert "1 checks at level quick for none" in capsys.readouterr().out


def test_a_reason_is_short_and_says_how_many_more():
    finding = {"check": "xid", "status": "FAIL", "message": "GPU 3\nfell off " + "x" * 200}
    text = site_run.reason({"verdict": "no-go", "findings": [finding, finding, {**finding, "status": "WARN"}]})
    assert text.startswith("flightline: xid: GPU 3 fell off x")
    assert text.endswith("x (+1)")
    assert len(text) == site_run.REASON_CHARACTERS


def test_no_go_without_evidence_says_so():
    assert site_run.reason({"verdict": "no-go", "findings": []}) == "flightline: nothing could be judged"
