"""Account quotas that a stack's size can meet before its capacity does.

Codes and names: "Amazon EC2 endpoints and quotas" (AWS General Reference, 2026), as Service Quotas lists them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from infra.config.model import StackSettings
from infra.planning import efa
from infra.planning.instance_types import ON_DEMAND, SPOT


@dataclass(frozen=True)
class Quota:
    """One quota. types: of those it counts the vCPUs, as a pattern; default: of one that counts something else."""

    code: str
    title: str
    types: str = ""
    spot: bool = False
    service: str = "ec2"
    default: int = 0


INTERFACES = Quota("L-DF5E4CA3", "Network interfaces per Region", service="vpc", default=5000)
NODE_GROUP = Quota("L-BD136A63", "Nodes per managed node group", service="eks", default=450)
VCPUS = (
    Quota("L-417A185B", "Running On-Demand P instances", r"p\d"),
    Quota("L-DB2E81BA", "Running On-Demand G and VT instances", r"(g|gr|vt)\d"),
    Quota("L-2C3B7624", "Running On-Demand Trn instances", r"trn\d"),
    Quota("L-1945791B", "Running On-Demand Inf instances", r"inf\d"),
    Quota("L-1216C47A", "Running On-Demand Standard instances", r"(a|c|d|h|im?|is|m|r|t|z)\d"),
    Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", r"p[234]", spot=True),
    Quota("L-C4BD4855", "All P5 Spot Instance Requests", r"p5", spot=True),
    Quota("L-3819A6DF", "All G and VT Spot Instance Requests", r"(g|gr|vt)\d", spot=True),
    Quota("L-6B0D517C", "All Trn Spot Instance Requests", r"trn\d", spot=True),
    Quota("L-B5D1601B", "All Inf Spot Instance Requests", r"inf\d", spot=True),
)


@dataclass(frozen=True)
class Need:
    """What a stack takes of a quota: instances, as (type, how many), or an amount of what else it counts.

    quota None: nobody knows which one it is.
    """

    quota: Quota | None
    instances: tuple[tuple[str, int], ...] = ()
    amount: int = 0


def of_type(instance_type: str, spot: bool) -> Quota | None:
    """The vCPU quota of a type; None where none is known."""
    return next((one for one in VCPUS if one.spot == spot and re.match(one.types, instance_type)), None)


def needs(settings: StackSettings, kind: str) -> Iterator[Need]:
    """What the stack takes, its nodes being bought in this way: what is reserved was counted when it was reserved."""
    nodes, wanted = settings.nodes, dict[Quota | None, tuple[tuple[str, int], ...]]()
    beside = [(settings.head.instance_type, int(settings.head.enabled))]
    beside += [(settings.kubernetes.cpu_instance_type, settings.kubernetes.cpu_count * settings.on_kubernetes)]
    bought = [(nodes.instance_type, nodes.count * (kind in (ON_DEMAND, SPOT)))]
    for name, count in (*bought, *beside):
        quota = of_type(name, spot=kind == SPOT and (name, count) in bought)
        wanted[quota] = (*wanted.get(quota, ()), *[(name, count)] * bool(count))
    yield from (Need(quota, instances) for quota, instances in wanted.items() if instances)
    interfaces = len(efa.interfaces(nodes.instance_type, nodes.efa)) * nodes.maximum
    if interfaces * 2 > INTERFACES.default:  # others of the region have some as well
        yield Need(INTERFACES, amount=interfaces)
    if settings.on_kubernetes and nodes.maximum > NODE_GROUP.default:
        yield Need(NODE_GROUP, amount=nodes.maximum)
