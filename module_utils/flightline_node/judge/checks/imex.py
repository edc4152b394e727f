"""Do the nodes of an NVLink rack share memory: is IMEX up, here and in its domain?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.expected import NO_TYPE
from ...model import Check, Facts, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context
from .common import OF_GPU, nvidia_gpus_expected

SILENT_SERVICE = Reason("silent_service", "IMEX does not answer", Remedy.FIX_CONFIG)
NOT_READY = Reason("not_ready", "IMEX of this node is not ready", Remedy.FIX_CONFIG)
DOMAIN_DOWN = Reason("domain_down", "the IMEX domain is not up", Remedy.FIX_CONFIG)
DOMAIN_NOT_SHOWN = Reason("domain_not_shown", "the state of the IMEX domain was not printed")
DOMAIN_DEGRADED = Reason("domain_degraded", "the IMEX domain is degraded")

READY, UP = "READY", "UP"
_SETTLED = frozenset({"UP"})


def _others(facts: Facts) -> List[str]:
    bad = [f"{node['host']}: {node['state']}" for node in facts.get("nodes", []) if node["state"] != READY]
    return [*bad, *facts.get("broken", [])]


def evaluate(context: Context) -> Iterator[Finding]:
    """A bad state of its own fails the node; a domain that is not up for another node's sake warns, and names it."""
    facts = context.facts("imex")
    own, domain, others = facts.get("own"), facts.get("domain"), _others(facts)
    rest: Dict[str, Any] = {"evidence": others[:8]}
    if facts.get("error"):
        # Schedulers start IMEX with the job (a Slurm prolog, a compute domain of Kubernetes): it may be right now down.
        text = f"IMEX does not answer: {facts['error']}; right only where each job starts it"
        yield context.warn(SILENT_SERVICE, text, measured="no answer", expected=f"{READY}, domain {UP}")
    elif own is not None and own != READY:
        text = f"IMEX of this node is {own}, wanted {READY}: GPUs of other nodes cannot be reached over NVLink"
        yield context.fail(NOT_READY, text, measured=own, expected=READY, **rest)
    elif domain in _SETTLED and not others:
        yield context.ok(f"IMEX is up on {len(facts.get('nodes', []))} nodes", measured=domain, expected=UP)
    elif own is None and domain == "DOWN":
        text = "the IMEX domain is DOWN, and this node's own state was not printed"
        yield context.fail(DOMAIN_DOWN, text, measured=domain, expected=UP, **rest)
    elif domain is None:
        yield context.unknown(
            DOMAIN_NOT_SHOWN, f"IMEX of this node is {own}, the state of its domain was not printed", **rest
        )
    else:
        text = f"the IMEX domain is {domain}: {', '.join(others[:4]) or 'no node is named'}"
        yield context.warn(DOMAIN_DEGRADED, text, measured=domain, expected=UP, **rest)


def _in_a_rack(context: Context) -> Optional[Skip]:
    brought = context.optional("imex") or {}
    if context.expected.instance_type == NO_TYPE and brought and not brought.get("error"):
        return None
    if not context.expected.nvlink_rack:
        return skips.NO_RACK.because(f"{context.expected.instance_type} shares no NVLink with other nodes")
    return nvidia_gpus_expected(context)


CHECK = Check(
    id="imex",
    order=380,
    title="IMEX",
    what="The state of nvidia-imex on this node, of its domain, and of its connections to the rack's other nodes.",
    why="Without it a job over several nodes of an NVLink rack fails at start, or falls back to the network.",
    remedy="Give every node the same nodes_config.cfg and driver; start nvidia-imex on all of "
    "them, or let each job do it.",
    out_of_service="Yes where the node's own state is bad; another node's warns, and so does IMEX that jobs start.",
    source="NVIDIA IMEX guide, command service; AWS guide to IMEX on P6e-GB200; NVIDIA/nccl src/mnnvl.cc",
    needs=("imex",),
    tags=("gpu", "nvlink", "services"),
    applies=_in_a_rack,
    skips=(*OF_GPU, skips.NO_RACK),
    evaluate=evaluate,
)
