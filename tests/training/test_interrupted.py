"""The loss curve of an interrupted run equals the uninterrupted one bit for bit."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from training import manifest

from . import table
from .launch import EVERY, HANG, HANG_S, ROOT, STEPS, Running, curve


def resumed(place, whole, **rest):
    """Start again, train to the end, and compare; the event of the resumption."""
    with Running(place, attempt=1, **rest) as run:
        run.good()
        assert curve(run.logs) == whole
        return run.named("resumed")[0], run


def test_it_learns(whole):
    losses = [float.fromhex(whole[step]) for step in sorted(whole)]
    assert losses[-1] < losses[0] - 0.05


def test_kill_9_of_a_rank(place, whole):
    with Running(place) as run:
        run.until_saved(2 * EVERY).until_step(2 * EVERY + 1).signal(1, signal.SIGKILL)
        killed = time.time()
        assert run.ended() != 0
        who = table.named(run.logs)
    _, run = resumed(place, whole)
    row = table.add("SIGKILL of a rank", who, run.logs, killed)
    assert 0 <= row.lost <= EVERY + 1, "at most one interval is lost, and what came while it was written"
    assert who == "rank 1 vanished"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_one_rank_is_told_to_end_and_all_save(place, whole, number):
    with Running(place) as run:
        run.until_step(EVERY + 1).signal(1, number)
        told = time.time()
        assert run.ended() != 0
        ended = run.named("requeue")[0]
        assert run.named("requeue", 1)[0]["by"] == signal.Signals(number).name and "exitcode  : 75" in run.text()
    event, again = resumed(place, whole)
    row = table.add(f"{signal.Signals(number).name} to a rank, started again", "nobody", again.logs, told)
    assert event["step"] == ended["step"] == run.named("step")[-1]["step"] and row.lost == 0, "not one step is lost"


def damage_cut(files):
    os.truncate(files[0], files[0].stat().st_size - 1)


def damage_bit(files):
    data = bytearray(files[1].read_bytes())
    data[len(data) // 2] ^= 1
    files[1].write_bytes(data)


def damage_no_metadata(files):
    (files[0].parent / ".metadata").unlink()


def damage_no_manifest(files):
    (files[0].parent / manifest.NAME).unlink()


def damage_manifest(files):
    os.truncate(files[0].parent / manifest.NAME, 40)


def newest_two(root):
    """The newest complete checkpoint and the one before: the kill may have come while another was written."""
    return [where for where in manifest.candidates(root) if (where / manifest.NAME).exists()][:2]


def test_a_truncated_checkpoint_is_named_and_the_one_before_is_used(place, whole):
    with Running(place) as run:
        run.until_saved(3 * EVERY).signal(0, signal.SIGKILL)
        killed = time.time()
        run.ended()
    newest, before = newest_two(place / "ck")
    damage_cut(sorted(newest.glob("*.distcp")))
    event, run = resumed(place, whole)
    named = f"checkpoint of step {manifest.step_of(newest)}"
    table.add("newest checkpoint truncated, SIGKILL of a rank", named, run.logs, killed)
    assert event["name"] == before.name
    assert newest.name in [refused["name"] for refused in run.named("checkpoint_refused")]


@pytest.mark.parametrize("damage", [damage_bit, damage_no_metadata, damage_no_manifest, damage_manifest])
def test_a_checkpoint_damaged_otherwise_is_not_used_either(killed, whole, damage):
    newest, before = newest_two(killed / "ck")
    damage(sorted(newest.glob("*.distcp")))
    event, run = resumed(killed, whole)
    assert event["name"] == before.name
    assert newest.name in [refused["name"] for refused in run.named("checkpoint_refused")]


@pytest.fixture
def small_disk(tmp_path):
    where = tmp_path / "small"
    where.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("mounting a small file system needs root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(where)], check=True)
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def test_a_full_disk_costs_a_checkpoint_and_not_the_run(place, whole, small_disk):
    with Running(place, checkpoints=small_disk) as run:
        run.until_saved(2 * EVERY)
        filler = small_disk / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False)
        failed = run.until(lambda run: run.named("checkpoint_failed"), "a checkpoint fails")[0]
        run.until_step(failed["step"] + 1).signal(1, signal.SIGKILL)
        killed = time.time()
        run.ended()
    filler.unlink()
    event, run = resumed(place, whole, checkpoints=small_disk)
    table.add(
        "disk full in a checkpoint, then SIGKILL of a rank", f"checkpoint of step {failed['step']}", run.logs, killed
    )
    assert event["step"] < failed["step"]


def test_a_run_whose_last_checkpoint_has_no_room_is_not_done(place, small_disk):
    with Running(place, checkpoints=small_disk) as run:
        run.until_saved(2 * EVERY)
        filler = small_disk / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False)
        assert run.ended() != 0
        assert f"step {STEPS} is trained and not saved" in run.named("exception")[0]["text"]
        assert not run.named("finished")


def test_another_number_of_ranks_resumes_by_resharding_and_says_so(killed, whole):
    with Running(killed, ranks=4, attempt=1) as run:
        event = run.good().named("resumed")[0]
        assert (event["saved_world"], event["world"]) == (2, 4)
        losses = [float.fromhex(step["loss_hex"]) for step in run.named("step")]
    assert losses[-1] == pytest.approx(float.fromhex(whole[STEPS]), abs=0.02)


def test_a_stopped_rank_is_named_within_the_timeout(place, whole):
    with Running(place, HANG) as run:
        run.until_saved(EVERY).until_step(EVERY + 1).signal(1, signal.SIGSTOP)
        stopped = time.time()
        event = run.until(lambda run: run.named("exception"), "the others give up")[0]
        assert event["time"] - stopped < 2 * HANG_S
        run.until(lambda run: (run.logs / "flight-000000.json").exists(), "a dump")
        (one,) = table.blame(run.logs)
        assert (one.kind, one.rank, one.device) == ("hung", 1, 1)
        assert run.ended() != 0
    _, run = resumed(place, whole)
    table.add(f"SIGSTOP of a rank (timeout {HANG_S} s)", "rank 1 hung", run.logs, stopped)


def test_changed_code_is_said_and_goes_on(killed, whole):
    shutil.copytree(ROOT / "training", killed / "src" / "training")
    with (killed / "src" / "training" / "order.py").open("a") as file:
        file.write("# another version\n")
    event, _ = resumed(killed, whole, code=killed / "src")
    assert event["code_changed"] is True


def test_where_nothing_is_whole_any_more_it_does_not_begin_again(killed):
    for where in manifest.candidates(killed / "ck"):
        damage_cut(sorted(where.glob("*.distcp")))
    with Running(killed, attempt=1) as run:
        assert run.ended() != 0 and not run.named("step")
        assert "checkpoints is whole" in run.named("exception")[0]["text"]
