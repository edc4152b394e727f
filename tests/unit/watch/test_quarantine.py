"""A fault in the kernel log takes the node out of service, once, and only a release brings it back."""

import contextlib
import json
import os
import socket
import stat
import time
from dataclasses import replace

import pytest

from flightline.healing.plan.observe import from_marker
from flightline.record.schema import RECORD
from flightline_node.act import repair
from flightline_node.model import Finding, Remedy, Status
from flightline_node.tell import logline
from flightline_node.watch import marker as marking

from .scene import QUIET, XID_31, XID_79


def test_a_lost_gpu_is_marked_then_drained_then_recorded(scene):
    scene.with_slurm().boot()
    assert scene.until(scene.asked) == ["-o show node"], "has it a mark of before, or the site something there?"
    time.sleep(0.05)
    scene.say(QUIET, XID_79)
    marker = scene.until(scene.drained)
    assert marker["schema"] == "flightline-quarantine/1"
    assert (marker["node"], marker["instance_id"], marker["by"]) == (
        "gpu-07",
        "i-0123456789abcdef0",
        "flightline-watch",
    )
    assert {one["check"] for one in marker["findings"]} == {"xid", "gpu_lost"}
    assert marker["latched"]["xid|0000:53:00"]["remedy"] == "REBOOT"
    assert marker["latched"]["xid|0000:53:00"]["count"] == 1
    assert marker["scheduler"]["state"] == "drained"
    assert marker["scheduler"]["kind"] == "slurm"
    wanted = f"flightline: xid 0000:53:00 by watch at quick for xid.79 run {marker['run']}"
    assert marker["scheduler"]["reason"] == wanted
    assert scene.asked()[1:4] == [
        f"update NodeName=gpu-07 Extra={wanted} going",
        "-o show node",
        f"update NodeName=gpu-07 State=DRAIN Reason={wanted} Extra=",
    ]
    assert scene.until(scene.records)
    assert stat.S_IMODE((scene.directory / "quarantine.json").stat().st_mode) == 0o644
    assert stat.S_IMODE(scene.directory.stat().st_mode) == 0o755


def test_the_record_is_one_that_the_log_path_and_the_store_take(scene):
    scene.with_slurm().boot().say(XID_79)
    scene.until(scene.told)
    piece = logline.parse((scene.path / "records.jsonl").read_text().splitlines()[0])
    assert piece
    record = logline.join([piece])
    assert RECORD.take(record, "record")["verdict"] == "no-go"
    assert (record["verdict"], record["host"], record["level"]) == ("no-go", "gpu-07", "quick")
    assert piece.run == scene.marker()["run"]


def test_healthy_lines_change_nothing(scene):
    scene.with_slurm().boot()
    scene.say(*[QUIET] * 200, "systemd[1]: Started x.", priority=6).say(
        "user wrote this NVRM: Xid (PCI:0000:53:00): 79,", priority=14
    )
    scene.quiet()
    assert scene.marker() is None
    assert not any("update" in words for words in scene.asked())
    assert scene.records() == []


def test_a_message_that_warns_does_not_drain(scene):
    scene.with_slurm().boot().say(XID_31).quiet()
    assert scene.marker() is None


def test_a_fault_latches_and_is_told_once(scene):
    scene.with_slurm().boot().say(XID_79)
    first = scene.until(scene.drained)
    scene.until(scene.told)
    scene.say(XID_79, XID_79)
    scene.until(lambda: scene.marker()["latched"]["xid|0000:53:00"]["count"] > 1)
    again = scene.marker()
    assert again["since"] == first["since"]
    assert again["run"] == first["run"]
    assert len(again["findings"]) == len(first["findings"])
    assert again["latched"]["xid|0000:53:00"]["first"] == first["latched"]["xid|0000:53:00"]["first"]
    assert len(scene.records()) == 1
    assert again["scheduler"]["state"] == "drained"


