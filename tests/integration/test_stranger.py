"""Hosts whose inventory says an instance type and nothing else: the roles' defaults against the vendors' own addresses.

One host is bare; the other looks like a Deep Learning AMI: its own driver of the branch, NCCL, EFA, Docker's containerd and a
volume group over the disks, mounted by its own service. What a stranger's inventory would not say stands, with its reason,
in shelf_vendors.exceptions. The last test loses a node in the middle of a role.
"""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from flightline_node.know.expected import known_types
from tests.beds import ran, until

from . import play as plays
from . import shelf_gpu, shelf_vendors
from .bed import bed as beds
from .bed import inventory as bed_inventory
from .bed import layout, machine, vendors
from .conftest import SITE
from .image_ami import LIKE_AN_AMI, packages

BARE, IMAGE = "gpu-03", "gpu-04"
TYPE = "p5.4xlarge"
"""One GPU, one EFA interface and one disk, as many as a machine of the bed has."""


@pytest.fixture(scope="module")
def stranger(bed):
    """The two machines, made anew, and the inventory that knows nothing of the bed's shelf."""
    exceptions = shelf_vendors.stock(bed.mirror)
    packages(bed.mirror)
    authority = (layout.STATE / "tls/ca.crt").read_text()
    for name in (BARE, IMAGE):
        beds.reset(bed.machine(name))
        bed.ssh(name, vendors.introduce().replace("cat >", f"printf '%s' '{authority}' >"))
    bed.ssh(IMAGE, LIKE_AN_AMI.replace("{url}", bed.url))
    whole = bed_inventory.inventory([bed.machine(name) for name in (BARE, IMAGE)], layout.STATE)["all"]
    whole["vars"] |= {**exceptions, "instance_type": TYPE}
    # Head nodes of a stack; these two are its GPU nodes.
    for group in ("slurm_controller", "flightline_remediate"):
        del whole["children"][group]
    # A directory of its own: beside the bed's inventory its variables would count here as well.
    path = layout.STATE / "machines" / "stranger" / "inventory.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"all": whole}, sort_keys=False))
    return path


def troubles(played):
    return played.output[max(0, played.output.find("CONFIGURE")) :][-4000:]


@pytest.fixture(scope="module")
def first(stranger):
    return plays.play(stranger, SITE)


def test_defaults_alone_configure_a_bare_node_and_an_image(first):
    assert first.status == 0, troubles(first)
    assert f"2 of 2 hosts configured\n  {BARE}, {IMAGE}" in first.output


def test_a_second_run_changes_nothing(stranger, first):
    again = plays.play(stranger, SITE)
    assert again.status == 0, troubles(again)
    assert {name: row.changed for name, row in again.recap.items()} == {BARE: 0, IMAGE: 0}, again.output


def test_both_comply_with_what_was_decided_about_them(stranger, first):
    """The image is no less right than the bare node: it has another driver, EFA, NCCL and store than our pins say."""
    argv = [sys.executable, "-m", "pytest", "tests/compliance", "-q", "-p", "no:cacheprovider"]
    done = ran(*argv, "--hosts=ansible://gpu_nodes", f"--ansible-inventory={stranger}", cwd=layout.ROOT)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]


def test_the_bare_node_has_what_the_type_needs_and_no_more(bed, first):
    names = bed.ssh(BARE, "dpkg-query -W -f '${Package} ${Version}\\n'")
    for wanted in ("nvidia-open 580.95.05-1", "libnccl2 2.28.3-1+cuda13.0", "nvidia-container-toolkit 1.18.1-1"):
        assert wanted in names
    for other in ("nvidia-fabricmanager", "nvlsm", "slurmd", "lustre"):
        assert other not in names
    assert bed.ssh(BARE, "ls /opt/nccl-tests/build/all_reduce_perf /opt/amazon/efa_installed_packages")
    assert bed.ssh(BARE, "findmnt --noheadings --output FSTYPE /mnt/local").strip() == "xfs"
    assert "nr_hugepages" not in bed.ssh(BARE, "cat /etc/sysctl.d/90-flightline.conf")


