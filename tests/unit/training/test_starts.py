"""Each end of a start is judged and its evidence kept: a bug ends the run early, hardware never does; torchrun is a stand-in."""

import json
import os
import time

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline_node.train import starts
from flightline_node.train.faults import Repeats, StartFault

from .test_launcher import Site, journal

WHERE = 'for w in "$@"; do case $w in --log-dir=*) d=${w#*=};; esac; done; mkdir -p $d/x_1/attempt_0/0; '
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def dies(error, before="", stream="stderr.log"):
    """Shell: a rank without @record prints this traceback and ends with 1."""
    text = f'{before}Traceback (most recent call last):\\n  File "train.py", line 8, in step\\n    f()\\n{error}\\n'
    return f"{WHERE}printf '{text}' > $d/x_1/attempt_0/0/{stream}; exit 1"


def about(site, number):
    return json.loads((site.root / f"logs/demo/starts/{number:05d}/start.json").read_text())


@pytest.mark.parametrize(
    ("script", "wanted", "count", "says"),
    [
        (dies("ValueError: bad sample"), 70, 3, "3 times the same at a step that it does not say: ValueError: bad sample"),
        (dies("ValueError: bad sample", "step: 16 loss: 3\\n"), 70, 2, "twice the same at step 16: ValueError: bad sample"),
        (dies("ValueError: at 0x7f'$start'", "step: 16\\n"), 70, 2, "twice the same at step 16"),
        (dies("ValueError: bad sample", "step: '$start'\\n"), 1, 4, "failed 4 times"),
        (dies("ConnectionError: Connection reset by peer", "step: 9\\n"), 1, 4, "failed 4 times"),
        (dies("requests.exceptions.HTTPError: 503 Server Error", "step: 0\\n"), 1, 4, "failed 4 times"),
        (dies("torch.OutOfMemoryError: CUDA out of memory", "step: 9\\n"), 70, 2, "do: a smaller batch"),
        (dies("OSError: [Errno 28] No space left on device", "step: 9\\n"), 1, 4, "do: make room there"),
        (dies("ImportError: handled", "step: 9\\n") .replace("exit 1", "yes working | head -n 200 >> $d/x_1/attempt_0/0/stderr.log; exit 1"), 1, 4, "failed 4 times"),
        (dies(ECC, "step: 9\\n"), 1, 5, "do: flightline check this node"),
        ("[ $start -lt 9 ] || exit 0; " + dies(ECC, "step: '$start'\\n"), 0, 9, "a word of hardware"),
    ],
    ids=["no step", "step", "address", "moves on", "others", "service", "memory", "disk", "handled", "ECC at one step", "ECC at others"],
)  # fmt: skip
def test_an_end_is_judged_by_what_a_rank_printed(tmp_path, script, wanted, count, says):
    site = Site(tmp_path, script, pause_s=0.01)
    status, said = site.run()
    assert (status, site.count("starts")) == (wanted, count) and says in said


def test_a_journal_that_names_hardware_does_not_end_the_run_either(tmp_path):
    site = Site(tmp_path, f"[ $start -lt 4 ] || exit 0; {journal(tmp_path, ECC, '1$start').replace('1$start', chr(39) + '$start' + chr(39))}; exit 1", pause_s=0.01)  # fmt: skip
    assert site.run()[0] == 0 and site.count("starts") == 4


def test_each_start_keeps_its_evidence_and_blame_reads_the_last_one(tmp_path):
    second = dies("KeyError: 2").replace("exit 1", "exit 0")
    site = Site(tmp_path, f"[ $start -lt 2 ] || {{ {second}; }}; {dies(ECC)}", pause_s=0.01)
    assert site.run()[0] == 0
    first, last = about(site, 0), about(site, 1)
    assert (first["status"], first["word"], first["text"]) == (1, "hardware", ECC)
    assert (last["status"], last["word"]) == (0, "")
    found = CliRunner().invoke(command, [str(tmp_path / "logs/demo"), "--json"])
    assert "KeyError: 2" in json.loads(found.output)["blames"][0]["why"]
    earlier = CliRunner().invoke(command, [str(tmp_path / "logs/demo/starts/00000"), "--json"])
    assert json.loads(earlier.output)["blames"][0]["cause"] == "hardware"


KILLED = """[default1]:step: 9 of a rank, which has its own log
E1126 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -9) local_rank: 2 (pid: 4711) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-26_08:00:00
  host      : gpu-02
  rank      : 2 (local_rank: 2)
  exitcode  : -9 (pid: 4711)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4711
============================================================
"""


