"""fio_disk: no floor set, floor kept or missed, a job that failed or moved nothing."""

from functools import partial

import pytest

from tests.harness import only
from tests.unit.parsers.hosttools import read

from .table import FAIL, INFO, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table

READ = {"fio": read("fio", "fio/debian12-read.json")}


def written(bandwidth, **changes):
    return {"fio": {"jobs": [{"name": "nvme1n1", "rw": "write", "error": 0, "bw_bytes_s": bandwidth, **changes}]}}


def disks(*speeds):
    return [{"name": f"nvme{n}n1", "rw": "read", "error": 0, "bw_bytes_s": speed} for n, speed in enumerate(speeds, 1)]


JOBS = [{"name": f"nvme{n}n1", "rw": "read", "error": 0, "bw_bytes_s": 7e9 if n else 1e9} for n in range(8)]
judge = partial(judging, "fio_disk")

test_fio_disk = table(
    row("without a floor it only informs", judge(READ), INFO, measured=1.177, unit="GB/s"),
    row("floor", judge(READ, thresholds={"fio_disk.min_read_gb_s": 1}), PASS),
    row("floor", judge(READ, thresholds={"fio_disk.min_read_gb_s": 2}), FAIL, expected=2, remedy=REPLACE),
    row("floor", judge(READ, thresholds={"fio_disk.min_write_gb_s": 2}), INFO),
    row("one finding per slow disk only", judge({"fio": {"jobs": JOBS}}, thresholds={"fio_disk.min_read_gb_s": 3}),
        FAIL, device={"name": "nvme0n1"}, measured=1.0),
    row("one finding per slow disk only", judge({"fio": {"jobs": JOBS[1:]}}, thresholds={"fio_disk.min_read_gb_s": 3}),
        PASS, alone=True),
    row("not run", [judge({}, "g5g.xlarge"), judge({}, "none")], SKIP),
    row("not run", judge(READ, "none"), INFO),
    row("failed job", judge({"fio": read("fio", "fio/fio2-read.json")}), FAIL, says="error 5"),
    row("nothing moved is unknown", judge({"fio": {"jobs": [{"name": "a", "rw": None, "error": 0}]}}), UNKNOWN),
    # without thresholds no floor is set
    row("the floor is the least that passes", judge(written(2e9), thresholds={"fio_disk.min_write_gb_s": 2}), PASS),
    row("the floor is the least that passes", judge(written(1.999e9), thresholds={"fio_disk.min_write_gb_s": 2}), FAIL,
        measured=1.999),
    row("the floor is the least that passes", judge(written(5e8)), INFO),
    *(row("a job without a figure or a direction moved nothing", judge(job), UNKNOWN, says="moved no data")
        for job in [written(0), written(None), written(2e9, rw=None)]),
    # three disks are too few to tell; a ninth is one more than the type has, the root volume
    *(row("what cannot be compared", judge({"fio": {"jobs": jobs}}, instance_type), INFO)
        for jobs, instance_type in [
            (disks(5e9, 0.2e9, 5e9), "p5.48xlarge"),
            (disks(*[5e9] * 8, 0.2e9), "p5.48xlarge"),
            (disks(*[5e9] * 7, 0.2e9), "none"),
            ([{**job, "name": f"job{n}"} for n, job in enumerate(disks(5e9, 5e9, 5e9, 5e9, 0.2e9))], "p5.48xlarge"),
            ([*disks(5e9, 5e9, 5e9, 5e9), {**disks(0.2e9)[0], "rw": "write"}], "p5.48xlarge"),
        ]),
    *(row("forty percent behind three others warns and seventy five fails",
        judge({"fio": {"jobs": disks(10e9, 10e9, 10e9, speed)}}), wanted)
        for speed, wanted in [(6e9, INFO), (5.99e9, WARN), (2.5e9, WARN), (2.49e9, FAIL)]),
)  # fmt: skip


@pytest.mark.parametrize(("speed", "wanted"), [(0.3e9, FAIL), (2.5e9, WARN), (4.5e9, INFO)])
def test_a_disk_beside_the_nodes_others(speed, wanted):
    finding = only(judge({"fio": {"jobs": disks(*[5.4e9] * 7, speed)}}), wanted)
    if wanted is not INFO:
        assert (finding.device, finding.measured) == ({"name": "nvme8n1"}, speed / 1e9)
        assert finding.expected > finding.measured
