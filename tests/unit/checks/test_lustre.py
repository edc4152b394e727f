"""lustre: mounts, options, evictions, lost servers."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import kernel, mounts
from tests.harness import BROKEN, judge_facts, only, sample, status

LINE = "2026-11-20T08:{:02d}:00+0000 ip-10-0-0-10 kernel: {}\n"
TARGET = "abcdefgh-OST0003-osc-ffff8a1b3c5d7000"
EVICTED = f"LustreError: 167-0: {TARGET}: This client was evicted by abcdefgh-OST0003; in progress operations fail."
LOST = f"Lustre: {TARGET}: Connection to abcdefgh-OST0003 (at 10.0.1.23@tcp) was lost; in progress operations wait"
RESTORED = f"Lustre: {TARGET}: Connection restored to abcdefgh-OST0003 (at 10.0.1.23@tcp)"


def mounted(options="rw,noatime,flock", more=""):
    text = f"/dev/nvme0n1p1 / xfs rw 0 0\n10.0.1.23@tcp:/abcdefgh /fsx lustre {options} 0 0\n{more}"
    return mounts.parse({"mounts.txt": text.encode()})


def log(*messages):
    lines = [LINE.format(0, "Linux version 6.12.46 (gcc)"), *(LINE.format(n, m) for n, m in enumerate(messages, 1))]
    return kernel.parse({"kernel.log": "".join(lines).encode()})


def judge(facts=None, messages=(), **expected):
    return judge_facts("lustre", {"mounts": facts or mounted(), "kernel": log(*messages)}, expected=expected)


def test_mounted():
    facts = mounts.parse({"mounts.txt": sample("proc/fsx-mounts.txt")})
    assert "/fsx" in only(judge(facts), Status.PASS).message


def test_without_the_kernel_log_it_says_so():
    finding = only(judge_facts("lustre", {"mounts": mounted()}), Status.PASS)
    assert "not read" in finding.message


def test_evicted():
    finding = only(judge(messages=[EVICTED, EVICTED]), Status.WARN)
    assert (finding.measured, finding.evidence[0]) == (2, EVICTED)


def test_a_lost_server_counts_until_it_is_back():
    finding = only(judge(messages=[RESTORED, LOST]), Status.WARN)
    assert finding.device == {"name": "abcdefgh-OST0003"}
    assert status(judge(messages=[LOST, RESTORED])) is Status.PASS


def test_a_lost_server_counts_where_the_mounts_are_not_known():
    assert "was lost" in only(judge_facts("lustre", {"kernel": log(LOST)}), Status.WARN).message
    assert status(judge(NO_LUSTRE, [LOST])) is Status.SKIP


# Client 2.15 and 2.12 against a server that does not answer as wanted; hand-written after Lustre's llite and mgc sources.
NO_CONFIG = (
    "LustreError: 15c-8: MGC10.0.1.23@tcp: Confguration from log abcdefgh-client failed from MGS -5. "
    "Communication error between node & MGS, a bad configuration, or other errors. See syslog for more info"
)
NOT_MOUNTED = (
    "LustreError: 2611:0:(super25.c:187:lustre_fill_super()) llite: Unable to mount <unknown>: rc = -5",
    "LustreError: 2611:0:(obd_mount.c:1608:lustre_fill_super()) Unable to mount  (-5)",
)
NO_LUSTRE = mounts.parse({"mounts.txt": b"/dev/nvme0n1p1 / xfs rw 0 0\n"})


def test_a_mount_that_failed_and_is_not_there():
    for line in NOT_MOUNTED:
        finding = only(judge(NO_LUSTRE, [NO_CONFIG, line]), Status.WARN)
        assert finding.evidence == (NO_CONFIG, line)
    assert status(judge_facts("lustre", {"kernel": log(NO_CONFIG)})) is Status.WARN


def test_a_mount_that_failed_and_came_right():
    done = "Lustre: Mounted abcdefgh-client"
    assert status(judge(messages=[NO_CONFIG])) is Status.PASS
    assert status(judge(NO_LUSTRE, [NO_CONFIG, done])) is Status.SKIP
    assert status(judge(NO_LUSTRE, [done, NO_CONFIG])) is Status.WARN


def test_read_only():
    finding = only(judge(mounted("ro,flock"), mounts=["/fsx/"]), Status.FAIL)
    assert (finding.remedy, finding.device) == (Remedy.FIX_CONFIG, {"mount": "/fsx"})
    assert only(judge(mounted("ro,flock")), Status.INFO).device == {"mount": "/fsx"}


def test_file_locks():
    assert "flock" in only(judge(mounted("rw,noatime")), Status.WARN).message
    assert status(judge(mounted("rw,localflock"))) is Status.PASS


def test_declared_and_not_mounted():
    findings = judge(mounted(), mounts=["/fsx", "/scratch"], modules=["lustre"])
    assert only(findings, Status.FAIL).device == {"mount": "/scratch"}
    assert status(judge(mounted(), mounts=["/scratch"])) is Status.PASS  # the check mounts judges other file systems


def test_nothing_to_judge():
    plain = mounts.parse({"mounts.txt": b"/dev/nvme0n1p1 / xfs rw 0 0\n"})
    assert only(judge(plain), Status.SKIP).message
    assert status(judge(plain, modules=["lustre"])) is Status.SKIP


def test_an_eviction_counts_without_a_mount_and_without_a_mount_table():
    plain = mounts.parse({"mounts.txt": b"/dev/nvme0n1p1 / xfs rw 0 0\n"})
    assert only(judge(plain, [EVICTED]), Status.WARN).measured == 1
    assert only(judge_facts("lustre", {"kernel": log(EVICTED)}), Status.WARN).measured == 1
    assert "mount table" in only(judge_facts("lustre", {"kernel": log("Lustre: x")}), Status.SKIP).message


def test_unreadable_and_missing():
    assert status(judge_facts("lustre", {"mounts": BROKEN})) is Status.UNKNOWN


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "LustreError: 11-0: fsx-OST0000-osc-ff: operation ost_read to node 10.0.0.4@tcp failed: rc = -107",
            "operations",
        ),
        (
            "LNetError: 1:0:(a.c:2:f()) A connection with 12345-10.0.0.4@tcp (10.0.0.4:988) timed out; the network or",
            "LNet",
        ),
        (
            "LustreError: 132-0: fsx-OST0000-osc-ff: BAD READ CHECKSUM: from 10.0.0.4@tcp inode [0x2:0x3:0x0]",
            "checksum",
        ),
        (
            "Lustre: 8:0:(client.c:2309:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply",
            "requests",
        ),
    ],
)
def test_trouble_of_server_and_network_warns(line, words):
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] {line}\n".encode()})
    assert words in only(judge_facts("lustre", {"kernel": facts}, required=False), Status.WARN).message
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert "could not be read" in only(judge_facts("lustre", {"kernel": facts}, required=False), Status.WARN).message
