"""disk_space: full root, no inodes, roomy scratch, images full by design, a mount that does not answer."""

from functools import partial

from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, UNKNOWN, WARN, judging, row, table

GIB = 1 << 20


def fs(mount, percent, **rest):
    return {"mount": mount, "filesystem": f"/dev{mount}x", "size_kib": 200 * GIB, "used_percent": percent, **rest}


def df(*entries, errors=()):
    return {"df": {"filesystems": list(entries), "errors": list(errors)}}


def mounts(*entries):
    return {"mounts": {"mounts": [dict(zip(("mount", "fstype", "options"), e, strict=True)) for e in entries]}}


judge = partial(judging, "disk_space")

test_disk_space = table(
    row("recorded machine", judge({"df": read("df", "df/debian12-kP.txt", "df/debian12-iP.txt")}), PASS,
        says="1 local file systems: / at"),
    *(row("root", judge(df(fs("/", percent, available_kib=500 * GIB))), wanted)
        for percent, wanted in [(0, "PASS"), (89, "PASS"), (90, "WARN"), (94, "WARN"), (95, "FAIL"), (100, "FAIL")]),
    row("scratch with room left only warns", judge(df(fs("/", 10), fs("/scratch", 96, available_kib=900 * GIB))), WARN),
    row("scratch with room left only warns", judge(df(fs("/", 10), fs("/scratch", 96, available_kib=40 * GIB))), FAIL),
    row("what is full by design or not ours",
        judge({**df(*[fs("/", 30), fs("/snap/core20", 100, filesystem="/dev/loop0"),
        fs("/mnt/image", 100, filesystem="/dev/sr0"), fs("/dev/shm", 100, filesystem="tmpfs"),
        fs("/var/lib/kubelet/pods/x/volumes/y", 100), fs("/boot/efi", 100),
        fs("/var/lib/docker/overlay2/m", 100, filesystem="overlay"), fs("/data/reference", 100),
        fs("/proc/sys/fs/binfmt_misc", None, size_kib=None)]),
        **mounts(("/mnt/image", "iso9660", ["ro"]), ("/data/reference", "xfs", ["ro", "noatime"]))}), PASS),
    row("full overlay root counts", judge(df(fs("/", 99, filesystem="overlay"))), FAIL),
    row("bind mounts are one disk",
        judge(df(fs("/", 3), *[fs("/scratch", 97, filesystem="/dev/md0"),
        fs("/var/lib/containers", 97, filesystem="/dev/md0")])), FAIL, device={"mount": "/scratch"}),
    row("wrapped fixture names the stale mount", judge({"df": read("df", "df/wrapped.txt")}), FAIL,
        says="Stale file handle").also(WARN, device={"mount": "/opt/dlami/nvme"}),
    *(row("unknown", judge(given), UNKNOWN) for given in [{"df": BROKEN}, {}, df(), df(fs("/", None))]),
    row("thresholds", judge(df(fs("/", 80)), thresholds={"disk_space.fail_percent": 80, "disk_space.warn_percent": 70}),
        FAIL),
    *(row("the type that df prints tells what is local", judge(df(fs("/", 3), fs("/data", 100, **entry))), wanted)
        for entry, wanted in [
            ({"type": "ext4"}, FAIL),
            ({"type": "ext4", "filesystem": "UUID=0a"}, FAIL),
            ({"type": "tmpfs"}, PASS),
            ({"type": "nfs4", "filesystem": "10.0.0.4:/x"}, PASS),
            ({"type": "squashfs"}, PASS),
            ({"type": "ext4", "filesystem": "/dev/loop3"}, PASS),
        ]),
    row("the type of the mount table where df prints none",
        judge({**df(fs("/", 3), fs("/data", 100)), **mounts(("/data", "lustre", ["rw"]))}), PASS),
    row("the type of the mount table where df prints none",
        judge({**df(fs("/", 3), fs("/data", 100)), **mounts(("/data", "xfs", ["rw"]))}), FAIL),
    *(row("the limit that was passed is named", judge(df(fs("/", percent))), wanted, expected=limit,
        message=f"/ is {percent}% full, wanted under {limit}%")
        for percent, wanted, limit in [(90, WARN, 90), (95, FAIL, 95)]),
    *(row("a data disk with a hundred gib left does not block",
        judge(df(fs("/", 3), fs("/scratch", 99, available_kib=free_kib))), wanted)
        for free_kib, wanted in [(100 * GIB, WARN), (100 * GIB - 1, FAIL)]),
)  # fmt: skip


def test_full_disk_and_inodes_are_two_findings():
    findings = judge({"df": read("df", "df/full-kP.txt", "df/full-iP.txt")})
    assert [(f.status, f.device, f.measured) for f in findings] == [(FAIL, {"mount": "/"}, 100)] * 2
    assert findings[0].remedy is FIX_CONFIG
    assert "inodes" in findings[1].message