def test_a_second_trouble_is_added_and_recorded(scene):
    scene.with_slurm().boot().say(XID_79)
    scene.until(scene.told)
    scene.say("NVRM: Xid (PCI:0000:64:00): 95, pid='<unknown>', name=<unknown>, Uncontained ECC error.")
    assert scene.until(lambda: {"xid|0000:53:00", "xid|0000:64:00"} <= set(scene.marker()["latched"]))
    assert scene.until(lambda: scene.told(2))
    marker = scene.marker()
    assert marker["run"] == scene.records()[0]["run"] != scene.records()[1]["run"]


def test_an_operators_drain_keeps_its_reason(scene):
    scene.with_slurm("IDLE+DRAIN", "RMA 4711 (Kim)").boot().say(XID_79)
    marker = scene.until(scene.drained)
    assert marker["scheduler"]["state"] == "foreign"
    assert marker["scheduler"]["reason"] == "RMA 4711 (Kim)"
    assert not any("update" in words for words in scene.asked())


def test_an_operators_reason_that_begins_like_ours_is_the_operators(scene):
    scene.with_slurm("IDLE+DRAIN", "flightline-team: Kim works on it").boot().say(XID_79)
    marker = scene.until(scene.drained)
    assert marker["scheduler"]["state"] == "foreign"
    assert not any("update" in words for words in scene.asked())


@pytest.mark.parametrize(
    "lie",
    [
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\nhead -c 300000 /dev/urandom\n",
        "#!/bin/sh\necho '<html>502 Bad Gateway</html>'\n",
        "#!/bin/sh\necho 'NodeName=gpu-07 State=IDLE'\n",
    ],
    ids=["silence", "noise", "a proxy's page", "yes without doing it"],
)
def test_an_answer_that_lies_drains_nothing_and_is_asked_again(scene, lie):
    """Also an update that was taken and not carried out: the node would get jobs while its marker says drained."""
    scene.with_slurm().boot()
    true = (scene.tools / "scontrol").read_text()
    scene.tool(lie)
    scene.say(XID_79).until(lambda: (scene.marker() or {}).get("scheduler", {}).get("reason"))
    scene.quiet(0.3)
    assert scene.marker()["scheduler"]["state"] == "pending"
    scene.tool(true)
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"
    assert "DRAIN" in (scene.tools / "state").read_text()


def test_a_node_that_the_prolog_drained_counts_as_drained(scene):
    scene.with_slurm("MIXED+DRAIN", "flightline: xid: GPU 3 by prolog at quick for xid.79").boot().say(XID_79)
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"
    assert not any("update" in words for words in scene.asked())


def test_a_controller_that_is_down_is_asked_until_it_answers(scene):
    scene.with_slurm()
    (scene.tools / "down").touch()
    scene.boot().say(XID_79)
    scene.until(lambda: scene.marker() and scene.marker()["scheduler"]["reason"])
    assert scene.marker()["scheduler"]["state"] == "pending"
    assert "Unable to contact slurm controller" in scene.marker()["scheduler"]["reason"]
    assert scene.until(scene.records), "the record does not wait for the controller"
    (scene.tools / "down").unlink()
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"


def test_without_scontrol_the_marker_stands_and_the_drain_is_tried_again(scene):
    scene.boot().say(XID_79)
    scene.until(lambda: scene.marker() and scene.marker()["scheduler"]["reason"])
    assert scene.marker()["scheduler"]["state"] == "pending"
    assert scene.marker()["scheduler"]["reason"].startswith("scontrol")
    scene.with_slurm()
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"


def test_a_slow_scontrol_does_not_hold_the_marker(scene):
    scene.with_slurm()
    (scene.tools / "slow").write_text("60")
    scene.boot().say(XID_79)
    began = time.monotonic()
    assert scene.until(scene.marker) and time.monotonic() - began < 30


def test_a_watcher_that_starts_anew_goes_on_and_tells_nothing_twice(scene):
    scene.with_slurm().boot().say(XID_79)
    before = scene.until(scene.told)
    scene.watcher.end()
    scene.boot().say(QUIET).quiet()
    assert scene.marker()["since"] == before["since"]
    assert len(scene.records()) == 1


