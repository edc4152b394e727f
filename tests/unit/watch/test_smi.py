"""A simulated nvidia-smi --loop: what its rows, its errors and its silence mean. Formats after its own help."""

import time

import pytest

from flightline_node.watch import smi as smi_feed
from tests.unit.made import program

NAMES = "ABCDEFGH"
ROW = "{i}, 00000000:{b}:00.0, GPU-{i}, 16530{i}, NVIDIA H100 80GB HBM3, Enabled, Disabled, {ecc}, 0, {pending}, {failure}, {action}"


def row(index, ecc="0", pending="No", failure="No", action="None"):
    return ROW.format(i=index, b=f"{0x53 + index:x}", ecc=ecc, pending=pending, failure=failure, action=action)


def rows(**changes):
    return [row(0, **changes), *(row(i) for i in range(1, 8))]


class Feed:
    """A feed whose tool prints what the test wrote into a file, once per sample."""

    def __init__(self, scene, body):
        program(scene.tools / "nvidia-smi", f'cd {scene.tools}\necho "$*" >> smi-asked\n{body}')
        self.feed = smi_feed.SmiFeed(scene.rules(), f"{scene.tools}:/usr/bin:/bin", 1.0)

    def until(self, most_s=60.0, wanted=lambda found: found):
        end, found = time.monotonic() + most_s, []
        while time.monotonic() < end and not wanted(found):
            found += self.feed.step(self.feed.fd is not None, time.monotonic())
            time.sleep(0.01)
        return found

    def close(self):
        self.feed.close()


@pytest.fixture
def feed(scene, monkeypatch):
    monkeypatch.setattr(smi_feed, "SAMPLE_ENDS_S", 0.05)
    monkeypatch.setattr(smi_feed, "RETRY_S", 0.1)
    made = []

    def make(body):
        made.append(Feed(scene, body))
        return made[-1]

    yield make
    for one in made:
        one.close()


def printing(lines, every="0.2"):
    text = "\n".join(lines)
    return f"while :; do cat <<'EOF'\n{text}\nEOF\nsleep {every}; done"


def test_a_healthy_node_finds_nothing_and_learns_its_gpus(feed):
    made = feed(printing(rows()))
    assert made.until(wanted=lambda found: found or made.feed._rules.gpus) == []
    assert made.until(1.0) == []
    assert [gpu["serial"] for gpu in made.feed._rules.gpus] == [f"16530{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("changes", "check", "remedy"),
    [
        ({"ecc": "3"}, "ecc_uncorrected", "RESET_GPU"),
        ({"pending": "Yes"}, "row_remap", "RESET_GPU"),
        ({"pending": "1"}, "row_remap", "RESET_GPU"),
        ({"failure": "Yes"}, "row_remap", "REPLACE"),
        ({"action": "Reboot"}, "recovery_action", "REBOOT"),
        ({"ecc": "[GPU is lost]"}, "gpu_lost", "REBOOT"),
    ],
)
def test_what_the_checks_of_a_preflight_say_counts_after_two_samples(feed, changes, check, remedy):
    found = feed(printing(rows(**changes))).until()
    assert {(one.check, str(one.remedy)) for one in found if one.check == check} == {(check, remedy)}
    assert found[0].device.get("index") == 0


def test_one_odd_sample_is_nothing(feed):
    odd, good = "\n".join(rows(ecc="3")), "\n".join(rows())
    body = f"cat <<'EOF'\n{odd}\nEOF\nsleep 0.3\nwhile :; do cat <<'EOF'\n{good}\nEOF\nsleep 0.3; done"
    assert feed(body).until(1.5) == []


def test_a_lost_gpu_in_place_of_a_row(feed):
    lines = [
        "Unable to determine the device handle for GPU0: 0000:53:00.0: GPU is lost.  Reboot the system to recover this GPU"
    ]
    found = feed(printing([*lines, *rows()[1:]])).until()
    assert {one.check for one in found} == {"gpu_lost"}


def test_a_gpu_that_is_not_listed_any_more(feed):
    found = feed(printing(rows()[:7])).until()
    assert [(one.check, one.reason, str(one.remedy)) for one in found] == [("gpu_count", "too_few", "REBOOT")]


def test_rows_that_come_late_are_no_missing_gpus(feed):
    """A driver under load: the second half of each sample comes after a pause that ends a sample."""
    parts = [f"cat <<'EOF'\n{chr(10).join(part)}\nEOF\nsleep 0.3" for part in (rows()[:4], rows()[4:])]
    assert feed("while :; do " + "\n".join(parts) + "\ndone").until(3.0) == []


def test_a_driver_that_is_gone_is_found_although_the_tool_ends(feed):
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    found = feed(f'echo "{text}"; exit 9').until()
    assert {one.check for one in found} == {"gpu_lost"}


def test_a_field_that_the_driver_does_not_know_is_left_out(feed, scene):
    body = f"""case "$*" in *gpu_recovery_action*) echo 'Field "gpu_recovery_action" is not a valid field to query.'; exit 2;; esac
{printing([line.rpartition(", ")[0] for line in rows(pending="Yes")])}"""
    found = feed(body).until()
    assert {one.check for one in found} == {"row_remap"}
    assert "gpu_recovery_action" not in (scene.tools / "smi-asked").read_text().splitlines()[-1]


def test_silence_is_a_finding_of_its_own(feed, monkeypatch):
    made = feed("exec sleep 60")
    made.feed._child._silent_s = made.feed._silent_s = 0.2
    found = made.until()
    assert [(one.check, str(one.status)) for one in found[:1]] == [("gpu_lost", "UNKNOWN")]
    assert found[0].evidence
    assert "twice in a row" in found[0].message


def test_a_tool_that_does_not_die_is_told_at_once_and_not_started_beside(feed, scene, monkeypatch):
    """Uninterruptible sleep cannot be made here: the kill is left out instead, as the kernel would leave it pending."""
    made = feed("exec sleep 60")
    monkeypatch.setattr("flightline_node.watch.child.os.killpg", lambda pid, number: None)
    made.feed._child._silent_s = made.feed._silent_s = 0.2
    found = made.until()
    assert "does not die when killed" in found[0].message
    made.until(0.5, lambda _: False)
    assert len((scene.tools / "smi-asked").read_text().splitlines()) == 1
    for left in made.feed._child._left:
        left.kill()


def test_without_the_tool_there_is_nothing_to_follow(scene, monkeypatch):
    made = smi_feed.SmiFeed(scene.rules(), str(scene.tools), 1.0)
    assert made.step(False, time.monotonic()) == []
    assert made.fd is None
    assert made.due > time.monotonic() + 60
