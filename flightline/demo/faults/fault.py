"""What a fault is, and what must become of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Callable, Concatenate, Mapping, Optional, ParamSpec, Tuple

from flightline_node.model import Remedy, Status, Verdict
from flightline_node.names import check_id

from ..hardware import Machine
from ..tree import Entry

Change = Mapping[str, Optional[Entry]]
"""Paths that a fault alters; None takes a file away."""


Apply = Callable[[Mapping[str, Entry], Machine], Change]
P = ParamSpec("P")


def applied(change: Callable[Concatenate[Mapping[str, Entry], Machine, P], Change]) -> Callable[P, Apply]:
    """A change that needs more words than files and machine: called with those, it is an Apply."""

    @functools.wraps(change)
    def worded(*given: P.args, **named: P.kwargs) -> Apply:
        return lambda files, machine: change(files, machine, *given, **named)

    return worded


ACTIVE = (
    "dcgm_diag", "nccl_correctness", "nccl_busbw", "nccl_transport", "gpu_load", "gpu_compute", "gpu_bandwidth",
    "efa_loopback", "fs_io", "fio_disk", "nccom_test", "nccom_busbw",
)  # fmt: skip
"""Checks of active tests: none of them starts on a node in use."""


_HOW = {
    Status.FAIL: "", Status.UNKNOWN: ", not measured", Status.UNREACHABLE: ", no answer",
    Status.WARN: ", a warning", Status.INFO: ", a note",
}  # fmt: skip
NODE, FLEET, CONNECTION = "node", "fleet", "connection"


class DoesNotApply(ValueError):
    """The instance type lacks what the fault is about."""


@dataclass(frozen=True)
class Fault:
    """A fault and what must become of it.

    check: the check whose finding must not be PASS. status and remedy: of that finding. also: checks
    that may answer with FAIL or UNKNOWN besides, because the same fault shows there. blinds: parsers
    whose output it spoils, so that every check resting on them may be UNKNOWN. scope: NODE, FLEET (each
    node is go, the comparison of the fleet finds it) or CONNECTION (the node does not answer).
    type: an instance type it can be shown on. level: the lowest level that looks for it.
    """

    name: str
    what: str
    check: str
    remedy: Remedy
    apply: Apply
    status: Status = Status.FAIL
    also: Tuple[str, ...] = ()
    blinds: Tuple[str, ...] = ()
    scope: str = NODE
    type: str = "p5.48xlarge"
    level: str = "quick"

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", check_id(self.check))
        object.__setattr__(self, "also", tuple(map(check_id, self.also)))

    @property
    def blocks(self) -> bool:
        """Whether it makes the node no-go."""
        return self.status in (Status.FAIL, Status.UNKNOWN, Status.UNREACHABLE)

    @property
    def comes_to(self) -> str:
        """The verdict of a node with it, by which check, and from which level on."""
        verdict = Verdict.NO_GO if self.blocks else Verdict.GO
        how = ", drift across the fleet" if self.scope == FLEET else _HOW[self.status]
        return f"{verdict}{how}: {self.check}" + (f", from level {self.level}" if self.level != "quick" else "")
