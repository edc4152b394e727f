"""The bed as fixtures. It is made once per run and removed afterwards, unless it was up before."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.beds import ran
from tools import nodepackage

from . import play as plays
from . import shelf, shelf_gpu
from .bed import bed as beds
from .bed import layout, machine
from .mirror import Mirror

SITE = layout.ROOT / "playbooks" / "site.yml"


@dataclass(frozen=True)
class Bed:
    """What tests need of the real hosts."""

    inventory: Path
    mirror: Mirror
    url: str = layout.URL

    @property
    def hosts(self) -> list[str]:
        """Names of the machines."""
        return [machine.name for machine in layout.machines(layout.DEFAULT_COUNT)]

    def machine(self, name: str) -> layout.Machine:
        """A machine by name."""
        return next(machine for machine in beds.existing() if machine.name == name)

    def converge(self, playbook: Path = SITE, **given: Any) -> plays.Played:
        """Run a playbook, by default site.yml."""
        return plays.play(self.inventory, playbook, **given)

    def ssh(self, name: str, command: str, *, check: bool = True) -> str:
        """Run a command as root on a machine; returns what it printed."""
        words = machine.ssh_words(self.machine(name), state=self.inventory.parent)
        done = ran(*words, "sh", "-c", shlex.quote(command))
        if check:
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say why everything that needs the bed is skipped."""
    reason = beds.why_not()
    if reason:
        for item in items:
            if "bed" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The real hosts, with shelf and inventory variables in place."""
    was_up = bool(beds.existing())
    try:
        inventory = beds.up(layout.DEFAULT_COUNT)
        mirror = Mirror(layout.STATE / "www")
        # One package for the whole run: with an edit of the node library between two runs the second would change something.
        package = nodepackage.build(layout.STATE / "flightline-node.pyz")
        variables = {**shelf.stock(mirror), "flightline_node_package": str(package.path)}
        mirror.publish()
        group = layout.STATE / "group_vars"
        group.mkdir(exist_ok=True)
        (group / "all.yml").write_text(yaml.safe_dump(variables, sort_keys=False))
        yield Bed(inventory, mirror)
    finally:
        if not was_up:
            beds.down()


@pytest.fixture
def host(bed: Bed) -> str:
    """One machine that installs the vendor's stand-ins."""
    return next(name for name in reversed(bed.hosts) if name != shelf_gpu.REAL_DRIVER_HOST)


@pytest.fixture
def role(bed: Bed, host: str, tmp_path: Path) -> Callable[..., plays.Played]:
    """Run one role on the machine, with variables on top."""

    def run(name: str, **variables: Any) -> plays.Played:
        playbook = tmp_path / f"{name}.yml"
        playbook.write_text(
            f"- name: Run {name}\n  hosts: {host}\n  gather_facts: true\n"
            f"  gather_subset: [min, distribution, network, kernel]\n  roles: [{name}]\n"
        )
        return bed.converge(playbook, limit=host, variables=variables)

    return run
