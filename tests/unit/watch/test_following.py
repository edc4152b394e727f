"""Where reading stopped, what was lost in between, floods, and the real buffer of this machine."""

import json
import os
import random

import pytest

from flightline_node.watch import kmsg
from flightline_node.watch import marker as marking
from flightline_node.watch.intake import Intake
from flightline_node.watch.verdicts import KERNEL
from tests.unit.made import program

from .scene import QUIET, XID_31, XID_79


def lines(messages, first=0):
    return b"".join(f"3,{first + n},{(first + n) * 10},-;{text}\n".encode() for n, text in enumerate(messages))


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    yield path, writer
    os.close(writer)


def test_what_was_read_before_is_not_read_again(pipe):
    path, writer = pipe
    source = kmsg.Kmsg(str(path), after=kmsg.Mark(1, 10))
    os.write(writer, lines(["a", "b", "c", "d"]))
    batch = source.read()
    assert batch.data.count(b"\n") == 2
    assert (batch.first, batch.last, batch.lost) == ((2, 20), (3, 30), 0)


def test_a_hole_in_the_numbers_is_counted(pipe):
    path, writer = pipe
    source = kmsg.Kmsg(str(path), after=kmsg.Mark(1, 10))
    os.write(writer, lines(["e", "f"], first=7))
    assert source.read().lost == 5
    os.write(writer, lines(["g"], first=9))
    assert source.read().lost == 0


def test_properties_of_a_record_are_no_messages(pipe):
    path, writer = pipe
    source = kmsg.Kmsg(str(path))
    os.write(writer, lines(["e"]) + b" SUBSYSTEM=pci\n DEVICE=+pci:0000:53:00.0\n")
    assert source.read().data == lines(["e"])


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg is not readable here")
def test_the_kernels_own_buffer_is_read_once_and_whole():
    first = kmsg.Kmsg("/dev/kmsg")
    batch = first.read()
    assert batch.last.seq - batch.first.seq + 1 == batch.data.count(b"\n")
    again = kmsg.Kmsg("/dev/kmsg", after=batch.last)
    more = again.read()
    assert more.first.seq in (-1, batch.last.seq + 1)
    assert more.lost == 0
    assert (kmsg.newest("/dev/kmsg") or 0) >= batch.last.seq


def journalctl(scene, *lines, ends=""):
    """Simulated: prints these lines, seconds since the boot and message, after journalctl(1), short-monotonic."""
    text = "\n".join(f"[{stamp:12.6f}] gpu-07 kernel: {message}" for stamp, message in lines)
    program(scene.tools / "journalctl", f"cat <<'EOF'\n{text}\nEOF\n{ends}")


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr("flightline_node.watch.journal.AGAIN_S", (0.2, 0.2))


def hole(scene, size):
    """Two quiet messages with that many lost between them: each number is a millisecond."""
    scene.say(QUIET).quiet(0.1)
    scene.sequence += size
    return scene.say(QUIET)


def test_a_message_lost_to_the_buffer_is_asked_of_the_journal(scene, patient):
    journalctl(scene, (0.0, QUIET), (0.001, QUIET), (0.002, XID_79), (0.003, QUIET))
    hole(scene.with_slurm().boot(), 2)
    marker = scene.until(scene.drained)
    scene.quiet(0.6)
    assert {one["check"] for one in marker["findings"]} == {"xid", "gpu_lost"}
    assert "kernel_errors|node" not in scene.marker()["latched"], "the journal had all of them"


def test_a_hole_in_what_is_read_at_the_start_is_asked_of_the_journal(scene, patient):
    """Overwritten while the watcher was starting: the numbers of the first batch have the hole already."""
    journalctl(scene, (0.0, QUIET), (0.001, XID_79), (0.002, QUIET))
    scene.say(QUIET)
    scene.sequence += 1
    scene.say(QUIET).with_slurm().boot()
    marker = scene.until(scene.drained)
    assert "xid|0000:53:00" in marker["latched"]


def test_what_was_lost_while_nobody_watched_is_asked_of_the_journal(scene, patient):
    scene.with_slurm().boot().say(QUIET).quiet(0.2)
    scene.watcher.end()
    journalctl(scene, (0.0, QUIET), (0.002, XID_79), (0.003, QUIET))
    scene.sequence += 2
    scene.say(QUIET).boot()
    marker = scene.until(scene.drained)
    assert "xid|0000:53:00" in marker["latched"]


def test_a_loss_that_the_journal_cannot_fill_is_no_pass(scene, patient):
    journalctl(scene, ends="exit 1")
    hole(scene.with_slurm().boot(), 500)
    marker = scene.until(scene.drained)
    assert marker["findings"][0]["status"] == "UNKNOWN"
    assert "500 kernel messages were overwritten" in marker["findings"][0]["message"]
    assert "lacks 500 of them" in marker["findings"][0]["message"]


