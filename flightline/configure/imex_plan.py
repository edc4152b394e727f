"""Which nodes share GPU memory over NVLink: the addresses in nodes_config.cfg of NVIDIA's IMEX service.

From the inventory alone: every node of a rack must have the same list, also while some do not answer, or a run is
limited to others (NVIDIA IMEX guide, Deployment Models: services whose lists differ refuse each other).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError

from .slurm_plan import address

MOST_NODES = 18
"""Of one NVLink domain: 72 GPUs, 4 on each node (u-p6e-gb200x72; MAX_NODES_PER_IMEX_DOMAIN of NVIDIA's DRA driver)."""


def nodes(name: str, names: Iterable[str], hostvars: Mapping[str, Any]) -> list[str]:
    """Addresses of the nodes in the rack of `name`, in order. Raises SettingsError where the inventory cannot tell."""
    rack = _rack(hostvars[name])
    mine = sorted({name, *(one for one in names if _in_rack(hostvars[one]) and _rack(hostvars[one]) == rack)})
    if len(mine) > MOST_NODES:
        where = f"rack {rack}" if rack else "no named rack"
        raise SettingsError(
            f"saw: {len(mine)} nodes in {where}; wanted: at most {MOST_NODES} that NVLink joins; do: set "
            "nvidia_driver_imex_rack for each node, to the UltraServer (capacity block) that it is in"
        )
    found = {other: address(other, hostvars[other]) for other in mine}
    for other, where in found.items():
        _check(other, where)
    return sorted(found.values(), key=ipaddress.ip_address)


def _in_rack(variables: Mapping[str, Any]) -> bool:
    known = resolve(str(variables.get("instance_type") or "none"), variables.get("flightline_expected") or {})
    return bool(known.nvlink_rack)


def _rack(variables: Mapping[str, Any]) -> str:
    """What the site says, else the capacity block that EC2 names: an UltraServer is one (AWS ParallelCluster guide)."""
    return str(variables.get("nvidia_driver_imex_rack") or variables.get("ec2_capacity_reservation_id") or "")


def _check(name: str, where: str) -> None:
    try:
        ipaddress.ip_address(where)
    except ValueError:
        raise SettingsError(
            f"saw: {where} as the address of {name}; wanted: an IP address, which is all that IMEX reads; "
            "do: set node_address in the inventory"
        ) from None
