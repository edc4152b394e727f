"""lustre: mounts, options, evictions, lost servers."""

import pytest

from flightline_node.read.parsers import kernel, mounts
from tests.harness import BROKEN, only, sample, status

from .table import FAIL, FIX_CONFIG, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

LINE = "2026-11-20T08:{:02d}:00+0000 ip-10-0-0-10 kernel: {}\n"
TARGET = "abcdefgh-OST0003-osc-ffff8a1b3c5d7000"
EVICTED = f"LustreError: 167-0: {TARGET}: This client was evicted by abcdefgh-OST0003; in progress operations fail."
LOST = f"Lustre: {TARGET}: Connection to abcdefgh-OST0003 (at 10.0.1.23@tcp) was lost; in progress operations wait"
REFUSED = "LustreError: 11-0: fsx-OST0000-osc-ff: operation ost_read to node 10.0.0.4@tcp failed: rc = -107"
RESTORED = f"Lustre: {TARGET}: Connection restored to abcdefgh-OST0003 (at 10.0.1.23@tcp)"


def mounted(options="rw,noatime,flock", more=""):
    text = f"/dev/nvme0n1p1 / xfs rw 0 0\n10.0.1.23@tcp:/abcdefgh /fsx lustre {options} 0 0\n{more}"
    return mounts.parse({"mounts.txt": text.encode()})


def log(*messages):
    lines = [LINE.format(0, "Linux version 6.12.46 (gcc)"), *(LINE.format(n, m) for n, m in enumerate(messages, 1))]
    return kernel.parse({"kernel.log": "".join(lines).encode()})


def judge(facts=None, messages=(), **expected):
    return judging("lustre", {"mounts": facts or mounted(), "kernel": log(*messages)}, expected=expected)


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


test_lustre = table(
    row("mounted", judge(mounts.parse({"mounts.txt": sample("proc/fsx-mounts.txt")})), PASS, says="/fsx"),
    row("without the kernel log it says so", judging("lustre", {"mounts": mounted()}), PASS, says="not read"),
    row("evicted", judge(messages=[EVICTED, EVICTED]), FAIL, measured=2, first=EVICTED),
    row("a lost server counts until it is back", judge(messages=[RESTORED, LOST]), FAIL,
        device={"name": "abcdefgh-OST0003"}),
    row("a lost server counts until it is back", judge(messages=[LOST, RESTORED]), PASS),
    row("a lost server counts until it is back", judge(messages=[EVICTED, RESTORED]), WARN),
    row("a lost server counts until it is back", judge(messages=[RESTORED, EVICTED]), FAIL),
    row("a lost server counts where the mounts are not known", judging("lustre", {"kernel": log(LOST)}), FAIL,
        says="was lost"),
    row("a lost server counts where the mounts are not known", judge(NO_LUSTRE, [LOST]), SKIP),
    *(row("a mount that failed and is not there", judge(NO_LUSTRE, [NO_CONFIG, line]), FAIL, evidence=(NO_CONFIG, line))
        for line in NOT_MOUNTED),
    row("a mount that failed and is not there", judging("lustre", {"kernel": log(NO_CONFIG)}), FAIL),
    row("a mount that failed and came right", judge(messages=[NO_CONFIG]), PASS),
    row("a mount that failed and came right", judge(NO_LUSTRE, [NO_CONFIG, "Lustre: Mounted abcdefgh-client"]), SKIP),
    row("a mount that failed and came right", judge(NO_LUSTRE, ["Lustre: Mounted abcdefgh-client", NO_CONFIG]), FAIL),
    row("read only", judge(mounted("ro,flock"), mounts=["/fsx/"]), FAIL, remedy=FIX_CONFIG, device={"mount": "/fsx"}),
    row("read only", judge(mounted("ro,flock")), INFO, device={"mount": "/fsx"}),
    row("file locks", judge(mounted("rw,noatime")), WARN, says="flock"),
    row("file locks", judge(mounted("rw,localflock")), PASS),
    # the check mounts judges other file systems
    row("declared and not mounted", judge(mounted(), mounts=["/fsx", "/scratch"], modules=["lustre"]), FAIL,
        device={"mount": "/scratch"}),
    row("declared and not mounted", judge(mounted(), mounts=["/scratch"]), PASS),
    row("an eviction counts without a mount and without a mount table",
        [judge(mounts.parse({"mounts.txt": b"/dev/nvme0n1p1 / xfs rw 0 0\n"}), [EVICTED]),
        judging("lustre", {"kernel": log(EVICTED)})], FAIL, measured=1),
    row("an eviction counts without a mount and without a mount table", judging("lustre", {"kernel": log("Lustre: x")}),
        SKIP, says="mount table"),
    *(row("what comes again and again is no maintenance", judge(messages=[line] * number), FAIL, measured=number,
        reason=f"{reason}.{kind}")
        for kind, line, most in [("refused", REFUSED, 20), ("evicted", EVICTED, 5)]
        for number, reason in [(most - 1, "stands"), (most, "trouble")]),
    row("unreadable and missing", judging("lustre", {"mounts": BROKEN}), UNKNOWN),
)  # fmt: skip


def test_nothing_to_judge():
    plain = mounts.parse({"mounts.txt": b"/dev/nvme0n1p1 / xfs rw 0 0\n"})
    assert only(judge(plain), SKIP).message
    assert status(judge(plain, modules=["lustre"])) is SKIP


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (REFUSED, "operations"),
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
def test_trouble_of_server_and_network_stands_until_a_connection_is_back(line, words):
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n[ 2.0] {line}\n".encode()})
    assert words in only(judging("lustre", {"kernel": facts}, required=False), FAIL).message
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert "could not be read" in only(judging("lustre", {"kernel": facts}, required=False), WARN).message