def test_a_journal_that_has_the_boot_but_not_what_was_lost_is_no_pass(scene, patient):
    """Vacuumed, or journald missed it too: lines from before and after the hole prove nothing about it."""
    journalctl(scene, (0.0, QUIET), (0.004, QUIET), (0.005, QUIET), (0.006, QUIET))
    hole(scene.with_slurm().boot(), 3)
    assert scene.until(scene.drained)["findings"][0]["status"] == "UNKNOWN"


def test_a_journal_that_is_behind_is_asked_again(scene, monkeypatch):
    """Simulated: the first answer comes before journald has written what it was given."""
    monkeypatch.setattr("flightline_node.watch.journal.AGAIN_S", (0.2, 20.0))  # the second for a busy machine
    journalctl(scene, (0.0, QUIET))
    hole(scene.with_slurm().boot(), 1)
    scene.quiet(0.15)
    assert scene.marker() is None
    journalctl(scene, (0.0, QUIET), (0.001, XID_79), (0.002, QUIET))
    assert "xid|0000:53:00" in scene.until(scene.drained)["latched"]


def test_a_flood_of_losses_does_not_put_off_the_answer(scene, patient):
    """Each loss is a question, but the one that runs is answered first."""
    journalctl(scene, (0.001, XID_79), ends="sleep 0.3")
    hole(scene.with_slurm().boot(), 1)

    def more():
        scene.sequence += 1
        scene.say(QUIET)
        return scene.drained()

    assert scene.until(more)


def test_the_place_is_kept_with_the_boot(scene):
    scene.with_slurm().boot().say(QUIET, QUIET).quiet(0.2)
    scene.watcher.end()
    state = json.loads((scene.directory / marking.STATE).read_text())
    assert state == {"boot_id": kmsg.boot_id(), "seq": 1, "us": 1000}
    (scene.directory / marking.STATE).write_text(json.dumps({"boot_id": "another", "seq": 10_000}))
    scene.boot()
    scene.sequence = 0
    scene.say(XID_79)
    assert scene.until(scene.drained), "the numbers of another boot mean nothing"


def test_a_state_that_is_damaged_is_no_reason_to_stop(scene):
    scene.directory.mkdir()
    for name in (marking.STATE, marking.RELEASED):
        (scene.directory / name).write_bytes(b"\x00\xff{")
    scene.with_slurm().boot().say(XID_79)
    assert scene.until(scene.drained)


def _judged(scene, intake):
    return [(one.check, str(one.status)) for one in scene.rules().judge(KERNEL, {"kernel": intake.facts()})]


@pytest.mark.parametrize("noise", [XID_31, QUIET, "nvme nvme1: I/O 12 QID 3 timeout, aborting", "usb 1-1: failed %d"])
def test_a_flood_hides_nothing_fatal_and_holds_its_memory(scene, noise):
    import tracemalloc

    intake, flood = Intake(), []
    for number in range(20_000):
        text = noise.replace("%d", str(number)).replace("4711", str(number))
        flood.append(XID_79 if number == 14_123 else text)
    data = lines(flood)
    tracemalloc.start()
    for start in range(0, len(data), 1 << 20):
        end = data.rfind(b"\n", 0, start + (1 << 20)) + 1
        begin = data.rfind(b"\n", 0, start) + 1 if start else 0
        intake.take(data[begin:end])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ("xid", "FAIL") in _judged(scene, intake)
    assert peak < 16 << 20


def test_a_storm_of_one_message_is_thinned_by_its_bucket():
    now = [0.0]
    intake = Intake(lambda: now[0])
    intake.take(lines([XID_31] * 1000))
    assert intake.suppressed == 1000 - 64
    now[0] = 10.0
    intake.take(lines([XID_31] * 1000))
    assert intake.suppressed == 2000 - 128


def test_a_line_that_breaks_the_parser_hides_no_other(scene, monkeypatch):
    intake = Intake()
    feed = intake.stream.feed

    def breaks(data):
        if b"64:00" in data:
            raise RecursionError
        return feed(data)

    monkeypatch.setattr(intake.stream, "feed", breaks)
    intake.take(lines([XID_31, XID_79, XID_31]))
    assert ("xid", "FAIL") in _judged(scene, intake)


def test_garbage_of_every_kind_ends_in_no_exception_and_no_quarantine(scene):
    random.seed(16)
    intake = Intake()
    for _ in range(200):
        intake.take(bytes(random.choices(range(256), k=400)).replace(b"\n", b"x") + b"\n")
    assert _judged(scene, intake) == []
