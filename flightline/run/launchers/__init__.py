"""Who asks the nodes of a fleet beside Ansible. A launcher is one file here: NAME.py with a class NameLauncher.

It starts the node library that the nodes keep, hands on what each says, and leaves nothing behind. What an answer is
worth is decided elsewhere, alike for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from ...record.outputs import HostReply
from ..calls import Call


class LaunchError(RuntimeError):
    """The launcher itself cannot work here; the text says what was seen, what is wanted and what to do."""


class Launcher(Protocol):
    """One way to ask."""

    how: str
    """What is said of a host that gives no answer: 'srun'."""

    @property
    def answers_at(self) -> Mapping[str, str]:
        """Where answers may still come to when the run is over: what OF_A_STACK names, empty for nowhere."""

    def known_as(self, call: Call) -> str:
        """The name by which the launcher knows a host. Raises SettingsError where it has none."""

    def unlisted(self, calls: Sequence[Call]) -> Mapping[str, str]:
        """Nodes that the launcher knows and nobody asks for -> what it says of each. Raises LaunchError."""

    def ask(self, calls: Sequence[Call], run_id: str, until: float, on_reply: Callable[[HostReply], None]) -> None:
        """Ask; returns when each host was told of once or time.monotonic() is `until`. Raises LaunchError."""

    def stop(self) -> None:
        """End what still runs, on the nodes as well."""


ANSIBLE = "ansible"
"""Who asks where nobody else is named: no launcher, the preflight's playbook itself."""


def names() -> tuple[str, ...]:
    """What --via takes beside ANSIBLE: the files of this folder."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def make(name: str, options: Sequence[str] = ()) -> Launcher:
    """The launcher of a name, of which only its own file is loaded. options: words handed on to its tool."""
    kind: Callable[[Sequence[str]], Launcher] = getattr(
        import_module(f".{name}", __name__), f"{name.capitalize()}Launcher"
    )
    return kind(options)


__all__ = ["Call", "HostReply", "LaunchError", "Launcher", "make", "names"]
