"""The checks that one look at one node cannot answer: their texts, and which versions a fleet must share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flightline_node.judge.checks import CHECKS
from flightline_node.model import Check, Status

from ..record.witness import CLOCK, IDENTITY
from ..store.rows import ABSENT, NODE, REACHABLE
from .growth import ECC_CHECK, EFA_CHECK
from .together import FABRIC


@dataclass(frozen=True)
class FleetCheck:
    """A check that needs more than one node, or that is about the node as a whole. do: as of any Check."""

    title: str
    why: str
    remedy: str
    do: str | None = None


STRAGGLER = "straggler"
BASELINE = "baseline"
STORAGE = "storage_together"
UNIFORM: Mapping[str, tuple[str, Status]] = {
    "driver": ("NVIDIA driver", Status.FAIL),
    "cuda": ("CUDA version", Status.FAIL),
    "nccl": ("NCCL", Status.FAIL),
    "efa_installer": ("EFA installer", Status.FAIL),
    "efa_driver": ("EFA driver", Status.FAIL),
    "kernel": ("kernel", Status.FAIL),
    # Two VBIOS versions of one board train together; they are worth knowing when ranks differ in speed.
    "vbios": ("VBIOS", Status.WARN),
}
"""Versions that nodes of one instance type must share -> (name, status of a node that differs)."""

FLEET_CHECKS: dict[str, FleetCheck] = {
    REACHABLE: FleetCheck(
        "Reachable",
        "A node that does not answer cannot join a job, and what was not looked at is not good.",
        "Look at the connection's own message: instance state, security group, host key, user, SSM agent. A run that "
        "was ended early: run it again.",
    ),
    NODE: FleetCheck(
        "Node judged",
        "The checks did not run to their end on the node, so nothing is known about it.",
        "Read the message; usual causes are no Python 3.8 or later where Ansible looks (name one in "
        "ansible_python_interpreter), a sudo that wants a password, a full disk, or memory exhausted.",
    ),
    CLOCK: FleetCheck(
        "Answer of this call",
        "An answer that was measured at another time says nothing of the node as it is now.",
        "Set the node's clock (chronyc makestep, or restart chronyd) and judge it again. If it is right, find out who "
        "answers in the node's name.",
    ),
    IDENTITY: FleetCheck(
        "Accelerators named",
        "What has no name of its own cannot be told from another node's, nor followed from run to run.",
        "Look at nvidia-smi -L (or neuron-ls) on the node: as many lines as devices, each with its UUID or serial.",
    ),
    "bundle_files": FleetCheck(
        "Every file of a bundle read (flightline judge)",
        "A log under another name, damaged or packed in an unknown way may hold the fault: no go stands beside it.",
        "Bring the file itself, whole and under the name that is wanted; take out of the bundle what is no output of "
        "the node.",
    ),
    ABSENT: FleetCheck(
        "All nodes there",
        "A job for eight nodes stalls on a node that was never launched as it does on a broken one.",
        "Look at the Auto Scaling group's activity. Where fewer nodes are meant: change gpuNodeCount and `make up`, or "
        "name those to judge with --limit.",
    ),
    "inventory": FleetCheck(
        "Inventory",
        "A verdict over no hosts, or over one node listed twice, is about another fleet than the one that trains.",
        "Correct the inventory, its filters or --limit. A stack with gpuNodeCount 0 has no node until it grows.",
    ),
    "duplicate_instance": FleetCheck(
        "Instance listed once",
        "Two inventory names for one instance: the job gets a node less than it was promised.",
        "Remove one of the names from the inventory.",
    ),
    "duplicate_gpu": FleetCheck(
        "GPU seen once",
        "One GPU on two hosts means that two names lead to one node, or that an answer is a stale copy.",
        "Find out which host the names really reach (host keys, DNS, instance ids) and correct the inventory.",
    ),
    FABRIC: FleetCheck(
        "Collectives over several nodes",
        "Each node alone may be good and the job still crawl: at one node's network, one path, a part of the network.",
        "Run it again with flightline fabric. A node slow with every partner: replace it. A path: leave one end out. A "
        "part of the network, or all: placement group, security group, EFA set-up (docs/fabric.md).",
        "Run it again with flightline fabric. A path: leave one end out. A part of the network, or all: placement "
        "group, security group, EFA set-up (docs/fabric.md).",
    ),
    STRAGGLER: FleetCheck(
        "As fast and as cool as its fleet",
        "Every rank waits for the slowest GPU. One far below the others' rate or clock, or hotter, may pass its floor.",
        "Judge the node again at level deep. A GPU that stays apart: look at its power limit, clocks and cooling.",
    ),
    STORAGE: FleetCheck(
        "Shared file system with all nodes at once",
        "A checkpoint waits for the slowest client, and servers that one client cannot fill choke on a hundred.",
        "A slow client: its network, its mount options and Lustre settings, then flightline fabric. All slow: the file "
        "system's throughput capacity and stripes.",
    ),
    BASELINE: FleetCheck(
        "Like the known-good nodes",
        "A type's floor leaves room below what good nodes reach; a set known to be good, in use as baseline, does not.",
        "Judge the node again. One that stays short: clocks, power limit, cooling, network. All short at once: a "
        "driver or library has changed, so save a new baseline (docs/fabric.md).",
    ),
    ECC_CHECK: FleetCheck(
        "Memory errors since an earlier run",
        "Totals outlive resets and say nothing about when. An uncorrectable error of the last day that no row remap "
        "answers comes back in the middle of a job; so does a GPU with over a hundred corrected ones a day (AWS).",
        "Reset the GPU and run the node at level deep. When the count grows again, replace the instance.",
        "When the count grows again, replace the instance.",
    ),
    EFA_CHECK: FleetCheck(
        "EFA errors since an earlier run",
        "Drops and timeouts stall collectives for seconds; EFA's counters survive a reboot, so only growth counts.",
        "On one node: replace it. On many: look at security groups and placement.",
        "On many: look at security groups and placement.",
    ),
    **{
        f"uniform_{key}": FleetCheck(
            f"Same {name} on all nodes of a type",
            "Mixed versions in one job hang or slow down collectives in ways that no single node shows.",
            "Bring the nodes that differ to the fleet's version (same image), or pin the version in the inventory.",
        )
        for key, (name, _) in UNIFORM.items()
    },
}


def title_of(check: str) -> str:
    """A check's title; its id when it is of another version."""
    known = _known(check)
    return known.title if known else check


def advice_of(check: str) -> str:
    """What to do where a finding's remedy leaves it open; "" for nothing more, and for a check of another version."""
    known = _known(check)
    return "" if known is None else known.remedy if known.do is None else known.do


def _known(check: str) -> Check | FleetCheck | None:
    return CHECKS.get(check) or FLEET_CHECKS.get(check)