def test_the_image_keeps_what_it_brought(bed, first):
    names = bed.ssh(IMAGE, "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'")
    for wanted in ("nvidia-open 580.126.09-1 ii", "containerd.io 1.7.27-1 ii"):
        assert wanted in names
    for other in ("libnccl2", "containerd 1."):
        assert other not in names
    assert "linux-image-cloud-amd64" in bed.ssh(IMAGE, "apt-mark showhold").split()
    assert "installer version: 1.45.0" in bed.ssh(IMAGE, "cat /opt/amazon/efa_installed_packages")
    assert bed.ssh(IMAGE, "findmnt --noheadings --output SOURCE /mnt/local").strip().startswith("dlami-store")
    assert "LVM2_member" in bed.ssh(IMAGE, "blkid --probe /dev/nvme1n1")


def test_a_new_node_alone_takes_the_clusters_key(bed, stranger, first):
    """The other node is not in the run; it is asked for the key, or the cluster would have two."""
    key = "/home/admin/.ssh/id_flightline_mpi"
    before = bed.ssh(BARE, f"cat {key}")
    assert bed.ssh(IMAGE, f"cat {key}") == before
    bed.ssh(IMAGE, f"rm {key}")
    played = plays.play(stranger, SITE, limit=IMAGE, tags=["cluster_ssh"])
    assert played.status == 0, troubles(played)
    assert bed.ssh(IMAGE, f"cat {key}") == before
    assert bed.ssh(IMAGE, "grep -c ssh-ed25519 /etc/ssh/ssh_known_hosts").strip() == "2"


def families():
    """The largest type of each family: what differs inside a family is how many of a thing there are."""
    return {name.partition(".")[0]: name for name in known_types()}


FORKS = 6
"""Connections at once to one machine: sshd refuses some beyond ten that are not logged in yet (MaxStartups)."""
NOT_FOR = {BARE: {}, IMAGE: {"g7": "saw: driver 580.126.09; wanted: driver 595"}}
"""Family -> what its largest type is refused with: this image's driver does not know that GPU."""


@pytest.mark.skipif("FLIGHTLINE_TYPES" not in os.environ, reason="minutes: make integration-types")
@pytest.mark.parametrize("host", [BARE, IMAGE])
def test_check_mode_of_every_family_of_types_refuses_only_what_cannot_serve(bed, stranger, first, host):
    """One machine under as many names as there are families, each with its type and nothing else said."""
    known = yaml.safe_load(stranger.read_text())["all"]
    hosts = {
        family: {"ansible_host": bed.machine(host).address, "instance_type": name}
        for family, name in families().items()
    }
    known["vars"] |= {"instance_store_disks": 1}
    known["children"] = {"gpu_nodes": {"hosts": hosts}, "slurm_controller": {"hosts": {}}}
    path = stranger.with_name("families.yml")
    path.write_text(yaml.safe_dump({"all": known}, sort_keys=False))
    played = plays.play(path, SITE, options=["--check", f"--forks={FORKS}"])
    said = played.output[played.output.find("CONFIGURE") :]
    refused = NOT_FOR[host]
    assert f"{len(hosts) - len(refused)} of {len(hosts)} hosts configured" in said, said[-6000:]
    assert played.status == (2 if refused else 0), said[-6000:]
    for family, why in refused.items():
        assert [row for row in said.splitlines() if family in row.split() and why in row], said[-6000:]


SEED = int(os.environ.get("FLIGHTLINE_SEED") or 20261122)
"""Which tasks lose their node: the same in every run, unless another is given."""


