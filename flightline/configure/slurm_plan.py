"""What slurm.conf says of each worker: from the hardware table where the type is known, else from the node's own facts.

The table comes first so that every node writes the same file, also while some do not answer, and so that Slurm drains a
node that has less than its type. Of a node without facts (it does not answer, or a run is limited to others) name, CPUs
and memory are what the slurm.conf of the cluster says so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flightline_node.know.expected import Expected, resolve

MEMORY_PERCENT = 95
"""Of the type's memory: kernel and firmware keep some, and a node that reports less than RealMemory is drained. AWS
ParallelCluster takes the same share (SchedulableMemory)."""
_FAMILIES = re.compile(r"RTX PRO \d+|GB\d+|[A-Z]+\d+[A-Z]?")
_ADDRESS = re.compile(r"^[0-9.]+$|:")
_NODE = re.compile(r"^NodeName=(\S+)\s+NodeAddr=(\S+)(.*)$", re.MULTILINE)
_CONTROLLER = re.compile(r"^SlurmctldHost=([^\s(]+)\(([^\s)]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Known:
    """What a slurm.conf says of one address; 0 is what it does not say."""

    name: str
    cpus: int = 0
    memory_mib: int = 0


_NOBODY = Known("")


def known(slurm_conf: str) -> dict[str, Known]:
    """The hosts of a slurm.conf that the role wrote, by address; any other text knows nobody."""
    hosts = {where: Known(name) for name, where in _CONTROLLER.findall(slurm_conf)}
    for name, where, rest in _NODE.findall(slurm_conf):
        words = dict(word.partition("=")[::2] for word in rest.split())
        hosts[where] = Known(name, _number(words.get("CPUs")), _number(words.get("RealMemory")))
    return hosts


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


@dataclass(frozen=True)
class Worker:
    """One line of slurm.conf. cpus are hardware threads; sockets is 0 where only their number is known.

    seen: its facts are those of this run.
    """

    name: str
    address: str
    cpus: int = 0
    sockets: int = 0
    cores_per_socket: int = 0
    threads_per_core: int = 0
    memory_mib: int = 0
    gpu_type: str = ""
    gpus: int = 0
    instance_type: str = ""
    seen: bool = True

    def line(self) -> str:
        """NodeName=..., with what is known; Slurm takes one CPU and 1 MiB where nothing is."""
        words = [f"NodeName={self.name}", f"NodeAddr={self.address}"]
        words += [f"CPUs={self.cpus}"] if self.cpus else []
        if self.sockets:
            words += [f"Sockets={self.sockets}", f"CoresPerSocket={self.cores_per_socket}"]
            words += [f"ThreadsPerCore={self.threads_per_core}"]
        words += [f"RealMemory={self.memory_mib}"] if self.memory_mib else []
        words += [f"Gres=gpu:{self.gpu_type}:{self.gpus}"] if self.gpus else []
        words += [f"Feature={self.instance_type}"] if self.instance_type else []
        return " ".join([*words, "State=UNKNOWN"])

    def gres(self) -> list[str]:
        """Lines of gres.conf; with two sockets the first half of the GPUs is on the first.

        PCI buses, and so nvidia-smi's indexes, are in the order of the NUMA nodes (topologies in aws-ofi-nccl).
        """
        if not self.gpus:
            return []
        head = f"NodeName={self.name} Name=gpu Type={self.gpu_type}"
        if self.sockets < 2 or self.gpus % self.sockets:
            return [f"{head} File={_devices(0, self.gpus)}"]
        share, cores = self.gpus // self.sockets, self.cores_per_socket
        return [
            f"{head} File={_devices(at * share, share)} Cores={at * cores}-{(at + 1) * cores - 1}"
            for at in range(self.sockets)
        ]


def _devices(first: int, count: int) -> str:
    return f"/dev/nvidia{first}" if count == 1 else f"/dev/nvidia[{first}-{first + count - 1}]"


def workers(
    names: Iterable[str], hostvars: Mapping[str, Any], memory_percent: int = MEMORY_PERCENT, so_far: str = ""
) -> list[Worker]:
    """Every worker, in the order given. Raises SettingsError for an instance type that nobody knows."""
    hosts = known(so_far)
    return [_worker(name, hostvars[name], memory_percent, hosts) for name in names]


def node_name(inventory_name: str, variables: Mapping[str, Any], hosts: Mapping[str, Known]) -> str:
    """The short host name, by which slurmd finds its own line; of a node that was not seen the one so far, or EC2's.

    A name that was recorded of this machine stands above the one that it goes by now, which role host_state refuses.
    """
    facts = variables.get("ansible_facts") or {}
    kept = variables.get("host_state_kept") or {}
    recorded = kept.get("name") if kept.get("machine") == facts.get("machine_id") else ""
    given = variables.get("slurm_node_name") or recorded or facts.get("hostname")
    so_far = hosts.get(address(inventory_name, variables), _NOBODY).name
    name = str(given or so_far or variables.get("ec2_private_dns_name") or inventory_name)
    return name if _ADDRESS.search(name) else name.partition(".")[0]


def address(inventory_name: str, variables: Mapping[str, Any]) -> str:
    """Where the controller reaches the node."""
    return str(variables.get("node_address") or variables.get("ansible_host") or inventory_name)


def _worker(
    inventory_name: str, variables: Mapping[str, Any], memory_percent: int, hosts: Mapping[str, Known]
) -> Worker:
    instance_type = str(variables.get("instance_type") or "none")
    expected = resolve(instance_type, variables.get("flightline_expected") or {})
    facts = variables.get("ansible_facts") or {}
    where = address(inventory_name, variables)
    so_far = hosts.get(where, _NOBODY)
    memory_mib = expected.memory_mib or int(facts.get("memtotal_mb") or 0)
    gpus = (expected.gpu_count or 0) if expected.has_nvidia_gpu else 0
    return Worker(
        name=node_name(inventory_name, variables, hosts),
        address=where,
        **(_table(expected) or {"cpus": _measured(facts) or so_far.cpus}),
        memory_mib=memory_mib * memory_percent // 100 or so_far.memory_mib,
        gpu_type=gpu_type(expected.gpu_model or "") if gpus else "",
        gpus=gpus,
        instance_type="" if instance_type == "none" else instance_type,
        seen=bool(facts.get("hostname")),
    )


def _table(expected: Expected) -> dict[str, int]:
    if not expected.vcpus:
        return {}
    return _split(expected.vcpus, expected.numa_nodes or 1, expected.threads_per_core or 1)


def _measured(facts: Mapping[str, Any]) -> int:
    return int(facts.get("processor_nproc") or facts.get("processor_vcpus") or 0)


def _split(cpus: int, sockets: int, threads: int) -> dict[str, int]:
    if cpus % (sockets * threads):
        return {"cpus": cpus}
    cores = cpus // (sockets * threads)
    return {"cpus": cpus, "sockets": sockets, "cores_per_socket": cores, "threads_per_core": threads}


def gpu_type(model: str) -> str:
    """'H100-SXM5-80GB' -> 'h100': what a job asks for, --gres=gpu:h100:8."""
    found: list[str] = _FAMILIES.findall(model)
    rack = [name for name in found if name.startswith("GB")]
    return (rack or found or [model])[0].lower().replace(" ", "_")


def topology(instances: Iterable[Mapping[str, Any]], hostvars: Mapping[str, Any], so_far: str = "") -> list[str]:
    """Lines of topology.conf from `aws ec2 describe-instance-topology`.

    Each network node is a switch, and an instance's last one, the closest, holds it. Instances that are no host of the
    inventory are left out.
    """
    hosts = known(so_far)
    by_id = {str(hostvars[name].get("instance_id") or name): name for name in hostvars}
    above: dict[str, set[str]] = {}
    leaves: dict[str, set[str]] = {}
    for instance in instances:
        host = by_id.get(str(instance.get("InstanceId")))
        nodes = [str(node) for node in instance.get("NetworkNodes") or []]
        if host is None or not nodes:
            continue
        leaves.setdefault(nodes[-1], set()).add(node_name(host, hostvars[host], hosts))
        for upper, lower in zip(nodes, nodes[1:], strict=False):
            above.setdefault(upper, set()).add(lower)
    lines = [f"SwitchName={name} Nodes={','.join(sorted(held))}" for name, held in sorted(leaves.items())]
    return lines + [f"SwitchName={name} Switches={','.join(sorted(held))}" for name, held in sorted(above.items())]
