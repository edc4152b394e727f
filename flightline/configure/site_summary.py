"""What a configuration run leaves behind, said per host: configured, failed where, or lost where."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import package_trouble

NAMES_PER_LINE = 8
SAID_CHARACTERS = 400
NO_HOSTS = (
    "saw no host in the inventory (or --limit), wanted at least one; do: correct its filters; a stack with "
    "gpuNodeCount 0 has none until it grows, and its nodes configure themselves then"
)
RUN_AGAIN = "do: mend or replace these, then run again; a run is safe to repeat and continues where they stopped"


@dataclass(frozen=True)
class HostTrouble:
    """Where a host left the run, and what was said of it."""

    task: str
    said: str = ""

    def __str__(self) -> str:
        seen, mark, do = " ".join(self.said.split()).partition("; do: ")
        do = do if mark else package_trouble.advice(seen, "")  # a task without words of its own
        told = textwrap.shorten(seen, SAID_CHARACTERS, placeholder=" ...") + (f"; do: {do}" if do else "")
        return f"{self.task}: {told}" if told else self.task


@dataclass
class SiteRun:
    """The hosts of a run in inventory order, and those that left it."""

    hosts: list[str] = field(default_factory=list)
    failed: dict[str, HostTrouble] = field(default_factory=dict)
    refused: dict[str, list[HostTrouble]] = field(default_factory=dict)
    """What independent roles refused, each once; the host failed at the end for it."""
    lost: dict[str, HostTrouble] = field(default_factory=dict)

    def configured(self) -> list[str]:
        """Hosts that went through to the end."""
        return [name for name in self.hosts if name not in self.failed and name not in self.lost]

    def lines(self) -> list[str]:
        """The summary; every host of the run stands in it once."""
        if not self.hosts:
            return ["nothing was configured", NO_HOSTS]
        done = self.configured()
        text = [f"{len(done)} of {len(self.hosts)} hosts configured", *_listed(done)]
        failed = {name: self.refused.get(name) or [trouble] for name, trouble in self.failed.items()}
        text += _told("failed", failed, [name for name in self.hosts if name not in self.lost])
        text += _told("unreachable", {name: [trouble] for name, trouble in self.lost.items()}, self.hosts)
        return [*text, RUN_AGAIN] if len(done) < len(self.hosts) else text


def _listed(names: list[str]) -> list[str]:
    return [f"  {', '.join(names[at : at + NAMES_PER_LINE])}" for at in range(0, len(names), NAMES_PER_LINE)]


def _told(word: str, troubles: Mapping[str, list[HostTrouble]], hosts: Iterable[str]) -> list[str]:
    return [f"{word:<12} {name}  at {trouble}" for name in hosts for trouble in troubles.get(name, [])]
