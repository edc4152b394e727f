"""nvme: all disks, one missing, too small, EBS not counted, disks without a model."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, REPLACE, SKIP, UNKNOWN, judging, row, table

MODEL = "Amazon EC2 NVMe Instance Storage"


def disks(count, size=3840755982336, model=MODEL):
    return [
        {"name": f"nvme{number}n1", "type": "disk", "size_bytes": size, "model": model, "serial": f"AWS{number}"}
        for number in range(1, count + 1)
    ]


EBS = {"name": "nvme0n1", "type": "disk", "size_bytes": 10**11, "model": "Amazon Elastic Block Store"}


def judged(found, kind="p5.48xlarge"):
    return judging("nvme", {"lsblk": {"devices": [EBS, *found]}}, kind)


test_nvme = table(
    row("all there", judged(disks(8)), PASS, measured=8),
    row("all there", [judging("nvme", {"lsblk": read("lsblk", "lsblk/p4d-strings.json")}, "p4d.24xlarge"),
        judging("nvme", {"lsblk": read("lsblk", "lsblk/g5-mountpoints.json")}, "g5.4xlarge")], PASS),
    *(row("missing", judged(disks(count)), FAIL, measured=count, expected=8, remedy=REPLACE) for count in [0, 7]),
    row("too many is the wrong type", judged(disks(9)), FAIL, remedy=FIX_CONFIG),
    row("one too small", judged([*disks(7),
        {"name": "nvme8n1", "type": "disk", "size_bytes": 10**12, "model": MODEL, "serial": "AWS8"}]), FAIL,
        alone=True, device={"name": "nvme8n1", "serial": "AWS8"}, measured=1000, expected=3800),
    row("unknown", [judged(disks(7, model=None)), judged(disks(8, size=500 * 10**9, model=None)),
        judged(disks(8, size=None))], UNKNOWN),
    row("types without instance store", [judged([], "inf2.48xlarge"), judged([], "none")], SKIP),
    row("disks without a model are told by their size",
        judged([*disks(8, model=None), {"name": "nvme9n1", "type": "disk", "size_bytes": 10**11}]), PASS,
        says="8 disks without a model"),
    *(row("ninety five percent of the size is the least", judged(disks(8, size)), wanted)
        for size, wanted in [(3610 * 10**9, PASS), (3610 * 10**9 - 1, FAIL)]),
    *(row("a disk without a model is taken for the instance store within five percent",
        judged(disks(8, size, model=None)), wanted)
        for size, wanted in [
            (3610 * 10**9 - 1, UNKNOWN), (3610 * 10**9, PASS), (3990 * 10**9, PASS), (3990 * 10**9 + 1, UNKNOWN),
        ]),
    row("a disk without a model beside all that are wanted is another one",
        judged([*disks(8), {"name": "nvme9n1", "type": "disk", "size_bytes": 10**11}]), PASS, alone=True,
        message="8 instance-store disks"),
)  # fmt: skip
