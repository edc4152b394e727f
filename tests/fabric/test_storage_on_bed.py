"""All hosts of a bed write and read one directory at once, by Ansible; one host's disk is throttled by its control group.

The directory is a disk of this machine, bound to a mount point that all hosts share: no Lustre and no server is here.
"""

import os
import subprocess
from pathlib import Path

import pytest

from flightline.fabric import storage
from flightline.fabric.ansible import FabricRequest, Rounds, fleet_of
from tests.beds import until
from tests.fabric.bed import NEEDED, bed

BLKIO = Path("/sys/fs/cgroup/blkio")
SLOW_BYTES_S = 1 << 20

pytestmark = [
    *NEEDED,
    pytest.mark.skipif(
        not (BLKIO / "blkio.throttle.write_bps_device").exists(), reason="needs the control group blkio"
    ),
]


@pytest.fixture
def shared(tmp_path):
    """A mount, and the number of its disk."""
    place = tmp_path / "shared"
    place.mkdir()
    subprocess.run(["mount", "--bind", place, place], check=True)
    device = os.stat(place).st_dev
    yield place, f"{os.major(device)}:{os.minor(device)}"
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def throttled(shared):
    """A control group whose processes write and read that disk slowly."""
    group = BLKIO / f"flightline-test-{os.getpid()}"
    group.mkdir()
    for way in ("read", "write"):
        (group / f"blkio.throttle.{way}_bps_device").write_text(f"{shared[1]} {SLOW_BYTES_S}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text().split())
    group.rmdir()


def test_the_throttled_client_is_named_and_the_others_pass(shared, throttled, tmp_path):
    with bed(tmp_path, 4) as made:
        python = made.place / "python-n2"
        first, _, rest = python.read_text().partition("\n")
        python.write_text(f"{first}\necho $$ >{throttled}/cgroup.procs\n{rest}")
        asked = FabricRequest(
            (str(made.inventory),), program=(str(made.program),), storage=str(shared[0]), storage_s=2.0
        )
        play = Rounds(asked, fleet_of(asked), f"st{os.getpid()}")
        tries = storage.test(made.names, play.storage, lambda _: None)
        found = {one["device"]["host"]: one for one in storage.findings(str(shared[0]), made.names, tries)}
    said = {host: one["status"] for host, one in found.items()}
    assert said == {"n0": "PASS", "n1": "PASS", "n2": "FAIL", "n3": "PASS"}, (tries, said)
    assert found["n2"]["measured"] < found["n2"]["expected"] and "3 others at once" in found["n2"]["message"]
