"""The roles that need no vendor on Ubuntu's own root file systems: FLIGHTLINE_BED=2 FLIGHTLINE_SUITE=jammy, or noble.

Two hosts, of which the first is also Slurm's controller; nothing of Slurm is said in the inventory but who that is.
"""

import pytest
import yaml

from tests.beds import ran
from tools import nodepackage

from . import play as plays
from .bed import bed as beds
from .bed import image, inventory, layout, machine, ubuntu
from .conftest import SITE, Bed
from .mirror import Mirror
from .shelf import HOST_CHECKS

pytestmark = pytest.mark.skipif(image.SUITE not in ubuntu.SUITES, reason="FLIGHTLINE_SUITE names no Ubuntu")
TAGS = ["base", "instance_store", "cluster_ssh", "flightline_node", "slurm"]
COUNT = 2


@pytest.fixture(scope="module")
def fleet():
    """Two machines and their inventory."""
    was_up = bool(beds.existing())
    try:
        beds.up(COUNT)
        package = nodepackage.build(layout.STATE / "flightline-node.pyz")
        whole = inventory.inventory(layout.machines(COUNT, layout.STATE), layout.STATE)["all"]
        # A machine without a GPU; the checks are those that it can pass.
        whole["vars"] |= {"flightline_checks": HOST_CHECKS, "flightline_node_package": str(package.path)}
        whole["vars"] |= {"flightline_expected": {"sysctl": {"vm.swappiness": "1"}}}
        if image.SUITE != "jammy":
            # A container has no control group of its own to hand on; on 22.04 the role itself does without.
            whole["vars"] |= {"slurm_proctrack": "proctrack/linuxproc", "slurm_task_plugin": "task/none"}
        path = layout.STATE / "machines" / "ubuntu" / "inventory.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({"all": whole}, sort_keys=False))
        yield Bed(path, Mirror(layout.STATE / "www"))
    finally:
        if not was_up:
            beds.down()


def ssh(name, command):
    """Run a command as root on a machine; returns what it printed."""
    found = next(one for one in beds.existing() if one.name == name)
    return ran(*machine.ssh_words(found), command).stdout


@pytest.fixture(scope="module")
def first(fleet):
    return plays.play(fleet.inventory, SITE, tags=TAGS)


def test_hosts_become_ready(first):
    assert first.status == 0, first.output[-4000:]
    assert "2 of 2 hosts configured" in first.output


def test_a_second_run_changes_nothing(fleet, first):
    again = plays.play(fleet.inventory, SITE, tags=TAGS)
    assert again.status == 0, again.output[-4000:]
    assert {name: row.changed for name, row in again.recap.items()} == {"gpu-01": 0, "gpu-02": 0}, again.output


def test_slurm_runs_jobs_with_what_the_role_found_out(first):
    assert sorted(ssh("gpu-01", "srun --nodes=2 --immediate=300 hostname").split()) == ["gpu-01", "gpu-02"]
    assert "proctrack/linuxproc" in ssh("gpu-01", "scontrol show config")
