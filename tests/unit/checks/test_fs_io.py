"""fs_io: wrong content and errors fail, slowness warns, what was refused is not a pass."""

from tests.unit.parsers.hosttools import read

from .table import CONTACT_SUPPORT, FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def target(**more):
    base = {"mount": "/fsx", "fstype": "lustre", "kind": "lustre", "write_mb_s": 900.0, "read_mb_s": 1200.0}
    return {**base, "verified": True, **more}


def judge(*targets, **more):
    return judging("fs_io", {"fs_io": {"targets": list(targets)}}, **more)


test_fs_io = table(
    row("recorded passes", judging("fs_io", {"fs_io": read("fs_io", "fs_io/debian12.json")}), PASS, alone=True,
        says="/opt/dlami/nvme 545.1 and 672.3"),
    *(row("wrong content", judge(target(kind=kind, verified=False, wrong="byte 12: wrote 0x01, read 0x00")), FAIL,
        remedy=remedy, device={"mount": "/fsx"}, says="byte 12")
        for kind, remedy in [("instance-store", REPLACE), ("lustre", CONTACT_SUPPORT)]),
    *(row("slow", judge(target(**{f"{way}_mb_s": 50.0})), PASS) for way in ["write", "read"]),
    *(row("slow", judge(target(**{f"{way}_mb_s": 49.0})), WARN, measured=49.0, expected=50, unit="MB/s")
        for way in ["write", "read"]),
    *(row("slow", judge(target(**{f"{way}_mb_s": 49.0}), thresholds={f"fs_io.min_{way}_mb_s": 40}), PASS)
        for way in ["write", "read"]),
    row("one read only beside a good one passes",
        judge(target(), {"mount": "/reference", "kind": "lustre", "refused": "mounted read-only"}), PASS,
        statuses=(SKIP, PASS)),
    *(row("nothing compared is unknown", judge(target(**change)), UNKNOWN, alone=True, device={"mount": "/fsx"})
        for change in ({"verified": False}, {"write_mb_s": None}, {"read_mb_s": None})),
    row("nothing to test and not run", judge(), SKIP),
    row("only read only ones are no pass",
        judge({"mount": "/reference", "kind": "lustre", "refused": "mounted read-only"}), SKIP, alone=True),
)  # fmt: skip


def test_each_of_several():
    findings = judging("fs_io", {"fs_io": read("fs_io", "fs_io/bad.json")})
    by_mount = {finding.device["mount"]: finding.status for finding in findings}
    assert by_mount == {
        "/opt/dlami/nvme": FAIL,
        "/fsx": FAIL,
        "/data": FAIL,
        "/scratch": UNKNOWN,
        "/reference": SKIP,
    }
