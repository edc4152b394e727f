"""Materialise simulated nodes: a directory each, made fast and only when it changed.

What a healthy node of a type prints is written once, under `.healthy/` beside the nodes; a node links to
it and holds only what is its own (identity) or altered by its faults.
"""

# os is twice as fast as pathlib, which counts over thousands of nodes.
# ruff: noqa: PTH100, PTH102, PTH103, PTH104, PTH112, PTH114, PTH120, PTH211

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from flightline_node.model import SettingsError

from .faults import broken, named
from .hardware import machine
from .tree import SIMULATED, Entry, Files, Link, Tool, healthy

STAMP = "node.json"
HEALTHY = ".healthy"

_IDENTITY = re.compile(rb"@(UUID|SERIAL|INSTANCE)(\d*)@")
_Tree = Dict[str, Union[Entry, "_Tree"]]


@dataclass(frozen=True)
class _Step:
    """One thing to make in a node's directory: a folder, a link, or a file."""

    path: str
    target: Optional[str] = None
    content: Optional[bytes] = None
    program: bool = False
    own: bool = False


@lru_cache(maxsize=None)
def generator() -> str:
    """Name what the nodes are made by: a new generator makes every node anew."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    from flightline_node.ask import probes
    from flightline_node.know import hardware as instance_types

    for module in (probes, instance_types):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()[:12]


def instance_id(host: str) -> str:
    """Make up the EC2 instance id of a simulated node."""
    return "i-0demo" + hashlib.sha256(host.encode()).hexdigest()[:12]


def _identity(host: str, instance: str, kind: str, index: str) -> str:
    if kind == "INSTANCE":
        return instance
    digest = hashlib.sha256(f"{host}/{index}".encode()).hexdigest()
    if kind == "SERIAL":
        return f"165{int(digest[:12], 16) % 10**10:010d}"
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _fill(content: bytes, host: str, instance: str) -> bytes:
    return _IDENTITY.sub(
        lambda m: _identity(host, instance, m.group(1).decode(), m.group(2).decode()).encode(), content
    )


def _nest(files: Files) -> _Tree:
    tree: _Tree = {}
    for path, entry in files.items():
        *folders, name = path.split("/")
        here = tree
        for folder in folders:
            here = here.setdefault(folder, {})  # type: ignore[assignment]
        here[name] = entry
    return tree


def _owned(entry: Union[Entry, _Tree]) -> bool:
    """Whether it holds an identity, so that no other node can share it."""
    if isinstance(entry, dict):
        return any(_owned(child) for child in entry.values())
    return isinstance(entry, bytes) and b"@" in entry and _IDENTITY.search(entry) is not None


def _steps(tree: _Tree, shared: Optional[_Tree], base: str, prefix: str = "") -> List[_Step]:
    """List what to make of a tree. Parts that equal `shared` become links into `base`."""
    steps: List[_Step] = []
    for name, entry in tree.items():
        path = f"{prefix}{name}"
        if shared is not None and shared.get(name) == entry and not _owned(entry):
            if prefix == "out/":
                continue  # the tools look in healthy/ for what is not here
            steps.append(_Step(path, target="../" * (path.count("/") + 1) + f"{base}/{path}"))
        elif isinstance(entry, dict):
            below = shared.get(name) if shared is not None else None
            steps.append(_Step(path))
            steps += _steps(entry, below if isinstance(below, dict) else None, base, path + "/")
        elif isinstance(entry, Link):
            steps.append(_Step(path, target=entry.target))
        elif isinstance(entry, Tool):
            steps.append(_Step(path, content=entry.render(name), program=True))
        else:
            steps.append(_Step(path, content=entry, own=_owned(entry)))
    return steps


def _make(directory: str, steps: Sequence[_Step], host: str, instance: str) -> None:
    os.mkdir(directory)
    for step in steps:
        path = f"{directory}/{step.path}"
        if step.target is not None:
            os.symlink(step.target, path)
        elif step.content is None:
            os.mkdir(path)
        else:
            content = _fill(step.content, host, instance) if step.own else step.content
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if step.program else 0o644)
            try:
                os.write(descriptor, content)
            finally:
                os.close(descriptor)


def _replace(directory: str, steps: Sequence[_Step], stamp: str, host: str, instance: str = "") -> None:
    """Make a directory beside its place and put it there whole, so that a reader never sees half of it."""
    parent, name = os.path.split(directory)
    part, old = f"{parent}/.{name}.part{os.getpid()}", f"{parent}/.{name}.old{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    _make(part, [*steps, _Step(STAMP, content=stamp.encode())], host, instance)
    try:
        if os.path.lexists(directory):
            os.rename(directory, old)
        os.rename(part, directory)
    except OSError:
        # Another run makes the same nodes: fine when it made the same thing, else the inventories fight.
        if _read(f"{directory}/{STAMP}") != stamp:
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(part, ignore_errors=True)


def _read(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except OSError:
        return None


def _stamp(**what: Any) -> str:
    return json.dumps({"about": SIMULATED, "generator": generator(), **what}, sort_keys=True)


def _check_ours(directory: str) -> None:
    """Never replace a directory that this module did not make."""
    if os.path.isdir(directory) and not os.path.islink(directory):
        if not os.listdir(directory) or SIMULATED in (_read(f"{directory}/{STAMP}") or ""):
            return
    elif not os.path.lexists(directory):
        return
    raise SettingsError(
        f"{directory}: saw what is not a simulated node of the demo fleet, wanted one or nothing; "
        "do: give another demo_dir"
    )


def _names(host: str, given: Any) -> Tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise SettingsError(f"{host}: saw demo_faults {given!r}, wanted a list of fault names")
    return tuple(str(name) for name in given)


@lru_cache(maxsize=256)
def steps_for(instance_type: str, faults: Tuple[str, ...]) -> Tuple[_Step, ...]:
    """List what to make of a node with these faults, the same for every node.

    Raises SettingsError for an unknown fault, one that the type cannot have, or a type that cannot be simulated.
    """
    whole = _nest(healthy(instance_type))
    base = f"{HEALTHY}/{instance_type}"
    return (_Step("healthy", target=f"../{base}"), *_steps(_nest(broken(machine(instance_type), faults)), whole, base))


@dataclass(frozen=True)
class _DemoNode:
    host: str
    directory: str
    instance_type: str
    faults: Tuple[str, ...]
    instance_id: str

    @property
    def stamp(self) -> str:
        return _stamp(
            host=self.host, instance_id=self.instance_id, instance_type=self.instance_type, faults=self.faults
        )


def _node(host: str, given: Mapping[str, Any]) -> _DemoNode:
    directory, instance_type = given.get("demo_dir"), str(given.get("instance_type") or "")
    if not directory:
        raise SettingsError(f"{host}: saw no demo_dir, wanted the directory of this simulated node")
    faults, instance = _names(host, given.get("demo_faults")), str(given.get("instance_id") or instance_id(host))
    node = _DemoNode(host, os.path.abspath(str(directory)), instance_type, faults, instance)
    try:
        named(node.faults)
        steps_for(instance_type, node.faults)
    except SettingsError as error:
        raise SettingsError(f"{host}: {error}") from error
    return node


def _check_apart(nodes: Sequence[_DemoNode]) -> None:
    """Refuse two nodes in one directory: they would take turns at replacing each other."""
    taken: Dict[str, str] = {}
    for node in nodes:
        if taken.setdefault(node.directory, node.host) != node.host:
            raise SettingsError(
                f"{node.host}: saw that demo_dir {node.directory} is that of {taken[node.directory]}, wanted its own; "
                "do: put {{ inventory_hostname }} into it"
            )


def prepare(hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the directories of simulated nodes; those already as wanted are left alone.

    hosts: name -> host variables, of which demo_dir, instance_type, demo_faults and instance_id are read. Everything is
    checked before anything is written. Raises SettingsError for an unknown fault, a type that cannot be
    simulated, or a demo_dir that holds something else; OSError when it cannot be written.
    """
    nodes = [_node(host, given) for host, given in hosts.items()]
    _check_apart(nodes)
    stale = [node for node in nodes if _read(f"{node.directory}/{STAMP}") != node.stamp]
    for node in stale:
        _check_ours(node.directory)
    for parent, instance_type in sorted({(os.path.dirname(node.directory), node.instance_type) for node in nodes}):
        _prepare_type(f"{parent}/{HEALTHY}/{instance_type}", instance_type)
    for node in stale:
        _replace(node.directory, steps_for(node.instance_type, node.faults), node.stamp, node.host, node.instance_id)


def _prepare_type(directory: str, instance_type: str) -> None:
    stamp = _stamp(healthy=instance_type)
    if _read(f"{directory}/{STAMP}") != stamp:
        _check_ours(directory)
        _replace(directory, _steps(_nest(healthy(instance_type)), None, ""), stamp, "healthy")
