"""What an inventory wants of the fabric test: the variable flightline_fabric, checked."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flightline_node.know.nccl import gates
from flightline_node.model import SettingsError
from flightline_node.read.parsers.nccl_files import COLLECTIVES
from flightline_node.suggest import meant

from .ansible import FabricRequest
from .criterion import LEAST_SHARE

TESTS = "/opt/nccl-tests/build"
"""Where the role cuda_nccl puts them."""
EVERY = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
LEAST_MOST = 8 << 30
"""Bytes to which every type is tested; further only one whose links are said to be full later."""
ENVIRONMENT = {"NCCL_DEBUG": "INFO"}
"""Its log is the proof of the transport."""
RUNS = ("auto", "always", "never")
LAUNCHERS = ("mpirun", "srun")


def program_of(instance_type: str) -> tuple[str, ...]:
    """The test where nobody names one: from the smallest message to that at which the type's links are full."""
    most = max((gate.min_bytes for gate in gates() if gate.instance_type == instance_type), default=0)
    return (f"{TESTS}/{{collective}}_perf", "-b", "8", "-e", f"{max(most, LEAST_MOST) >> 30}G", "-f", "2", "-g", "1")


@dataclass(frozen=True)
class FabricSettings:
    """The test as the inventory wants it.

    run: auto, which is not where only some checks were asked for; always; never. own_program: it names one itself.
    """

    asked: FabricRequest
    run: str = "auto"
    own_program: bool = False
    least_share: float = LEAST_SHARE


def wanted_of(hostvars: Mapping[str, Any]) -> FabricSettings:
    """The test of a host's inventory variables. Raises SettingsError with every mistake at once."""
    given = hostvars.get("flightline_fabric") or {}
    mistakes = [f"flightline_fabric: {text}" for text in _mistakes(given)]
    if mistakes:
        raise SettingsError(*mistakes)
    program = given.get("program") or program_of(str(hostvars.get("instance_type") or ""))
    asked = FabricRequest(
        (),
        collectives=tuple(given.get("collectives") or EVERY),
        program=tuple(shlex.split(program) if isinstance(program, str) else program),
        ranks=int(given.get("ranks") or 0),
        launcher=given.get("launcher") or LAUNCHERS[0],
        options=tuple(given.get("launcher_options") or ()),
        environment={**ENVIRONMENT, **{str(k): str(v) for k, v in (given.get("environment") or {}).items()}},
        deadline_s=int(given.get("deadline_s") or FabricRequest.deadline_s),
        ask_ec2=bool(given.get("ask_ec2")),
        storage=str(given.get("storage") or ""),
        storage_mb_s=float(given.get("storage_mb_s") or 0.0),
    )
    share = float(given.get("least_share") or LEAST_SHARE)
    return FabricSettings(asked, str(given.get("run", "auto")).lower(), bool(given.get("program")), share)


def _mistakes(given: Any) -> list[str]:
    if not isinstance(given, Mapping):
        return [f"saw {given!r}, wanted a mapping"]
    known = ", ".join(_TAKES)
    found = [
        f"saw unknown key {key!r}{meant(str(key), _TAKES)}, wanted one of {known}" for key in given if key not in _TAKES
    ]
    for key, (wanted, accepts) in _TAKES.items():
        if given.get(key) is not None and not accepts(given[key]):
            found.append(f"{key}: saw {given[key]!r}, wanted {wanted}")
    return found


def _between(low: float, high: float, value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


_TAKES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "run": ("auto, always or never", lambda value: str(value).lower() in RUNS),
    "program": ("a command line", lambda value: isinstance(value, (str, list)) and bool(value)),
    "launcher": (" or ".join(LAUNCHERS), lambda value: value in LAUNCHERS),
    "launcher_options": ("a list of arguments", lambda value: isinstance(value, list)),
    "ask_ec2": ("true or false", lambda value: isinstance(value, bool)),
    "storage": (
        "where the shared file system is mounted",
        lambda value: isinstance(value, str) and value.startswith("/"),
    ),
    "storage_mb_s": ("its throughput in MB/s from 1 to 1e8", lambda value: _between(1, 1e8, value)),
    "ranks": ("a number from 1 to 64", lambda value: _between(1, 64, value)),
    "environment": ("a mapping of names to values", lambda value: isinstance(value, Mapping)),
    "deadline_s": ("seconds from 5 to 7200", lambda value: _between(5, 7200, value)),
    "least_share": ("a share from 0.1 to 0.99", lambda value: _between(0.1, 0.99, value)),
    "collectives": (
        f"a list of {', '.join(COLLECTIVES)}",
        lambda value: isinstance(value, list) and bool(value) and set(value) <= set(COLLECTIVES),
    ),
}