BLAME = {"schema": "flightline-quarantine/1", "by": "flightline-blame", "since": "2026-11-22T10:00:00Z", "run": "", "scheduler": {"kind": "none", "state": "absent"},
         "findings": [{"check": "training", "status": "FAIL", "message": "rank 3 hung", "remedy": "INVESTIGATE", "device": {}}]}  # fmt: skip


@pytest.mark.parametrize("blamed_first", [True, False])
def test_what_a_training_job_blames_and_what_the_kernel_says_stand_beside_each_other(scene, blamed_first):
    step = repair.RepairStep("mark", 0, root=str(scene.path), marker=BLAME)
    scene.options = replace(scene.options, directory=str(step.directory))
    scene.directory = step.directory
    scene.with_slurm().boot()
    blamed = repair.take(step)["outcome"] if blamed_first else ""
    scene.say(XID_79).until(lambda: (scene.marker() or {}).get("by") == "flightline-watch" and scene.drained())
    blamed = blamed or repair.take(step)["outcome"]
    scene.say("NVRM: Xid (PCI:0000:64:00): 95, pid='<unknown>', name=<unknown>, Uncontained ECC error.")
    scene.until(lambda: "xid|0000:64:00" in scene.marker()["latched"])
    scene.until(scene.told)
    marker = scene.marker()
    assert (blamed, marker["by"], [one["by"] for one in marker["claims"]]) == (
        "done",
        "flightline-watch",
        ["flightline-blame"],
    )
    assert {one["check"] for one in marking.findings_of(marker)} >= {"xid", "training"}
    assert {one.check for one in from_marker("n1", "p5", marker).troubles} >= {"training"}
    scene.watcher.end()
    scene.boot().say(XID_79).quiet()
    assert [one["by"] for one in scene.marker()["claims"]] == ["flightline-blame"]
    repair.take(replace(step, marker={**BLAME, "by": "flightline-remediate"}))
    repair.take(step)
    assert sorted(one["by"] for one in scene.marker()["claims"]) == ["flightline-blame", "flightline-remediate"]
    marking.release("R1", None, "", scene.directory)
    assert scene.marker() is None


SAME = "flightline: xid GPU 0 by watch at quick for xid.79 run W2"
OTHERS = f"NodeName=gpu-08 State=IDLE+DRAIN Reason={SAME} [root@2999-11-22T10:00:00]\n" + "".join(
    f"NodeName=gpu-{number} State=IDLE Extra={SAME} held\n" for number in (10, 11)
)
"""Out for the same at a time that has not come: whatever the clocks, it counts."""


def test_what_others_have_too_makes_a_suspect_that_stays_in_service_and_one_says_so(scene, monkeypatch):
    monkeypatch.setattr("flightline_node.watch.out_of_service.SETTLES_S", 0.1)
    scene.with_slurm(others=OTHERS).boot().say(XID_79)
    scene.until(lambda: len(scene.records()) > 1)
    assert (scene.directory / "suspect.json").exists() and not (scene.directory / "quarantine.json").exists()
    assert marking.reason(scene.directory) == "", "prolog, training unit and preflight let it work"
    assert (scene.tools / "state").read_text() == "IDLE\n"
    assert (scene.tools / "extra").read_text().endswith(" for xid.79 run " + scene.marker()["run"] + " told\n")
    told = json.loads(scene.path.joinpath("records.jsonl").read_text().splitlines()[1])
    assert "xid.79 on 4 of 4 nodes" in str(told)
    beats = [json.loads(line) for line in (scene.path / "beat.jsonl").read_text().splitlines()]
    assert beats[0]["WatchSuspect"] == 0
    assert from_marker("n1", "p5", scene.marker()).out_at == "", "an incident in service"