def test_what_torchrun_itself_says_of_an_end_is_kept_with_the_start(tmp_path):
    (tmp_path / "report").write_text(KILLED)
    site = Site(tmp_path, f"[ $start -lt 2 ] || exit 0; cat {tmp_path}/report >&2; exit 1", pause_s=0.01)
    status, said = site.run()
    assert status == 0 and "Signal 9 (SIGKILL)" in said and "[default1]:step: 9" in said, "it is also shown"
    kept = (tmp_path / "logs/demo/starts/00000/torchrun.err").read_text()
    assert "exitcode  : -9" in kept and "default1" not in kept
    assert not (tmp_path / "logs/demo/starts/00001/torchrun.err").exists(), "it said nothing"
    found = CliRunner().invoke(command, [str(tmp_path / "logs/demo/starts/00000"), "--json"])
    (one,) = json.loads(found.output)["blames"]
    assert (one["kind"], one["rank"], one["cause"], one["node"]) == ("vanished", 2, "died", "gpu-02")


@pytest.mark.parametrize("left", ["Root Cause (first obs", ""])
def test_a_start_that_failed_and_left_no_words_is_not_known_and_never_nobody(tmp_path, left):
    folder = tmp_path / "starts/00000"
    folder.mkdir(parents=True)
    (folder / "start.json").write_text(json.dumps({"host": "gpu-02", "status": 1, "ranks": {"0": 8}}))
    (folder / "torchrun.err").write_text(left)
    found = CliRunner().invoke(command, [str(tmp_path), "--json"])
    (one,) = json.loads(found.output)["blames"]
    assert found.exit_code == 1 and (one["kind"], one["rank"], one["cause"]) == ("unknown", None, "not known")


def test_a_program_that_refuses_its_own_words_is_not_started_twenty_times(tmp_path):
    (tmp_path / "report").write_text(KILLED.replace("exitcode  : -9", "exitcode  : 2").replace("Signal 9", "To enable"))
    site = Site(tmp_path, f"cat {tmp_path}/report >&2; exit 1", pause_s=0.01, restarts=20)
    status, said = site.run()
    assert (status, site.count("starts")) == (70, 3) and "wrong words" in said


def test_a_child_that_outlives_torchrun_holds_nothing_up(tmp_path):
    site = Site(tmp_path, "sleep 30 & echo $! > $0.pid; exit 0")
    began = time.monotonic()
    assert site.run()[0] == 0 and time.monotonic() - began < 20
    os.kill(int((tmp_path / "torchrun.pid").read_text()), 9)


def test_a_rank_is_known_by_what_the_launcher_wrote(tmp_path):
    folder = tmp_path / "starts/00003"
    (folder / "job_a/attempt_0/1").mkdir(parents=True)
    (folder / "job_a/attempt_0/1/stderr.log").write_text("Traceback (most recent call last):\n  File\nKeyError: 2\n")
    (folder / "start.json").write_text(json.dumps({"host": "gpu-02", "ranks": {"0": 8, "1": 9}}))
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert (one["rank"], one["node"], one["cause"]) == (9, "gpu-02", "software")


def test_the_oldest_starts_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(starts, "KEPT", 2)
    made = Site(tmp_path, "exit 1", restarts=3)
    (made.root / "logs/demo/starts").mkdir(parents=True)
    evidence = starts.StartEvidence(_plan(made))
    for _ in range(4):
        evidence.begin()
        (made.root / f"logs/demo/starts/{os.path.basename(evidence.folder)}/big").write_bytes(b"x" * 1000)
        evidence.end(1, StartFault("", None))
    assert sorted(os.listdir(made.root / "logs/demo/starts")) == ["00002", "00003"]
    monkeypatch.setattr(starts, "MOST_BYTES", 1500)
    evidence.end(1, StartFault("", None))
    assert os.listdir(made.root / "logs/demo/starts") == ["00003"], "the newest stays"


def _plan(site):
    from flightline_node.train.plan import plan

    return plan("demo", json.loads((site.root / "train.json").read_text()), {"command": ["x"]}, {}, "")


def test_a_folder_that_cannot_be_made_costs_no_start(tmp_path):
    site = Site(tmp_path, "exit 0")
    (tmp_path / "logs/demo").mkdir()
    (tmp_path / "logs/demo/starts").write_text("a file")
    assert site.run()[0] == 0 and site.count("starts") == 1


def test_dumps_beside_the_journal_are_kept_before_the_next_start_writes_over_them(tmp_path):
    site = Site(
        tmp_path, f"echo start $start > {tmp_path}/fsx/flight-000001.json; [ $start -lt 2 ]; exit $(( $start < 2 ))"
    )
    (tmp_path / "fsx").mkdir()
    (tmp_path / "jobs/demo.json").write_text(json.dumps({"command": ["x.py"], "journal": str(tmp_path / "fsx")}))
    assert site.run()[0] == 0
    kept = [(tmp_path / f"logs/demo/starts/{number:05d}/flight-000001.json").read_text() for number in (0, 1)]
    assert kept == ["start 1\n", "start 2\n"]


def test_what_is_not_own_breaks_the_row():
    repeats, own = Repeats(), StartFault("KeyError: 2", 7, "own")
    for fault in (own, StartFault("", None), own):
        repeats.add(fault)
        assert not repeats.own()
    repeats.add(own)
    assert repeats.own()
