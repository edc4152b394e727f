"""`-i NAME` of a launcher that lists a cluster: its nodes as a file beside the run store, written anew each time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from flightline_node.model import SettingsError

from ..store.atomic import write_atomic
from . import launchers
from .launchers import Launcher, LaunchError, Listing


def is_word(source: str) -> bool:
    """Is it a launcher's name in place of an inventory's path? A file of that name is ./NAME."""
    return source in launchers.names() and issubclass(launchers.kind(source), Listing)


def word_of(source: str) -> str:
    """The word by which a file was written here, as the runs by it name it; "" for another file."""
    found = re.fullmatch(r"([a-z]+)(-[A-Za-z0-9-]+)?\.json", Path(source).name)
    return found[1] if found and is_word(found[1]) else ""


def launcher_of(sources: Sequence[str]) -> str:
    """Who lists the nodes of these sources; "" where they are all paths."""
    return next(filter(is_word, sources), "")


def resolved(sources: Sequence[str], store: Path, named: Launcher | None = None) -> tuple[str, ...]:
    """The sources, with files in place of words. named: who asks; it lists its own nodes. Raises SettingsError."""
    own = named.name if named else ""
    return tuple(
        str(_written(store, named if named and one == own else launchers.make(one))) if is_word(one) else one
        for one in sources
    )


def _written(store: Path, launcher: Launcher) -> Path:
    word = launcher.name
    assert isinstance(launcher, Listing)
    try:
        listed = launcher.inventory()
    except LaunchError as error:
        raise SettingsError(f"-i {word}: {error}") from error
    # A cluster's own: a later command without -i takes the file that the run names.
    cluster = re.sub(r"[^A-Za-z0-9]+", "-", launcher.cluster)
    path = store.parent / (f"{word}-{cluster}.json" if cluster else f"{word}.json")
    try:
        write_atomic(path, f"{json.dumps(listed, indent=1)}\n".encode())
    except OSError as error:
        raise SettingsError(
            f"saw {path}: {error.strerror}; wanted to write the cluster's inventory there; do: --store FILE elsewhere"
        ) from error
    return path