def test_a_suspect_asks_again_when_a_person_let_go_on_and_its_mark_goes_with_the_release(scene, monkeypatch):
    for name in ("SETTLES_S", "SUSPECT_S"):
        monkeypatch.setattr(f"flightline_node.watch.out_of_service.{name}", 0.1)
    scene.with_slurm(others=OTHERS).boot().say(XID_79)
    scene.until(lambda: scene.marker() and marking.is_suspect(scene.marker()))
    scene.watcher.end()
    scene.boot()  # after a restart it is one still
    scene.quiet(0.5)
    assert marking.is_suspect(scene.marker())
    (scene.tools / "others").write_text("")
    (scene.tools / "extra").write_text("\n")
    assert scene.until(lambda: (scene.directory / "quarantine.json").exists())
    assert "DRAIN" in (scene.tools / "state").read_text()


def test_a_suspects_mark_goes_with_its_release(scene):
    scene.with_slurm(others=OTHERS).boot().say(XID_79)
    scene.until(lambda: scene.marker() and marking.is_suspect(scene.marker()))
    assert scene.release() == 0
    assert scene.until(lambda: (scene.tools / "extra").read_text() == "\n")
    assert scene.marker() is None


def test_a_fault_of_its_own_takes_a_suspect_out(scene):
    scene.with_slurm(others=OTHERS).boot().say(XID_79)
    scene.until(lambda: scene.marker() and marking.is_suspect(scene.marker()))
    scene.say("NVRM: Xid (PCI:0000:64:00): 95, pid='<unknown>', name=<unknown>, Uncontained ECC error.")
    assert scene.until(lambda: "DRAIN" in (scene.tools / "state").read_text())
    assert " for xid.95 " in (scene.tools / "reason").read_text()


def test_a_site_may_want_that_suspects_take_no_jobs(scene):
    scene.options = replace(scene.options, suspects="drain")
    scene.with_slurm(others=OTHERS).boot().say(XID_79)
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"
    assert (scene.tools / "reason").read_text().endswith(" held\n")


def test_a_drain_that_was_pending_is_sent_after_a_restart(scene):
    scene.boot().say(XID_79)
    scene.until(lambda: scene.marker() and scene.marker()["scheduler"]["reason"])
    scene.watcher.end()
    scene.with_slurm().boot()
    assert scene.until(scene.drained)["scheduler"]["state"] == "drained"


def test_release_ends_it_and_a_new_fault_begins_anew(scene, capsys):
    scene.with_slurm().boot().say(XID_79)
    scene.until(scene.told)
    assert scene.release() == 0
    assert "released by run proof-1" in capsys.readouterr().out
    scene.say(QUIET).quiet()
    assert scene.marker() is None, "the old lines are settled"
    scene.say(XID_79)
    assert scene.until(scene.marker)
    assert scene.until(lambda: len(scene.records()) > 1)
    assert scene.records()[1]["run"] == scene.marker()["run"]


def test_release_refuses_what_was_seen_after_the_proof(scene, capsys):
    scene.with_slurm().boot().say(XID_79)
    scene.until(scene.drained)
    assert scene.release("--judged-at", "2020-01-01T00:00:00Z") == 1
    assert "after 2020-01-01T00:00:00Z" in capsys.readouterr().err
    assert scene.marker()
    assert scene.release("--judged-at", "2999-01-01T00:00:00+00:00") == 0


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_clock_that_steps_makes_no_fault_older_than_the_proof(scene, monkeypatch, step_s):
    """The node looked good, then its clock stepped, then the fault came: it stays out."""
    real, ahead = time.time, [0.0]
    monkeypatch.setattr("flightline_node.watch.marker.time.time", lambda: real() + ahead[0])
    scene.with_slurm().boot()
    judged_at = marking.stamp(real())
    scene.quiet(0.05)
    ahead[0] = step_s
    scene.say(XID_79)
    scene.until(scene.drained)
    assert scene.release("--judged-at", judged_at) == 1
    assert scene.marker()


