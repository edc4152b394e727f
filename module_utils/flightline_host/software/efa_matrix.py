"""Which EFA driver, libfabric, aws-ofi-nccl, NCCL and NVIDIA driver go together."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from ..host import Problem
from ..releases import PEER_MEMORY, PLUGIN_LIBFABRIC, PLUGIN_NCCL, VALIDATED
from ..version import numbers, reaches, within


class Stack(NamedTuple):
    """Versions that have to go together; None where one is not there or not known."""

    efa_driver: Optional[str] = None
    libfabric: Optional[str] = None
    ofi_nccl: Optional[str] = None
    nccl: Optional[str] = None
    nvidia_driver: Optional[str] = None

    def facts(self) -> Dict[str, Optional[str]]:
        """Plain values."""
        return dict(self._asdict())


def conflicts(stack: Stack, minimum: Mapping[str, Any]) -> Iterator[Problem]:
    """What does not go together. An unknown version that a rule needs is a problem too: it might be wrong."""
    facts = stack.facts()
    for name, least in minimum.items():
        if name not in facts:
            raise Problem(f"minimum for {name}", f"one of {', '.join(facts)}", "correct efa_minimum")
        if not reaches(facts[name], str(least)):
            yield _conflict(f"{name} {facts[name] or 'not known'}", f"{least} or later, for this instance type")
    yield from _plugin(stack)
    for gpu, efa in PEER_MEMORY:
        if reaches(stack.nvidia_driver, gpu) and not reaches(stack.efa_driver, efa):
            yield _conflict(
                f"EFA driver {stack.efa_driver or 'not known'} with NVIDIA driver {stack.nvidia_driver}",
                f"EFA driver {efa} or later: older ones have no peer memory with it",
            )


def _plugin(stack: Stack) -> Iterator[Problem]:
    if not stack.ofi_nccl:
        return
    if not reaches(stack.libfabric, PLUGIN_LIBFABRIC):
        yield _conflict(
            f"libfabric {stack.libfabric or 'not known'} with aws-ofi-nccl {stack.ofi_nccl}",
            f"{PLUGIN_LIBFABRIC} or later",
        )
    if stack.nccl is None:
        return
    if not reaches(stack.nccl, PLUGIN_NCCL):
        yield _conflict(f"NCCL {stack.nccl} with aws-ofi-nccl {stack.ofi_nccl}", f"{PLUGIN_NCCL} or later")
    newest = max(validated(stack.ofi_nccl), key=numbers, default=None)
    if newest and numbers(stack.nccl)[:2] > numbers(newest)[:2]:
        yield _conflict(
            f"NCCL {stack.nccl} with aws-ofi-nccl {stack.ofi_nccl}",
            f"NCCL up to {newest}, which the plugin was validated with",
        )


def validated(plugin: str) -> List[str]:
    """NCCL versions that a release of the plugin was tried with."""
    return next((list(nccl) for release, nccl in VALIDATED if within(plugin, release)), [])


def _conflict(seen: str, wanted: str) -> Problem:
    return Problem(
        seen,
        f"{wanted}; nothing was installed",
        "choose another efa_version, or change the other side of the pair first",
    )
