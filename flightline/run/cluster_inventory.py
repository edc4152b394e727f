"""`-i kubernetes`: the nodes of kubectl's cluster as an inventory file beside the run store, written anew each time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from flightline_node.model import SettingsError

from ..kubernetes import inventory
from ..store.atomic import write_atomic
from .launchers import LaunchError
from .launchers.kubernetes import KubernetesLauncher

WORD = "kubernetes"
"""In place of an inventory's path; a file of that name is ./kubernetes."""


def is_written(source: str) -> bool:
    """Is it a file that was written here, as the runs by it name it?"""
    return bool(re.fullmatch(rf"{WORD}(-[A-Za-z0-9-]+)?\.json", Path(source).name))


def resolved(sources: Sequence[str], store: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The sources, with a file in place of WORD. options: more words for kubectl. Raises SettingsError."""
    return tuple(str(_written(store, options)) if source == WORD else source for source in sources)


def _written(store: Path, options: Sequence[str]) -> Path:
    try:
        nodes = KubernetesLauncher(options).nodes()
    except LaunchError as error:
        raise SettingsError(f"-i {WORD}: {error}") from error
    # A cluster's own: a later command without -i takes the file that the run names.
    named = next((word.partition("=")[2] for word in options if word.startswith("--context=")), "")
    path = store.parent / (f"{WORD}-{re.sub(r'[^A-Za-z0-9]+', '-', named)}.json" if named else f"{WORD}.json")
    content = json.dumps(inventory.of_nodes(nodes), indent=1)
    try:
        write_atomic(path, f"{content}\n".encode())
    except OSError as error:
        raise SettingsError(
            f"saw {path}: {error.strerror}; wanted to write the cluster's inventory there; do: --store FILE elsewhere"
        ) from error
    return path