def test_release_without_a_quarantine_says_so(scene, capsys):
    scene.directory.mkdir()
    assert scene.release() == 1
    assert "wanted: a node in quarantine" in capsys.readouterr().err


def test_a_marker_that_cannot_be_read_still_holds(tmp_path):
    (tmp_path / marking.MARKER).write_text("{cut o")
    assert "cannot be read" in marking.reason(tmp_path)
    (tmp_path / marking.MARKER).write_text(json.dumps({"schema": "flightline-quarantine/9"}))
    assert "schema" in marking.reason(tmp_path)


def test_a_waived_finding_drains_nobody(scene):
    waivers = [
        {"check": check, "scope": "*", "reason": "known", "owner": "ops", "expiry": "2999-01-01"}
        for check in ("xid", "gpu_lost")
    ]
    scene.with_slurm().boot(waivers=waivers).say(XID_79).quiet()
    assert scene.marker() is None


@pytest.mark.parametrize(
    "torn",
    [
        "NVRM: Xid (PCI:0000:53:00): ",
        "some driver said: NVRM: Xid (PCI:0000:53:00): 79, pid=1",
    ],
)
def test_a_torn_line_that_may_be_a_fault_is_no_pass(scene, torn):
    scene.with_slurm().boot().say(torn)
    marker = scene.until(scene.drained)
    assert {one["status"] for one in marker["findings"]} <= {"UNKNOWN", "FAIL"}


def test_two_lines_run_together_are_both_read(scene):
    scene.with_slurm().boot().say("eth0: link up" + XID_79)
    marker = scene.until(scene.drained)
    assert "xid" in {one["check"] for one in marker["findings"]}


def test_a_line_that_comes_in_pieces_is_read_whole(scene):
    scene.with_slurm().boot()
    line = f"3,0,10,-;{XID_79}\n".encode()
    os.write(scene.kernel, line[:40])
    scene.quiet(0.1)
    assert scene.marker() is None
    os.write(scene.kernel, line[40:])
    assert scene.until(scene.drained)


class Sick:
    """A feed that says of every sample that a GPU is lost."""

    fd, due = None, 0.0

    def step(self, ready, now):
        return [Finding("gpu_lost", Status.FAIL, "GPU 3: lost", Remedy.REBOOT, {"index": 3})]

    def counts(self):
        return {}

    def forget(self):
        pass

    close = forget


@pytest.mark.parametrize(("grace_s", "quarantined"), [(0.0, True), (1e9, False)])
def test_samples_do_not_count_while_a_node_boots(scene, grace_s, quarantined):
    scene.options = replace(scene.options, boot_grace_s=grace_s)
    scene.with_slurm().boot([Sick()])
    if quarantined:
        scene.until(scene.marker)
    assert bool(scene.quiet().marker()) is quarantined
    scene.say(XID_79)
    assert scene.until(scene.drained), "the kernel's word counts from the first line"


def test_the_heartbeat_is_a_metric_of_the_embedded_format(scene):
    scene.with_slurm().boot().until((scene.path / "beat.jsonl").exists)
    said = json.loads((scene.path / "beat.jsonl").read_text().splitlines()[0])
    names = [metric["Name"] for metric in said["_aws"]["CloudWatchMetrics"][0]["Metrics"]]
    assert names == ["WatchBeat", "WatchQuarantined", "WatchSuspect", "WatchBlind"]
    assert [said[name] for name in names] == [1, 0, 0, 0]
    assert said["InstanceId"] == "i-0123456789abcdef0"


def test_systemd_hears_that_it_is_ready_and_alive(scene, tmp_path, monkeypatch):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(str(tmp_path / "notify"))
    listener.settimeout(0)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    heard = []

    def hear():
        with contextlib.suppress(BlockingIOError):
            heard.append(listener.recv(200))
        return len(heard) == 3

    assert scene.with_slurm().boot().until(hear)
    listener.close()
    assert heard[0].startswith(b"READY=1")
    assert heard[1:] == [b"WATCHDOG=1"] * 2
