# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Filters of the role slurm: what its files say of workers and switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from flightline.configure import slurm_plan
from flightline_node.model import SettingsError


def flightline_slurm_workers(
    names: Iterable[str], hostvars: Mapping[str, Any], percent: int, so_far: str
) -> list[dict[str, Any]]:
    """Name, line of slurm.conf and lines of gres.conf of each worker; so_far is the cluster's slurm.conf until now."""
    try:
        found = slurm_plan.workers(names, hostvars, int(percent), so_far)
    except SettingsError as error:
        raise AnsibleFilterError(str(error)) from error
    return [
        {"name": one.name, "line": one.line(), "gres": one.gres(), "seen": one.seen, "measured": one.cpus > 0}
        for one in found
    ]


def flightline_slurm_name(name: str, hostvars: Mapping[str, Any], so_far: str) -> str:
    """The name by which Slurm knows a host of the inventory."""
    return slurm_plan.node_name(name, hostvars[name], slurm_plan.known(so_far))


def flightline_slurm_address(name: str, hostvars: Mapping[str, Any]) -> str:
    """Where Slurm reaches a host of the inventory."""
    return slurm_plan.address(name, hostvars[name])


def flightline_slurm_topology(
    instances: Iterable[Mapping[str, Any]], hostvars: Mapping[str, Any], so_far: str
) -> list[str]:
    """Lines of topology.conf."""
    return slurm_plan.topology(instances, hostvars, so_far)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name -> function."""
        return {
            "flightline_slurm_workers": flightline_slurm_workers,
            "flightline_slurm_name": flightline_slurm_name,
            "flightline_slurm_address": flightline_slurm_address,
            "flightline_slurm_topology": flightline_slurm_topology,
        }