@pytest.mark.parametrize("draw", range(3))
def test_a_node_lost_at_any_task_takes_no_other_with_it(bed, stranger, first, draw):
    """Tasks of all roles are drawn, a different role each time; what only a first run includes is not met again."""
    listing = [*plays.command(stranger, SITE), "--list-tasks"]
    env = plays.environment()
    listed = subprocess.run(listing, capture_output=True, text=True, check=True, cwd=layout.ROOT, env=env)
    rows = [line for line in first.output.splitlines() if line.startswith("TASK [") and " : " in line]
    rows = [line for line in rows if line.removeprefix("TASK [").rstrip("* ")[:-1] in listed.stdout]
    roles = sorted({line.split(" : ")[0] for line in rows})
    mine = random.Random(SEED).sample(roles, 3)[draw]
    marker = random.Random(SEED + draw).choice([line.rstrip("* ") for line in rows if line.startswith(f"{mine} : ")])
    tags = [] if mine.endswith("_repository") else [mine.removeprefix("TASK [")]
    lost = bed.machine(BARE)
    argv = plays.command(stranger, SITE, tags=tags)
    try:
        status, output = _until(argv, marker, lambda: machine.stop(lost))
    finally:
        beds.restart(lost)
    why = f"FLIGHTLINE_SEED={SEED} {marker}\n{output[-2000:]}"
    assert f"{IMAGE}  at " not in output, why
    if "0 of 2" in output or "1 of 2" in output:
        assert f"1 of 2 hosts configured\n  {IMAGE}\nunreachable  {BARE}  at " in output, why
        assert status & 4, why
    else:  # the task was the last that asks the node anything
        assert f"2 of 2 hosts configured\n  {BARE}, {IMAGE}" in output, why


@pytest.mark.parametrize(
    "marker",
    [
        "TASK [cluster_ssh : Read the node's key]",
        "TASK [base : Write the settings of kernel, limits, journal, updates and sshd]",
    ],
)
def test_a_node_lost_in_the_middle_of_a_role_takes_no_other_with_it(bed, stranger, first, marker):
    """The first host is the one that earlier made the key for all."""
    lost = bed.machine(BARE)
    argv = plays.command(stranger, SITE, tags=["base", "cluster_ssh", "flightline_node"])
    try:
        status, output = _until(argv, marker, lambda: machine.stop(lost))
    finally:
        beds.restart(lost)
    assert status & 4, output[-2000:]
    assert f"1 of 2 hosts configured\n  {IMAGE}\nunreachable  {BARE}  at " in output, output[-2000:]
    assert bed.ssh(IMAGE, "flightline-check 60 --explain")


def _until(argv, marker, strike):
    """Run a playbook; call `strike` when a task begins."""
    control = subprocess.Popen(
        argv, cwd=layout.ROOT, env=plays.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watchdog = threading.Timer(plays.PLAY_TIMEOUT_S, control.kill)
    watchdog.start()
    lines = []
    try:
        for line in control.stdout:
            lines.append(line)
            if marker in line:
                strike()
        control.wait()
    finally:
        watchdog.cancel()
    output = "".join(lines)
    assert marker in output, output[-2000:]
    return control.returncode, output


def test_another_version_of_nccl_takes_the_place_of_the_one_that_is_held(bed, stranger, first):
    """One variable of the inventory; the role's own pin holds the version of the last run."""
    wanted = {"cuda_nccl_nccl_version": shelf_gpu.NEWER_NCCL}
    for options in (["--check"], []):
        played = plays.play(stranger, SITE, limit=BARE, tags=["cuda_nccl"], variables=wanted, options=options)
        assert played.status == 0, troubles(played)
        assert played.recap[BARE].changed > 0
    assert f"libnccl2 {shelf_gpu.NEWER_NCCL}-1+cuda13.0" in bed.ssh(BARE, "dpkg-query -W -f '${Package} ${Version}\\n'")
    again = plays.play(stranger, SITE, limit=BARE, tags=["cuda_nccl"], variables=wanted)
    assert again.recap[BARE].changed == 0, again.output


def test_hosts_go_with_nothing_mounted_behind():
    """Mounts of machines live in name spaces of their own; none is seen from outside while they run either."""
    until(lambda: str(layout.STATE) not in Path("/proc/self/mountinfo").read_text(), 120)
    assert str(layout.STATE) not in Path("/proc/self/mountinfo").read_text()
