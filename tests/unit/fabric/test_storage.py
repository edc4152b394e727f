"""The shared file system with all nodes at once: the slow client is named after two tries; what is unknown passes nobody."""

import time

import pytest

from flightline.fabric import storage
from flightline.fabric.drive import RoundAnswer
from flightline_node.ask.active import fs_io, shared_io

HOSTS = tuple(f"n{at}" for at in range(6))


def good(write=100.0, read=200.0, **more):
    return RoundAnswer({"late_s": 0.1, "write_mb_s": write, "read_mb_s": read, "verified": True, **more})


def played(*tries, wanted=0.0, hosts=HOSTS):
    """tries: host -> answer, where it is not a healthy one."""
    left, asked = list(tries), []

    def measure(names):
        asked.append(list(names))
        different = left.pop(0) if len(left) > 1 else left[0]
        return {host: different.get(host, good()) for host in names if different.get(host, True)}

    done = storage.test(hosts, measure, lambda _: None)
    found = storage.findings("/fsx", hosts, done, wanted)
    return {one["device"].get("host", ""): one for one in found if one["status"] != "PASS"}, len(asked), found


def test_healthy_clients_pass_with_their_figures_after_one_try():
    bad, tries, found = played({})
    assert bad == {} and tries == 1 and len(found) == 6
    assert found[0]["message"] == "/fsx with 6 nodes at once: write 100 MB/s, read 200 MB/s"


@pytest.mark.parametrize("slow", [good(write=20.0), good(read=30.0), good(write=0.0)])
def test_a_client_slow_twice_is_named_with_its_figure_and_the_others_median(slow):
    bad, tries, _ = played({"n3": slow})
    assert tries == 2 and set(bad) == {"n3"} and bad["n3"]["status"] == "FAIL"
    assert bad["n3"]["measured"] < bad["n3"]["expected"] and "the 5 others at once reach" in bad["n3"]["message"]


@pytest.mark.parametrize(
    ("write", "slow"),
    [
        ((721.8, 405.9, 1.0, 718.5), {"n2"}),  # measured: the spread with n2 in it hid n2
        ((900.0, 500.0, 100.0, 1.0), {"n3"}),
        ((720.0, 1.0, 1.0, 718.0), {"n1", "n2"}),
        ((700.0, 500.0, 400.0, 300.0), set()),
        ((700.0, 690.0, 20.0), {"n2"}),
    ],
)
def test_among_few_clients_the_slow_one_does_not_hide_itself(write, slow):
    hosts = HOSTS[: len(write)]
    answers = {host: good(write=speed) for host, speed in zip(hosts, write, strict=True)}
    assert set(played(answers, hosts=hosts)[0]) == slow


def test_slow_once_is_nobodys_fault_and_slow_in_the_last_try_alone_is_unknown():
    assert played({"n3": good(write=20.0)}, {})[0] == {}
    bad, _, _ = played({"n3": good(write=20.0)}, {"n4": good(write=20.0)})
    assert {host: one["status"] for host, one in bad.items()} == {"n4": "UNKNOWN"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RoundAnswer(trouble="unreachable: gone", lost=True), "unreachable"),
        (RoundAnswer({"error": "/fsx is no mount on this node"}), "no mount"),
        (RoundAnswer({"refused": "nearly full"}), "nearly full"),
        (RoundAnswer({}), "gave no speed"),
        (good(write=float("nan")), "gave no speed"),
        (good(late_s=9.0), "began 9.0 s after the others"),
        (False, "gave no answer"),
    ],
)
def test_who_measured_nothing_is_unknown(answer, why):
    bad, _, _ = played({"n2": answer})
    assert bad["n2"]["status"] == "UNKNOWN" and why in bad["n2"]["message"] and set(bad) == {"n2"}


def test_other_content_than_was_written_fails_whatever_the_speed():
    bad, _, _ = played({"n5": good(verified=False, wrong="byte 7: wrote 0x01, read 0x00")})
    assert bad["n5"]["status"] == "FAIL" and "byte 7" in bad["n5"]["message"]


def test_the_sum_is_held_against_the_file_systems_throughput():
    assert played({}, wanted=700.0)[0] == {}
    bad, _, _ = played({}, wanted=1000.0)
    assert bad[""]["status"] == "FAIL" and (bad[""]["measured"], bad[""]["expected"]) == (600.0, 800.0)


def test_of_two_nodes_none_is_named():
    assert played({"n1": good(write=1.0)}, hosts=HOSTS[:2])[0] == {}


def test_a_wide_spread_names_nobody_who_is_part_of_it():
    spread = {host: good(write=20.0 * (at + 1)) for at, host in enumerate(HOSTS)}
    assert played(spread)[0] == {}


def test_a_node_waits_for_the_moment_and_refuses_what_is_no_mount(tmp_path, monkeypatch):
    assert "no mount" in shared_io.run(str(tmp_path), time.time(), 1, 1)["error"]
    monkeypatch.setattr(shared_io, "mounts", lambda: {str(tmp_path)})
    monkeypatch.setattr(fs_io, "measure", lambda directory, bounds: {"size": bounds.size_bytes, "s": bounds.write_s})
    moment = time.time() + 0.3
    found = shared_io.run(str(tmp_path), moment, 2.0, 3)
    assert time.time() >= moment and (found["size"], found["s"]) == (3 << 20, 2.0) and found["late_s"] >= 0
    assert "look at the clocks" in shared_io.run(str(tmp_path), time.time() + 9999, 1, 1)["error"]
    assert shared_io.run(str(tmp_path), time.time() - 5, 1, 1)["late_s"] >= 5
