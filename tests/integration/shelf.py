"""What the bed offers and what its inventory says, beside addresses and keys."""

import importlib
import importlib.util
from typing import Any

from . import wheels
from .bed import layout
from .mirror import Mirror

HOST_CHECKS = ["disk_space", "memory", "swap", "uptime", "sysctl"]
"""Checks that a machine without a GPU can pass."""

OWN: dict[str, Any] = {
    # What the image of the bed brings, for the compliance suite.
    "compliance_known_files": [
        "/etc/systemd/system/bed-kernel.service",
        "/etc/systemd/system/chrony.service.d/bed.conf",
        "/etc/systemd/network/10-host0.network",
        "/etc/apt/apt.conf.d/8[01]*",
        "/etc/dpkg/dpkg.cfg.d/bed",
    ],
    "base_hugepages": 64,
    "flightline_node_checks": HOST_CHECKS,
    "flightline_node_expected": {"sysctl": {"vm.swappiness": "1"}},
    # A container has no cgroup of its own to hand on.
    "slurm_proctrack": "proctrack/linuxproc",
    "slurm_task_plugin": "task/none",
    "slurm_constrain_devices": False,
    # pip reads the shelf as it reads an index elsewhere: the bed's machines reach no other host.
    "flightline_remediate_pip_options": [
        "--no-index",
        "--find-links={url}/files/wheels.html",
        f"--trusted-host={layout.GATEWAY}",
    ],
}


def stock(mirror: Mirror) -> dict[str, Any]:
    """Fill the mirror; returns the inventory variables of all machines, `{url}` filled in."""
    given = dict(OWN)
    if importlib.util.find_spec("tests.integration.shelf_gpu"):
        given |= importlib.import_module("tests.integration.shelf_gpu").stock(mirror)
    wheels.stock(mirror)
    filled: dict[str, Any] = _fill(given)
    return filled


def _fill(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("{url}", layout.URL)
    if isinstance(value, list):
        return [_fill(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _fill(entry) for key, entry in value.items()}
    return value
