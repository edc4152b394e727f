"""Who asks the nodes of a fleet. A launcher is one file here: NAME.py with a class NameLauncher.

What a launcher can do stands on its class: the abilities that it derives from, and what it declares. Who needs one asks
for the ability; only a person asks by name, at --via. What an answer is worth is decided elsewhere, alike for all.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar

from flightline_node.model import SettingsError

from ...record.outputs import HostReply
from ..calls import Call

if TYPE_CHECKING:
    from ...cloud.orders import Order

VALIDATE = "validate"
"""The playbook by which the inventory is read and checked, and that asks no node."""
DEFAULT = "ansible"
"""Who asks where nobody is named."""
_OPTION = re.compile("--?[A-Za-z]")


class LaunchError(RuntimeError):
    """The launcher itself cannot work here; the text says what was seen, what is wanted and what to do."""


class Launcher:
    """One way to ask. What it leaves out of its class holds as it stands here."""

    says: ClassVar[str] = ""
    """What --via says of it: "srun, on the head node"."""
    exclusive: ClassVar[bool] = False
    """Has it a node to itself while it asks? A busy one waits until the deadline then."""
    playbook: ClassVar[str] = VALIDATE
    """What reads the inventory. Another than VALIDATE asks the nodes as well, and its callback keeps their rows."""
    example: ClassVar[str] = ""
    """One of the words that its tool takes from --via-option, such as --reservation=NAME; "" where it takes none."""
    tool: ClassVar[str] = ""
    """Who takes those words: "srun"."""
    how = ""
    """What is said of a host that gives no answer: "srun"."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = tuple(options)

    @property
    def name(self) -> str:
        """As --via takes it."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def asks(self) -> bool:
        """Does it ask when the inventory was read?"""
        return self.playbook == VALIDATE

    @property
    def answers_at(self) -> Mapping[str, str]:
        """Where answers may still come to when the run is over: what OF_A_STACK names, empty for nowhere."""
        return {}

    def known_as(self, call: Call) -> str:
        """The name by which the launcher knows a host. Raises SettingsError where it has none."""
        return call.name

    def unlisted(self, calls: Sequence[Call]) -> Mapping[str, str]:
        """Nodes that the launcher knows and nobody asks for -> what it says of each. Raises LaunchError."""
        return {}

    def ask(self, calls: Sequence[Call], run_id: str, until: float, on_reply: Callable[[HostReply], None]) -> None:
        """Ask; returns when each host was told of once or time.monotonic() is `until`. Raises LaunchError."""

    def stop(self) -> None:
        """End what still runs, on the nodes as well."""


class Detaching(Launcher, ABC):
    """Its nodes answer without this side, into the bucket of their stack."""

    @abstractmethod
    def sort_out(self, calls: Sequence[Call]) -> tuple[list[Call], list[HostReply]]:
        """Who can be asked, and what is said of the others. Raises LaunchError."""

    @abstractmethod
    def send(self, ready: Sequence[Call], run_id: str, until: float) -> None:
        """Ask, and wait for no answer. Raises LaunchError."""

    @abstractmethod
    def came(self, at: Mapping[str, str], order: Order, known: Iterable[str]) -> Iterator[tuple[Call, HostReply]]:
        """What has come of an order's hosts, but for those that are known. at: as answers_at. Raises AWS' errors."""


class Gathering(Launcher, ABC):
    """It starts one program over several nodes from this machine."""

    starter: ClassVar[str]
    """By which flightline_host.trial.collective starts the ranks."""
    start_options: ClassVar[tuple[str, ...]]
    """More words for it, for a start that waits for no node."""
    node_word: ClassVar[str]
    """The shell's word for the name of the node on which a task runs."""

    @abstractmethod
    def taken(self, names: Iterable[str]) -> Mapping[str, str]:
        """Why nodes cannot be had now; those that are free are left out. Raises LaunchError."""

    @abstractmethod
    def cancel(self, job: str) -> None:
        """End what was started under a name, if it is there."""


class Listing(Launcher, ABC):
    """It knows a cluster's nodes: `-i NAME` takes them as the inventory."""

    lists: ClassVar[str]
    """What `-i NAME` takes: "the GPU nodes of kubectl's cluster"."""
    cluster: str = ""
    """Which of its clusters its options name; "" for the one that its tool takes."""

    @abstractmethod
    def inventory(self) -> Mapping[str, Any]:
        """The cluster's nodes as Ansible's inventory. Raises LaunchError, SettingsError."""


def names() -> tuple[str, ...]:
    """What --via takes, the default first: the files of this folder."""
    found = sorted(module.name for module in iter_modules(__path__))
    return (DEFAULT, *(name for name in found if name != DEFAULT))


def kind(name: str) -> type[Launcher]:
    """The class of a launcher, of which only its own file is loaded."""
    found: type[Launcher] = getattr(import_module(f".{name}", __name__), f"{name.capitalize()}Launcher")
    return found


def that_can(ability: type[Launcher]) -> tuple[str, ...]:
    """The names of the launchers with an ability."""
    return tuple(name for name in names() if issubclass(kind(name), ability))


def make(name: str, options: Sequence[str] = ()) -> Launcher:
    """The launcher of a name. options: words for its tool. Raises SettingsError for words that it cannot be handed."""
    own = kind(name)
    if options and not own.example:
        raise SettingsError(f"saw --via-option {options[0]} with --via {name}; wanted none; do: leave it out")
    # A tool would take another first word for what it is to run, in place of the node library.
    if options and not _OPTION.match(options[0]):
        raise SettingsError(f"--via-option: saw {options[0]}, wanted an option first, such as {own.example}")
    return own(options)


__all__ = ["Call", "Detaching", "Gathering", "HostReply", "LaunchError", "Launcher", "Listing", "make", "names"]
