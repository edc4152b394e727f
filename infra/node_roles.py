"""The roles as one file for S3: what a node needs to configure itself, the same bytes from the same checkout.

The play is that of playbooks/site.yml, so both ways run the same roles; what takes other hosts (NEED_OTHERS) stays with
the push way. The runner is ansible-core, unpacked (infra/node_ansible.py): a node needs no package index for it.
"""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_collections
import yaml

from flightline.store.atomic import write_atomic
from infra import node_ansible

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / ".flightline" / "node-roles"
NEED_OTHERS = ("cluster_ssh", "slurm")
"""Roles that exchange keys with other hosts: `make configure` applies them when the cluster stands."""

FOLDERS = ("roles", "library", "module_utils", "plugins/filter", "flightline/configure")
FILES = (
    "inventory/roles.yml",
    "flightline/__init__.py",
    "flightline/node_package.py",
    "tools/nodepackage.py",
    "tools/generated.py",
)
"""Of the control side only what the roles' filters and the node package's builder are made of."""

VARIABLES = "inventory/group_vars/aws_ec2"
OF_A_STACK = "stack.json"
"""Variables of one stack: they come beside the roles."""

_OF_A_COLLECTION = re.compile(r"\b(ansible\.posix|community\.[a-z_]+)\.([a-z_]+)\b(?=:)")
"""A task's module that ansible-core does not bring."""


@dataclass(frozen=True)
class RolesBundle:
    """A file on disk and its checksum."""

    path: Path
    sha256: str


def package() -> RolesBundle:
    """Build the bundle of this checkout. Raises OSError, or ValueError where the runner is not there."""
    data = contents(ROOT, node_ansible.runner(ROOT))
    sha256 = hashlib.sha256(data).hexdigest()
    path = BUILT / f"flightline-roles-{sha256}.tar.gz"
    if not path.is_file():
        write_atomic(path, data)
    return RolesBundle(path, sha256)


def contents(root: Path, runner: Path) -> bytes:
    """The bundle's bytes: no time, no owner, sorted names."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted({**dict(_site(root)), **dict(_runner(runner))}.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def _site(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix(), path.read_bytes()
    for name in FILES:
        if (root / name).is_file():
            yield name, (root / name).read_bytes()
    for path in sorted((root / VARIABLES).glob("*.yml")):
        yield f"{VARIABLES}/{path.name}", path.read_bytes()
    yield "ansible.cfg", _configuration((root / "ansible.cfg").read_text(encoding="utf-8")).encode()
    yield "playbooks/node.yml", play((root / "playbooks" / "site.yml").read_text(encoding="utf-8")).encode()
    yield from _collections(root)


def play(site: str) -> str:
    """The plays that look at a host and apply the roles, without roles that need other hosts. Raises ValueError."""
    plays = [one for one in yaml.safe_load(site) if "hosts" in one]
    if len([one for one in plays if any(map(_name, _applied(one)))]) != 1:
        raise ValueError(f"playbooks/site.yml: saw {[one.get('name') for one in plays]}, wanted one play with roles")
    # A play must not wait for the rest of the fleet, and a failure must be the run's status.
    kept = [{key: value for key, value in one.items() if key not in ("serial", "max_fail_percentage")} for one in plays]
    for one in kept:
        for key in {"roles", "tasks"} & one.keys():
            one[key] = [entry for entry in one[key] if _name(entry) not in NEED_OTHERS]
    return yaml.safe_dump(kept, sort_keys=False)


def _configuration(text: str) -> str:
    """Ansible's settings, less the callback that keeps a control node's results."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("callbacks_enabled"))


def _applied(play: dict[str, Any]) -> list[Any]:
    return [*play.get("roles", []), *play.get("tasks", [])]


def _name(entry: Any) -> str:
    """The role of an entry: of a play's list, or of a block that applies one; empty of any other task."""
    if not isinstance(entry, dict):
        return str(entry)
    return str(entry.get("role") or (entry.get("vars") or {}).get("flightline_role", ""))


def modules(root: Path) -> set[tuple[str, str]]:
    """(collection, module) of the tasks of every role that a node applies itself."""
    tasks = [path for path in (root / "roles").glob("*/*/*.yml") if path.parts[-3] not in NEED_OTHERS]
    return {found for path in tasks for found in _OF_A_COLLECTION.findall(path.read_text(encoding="utf-8"))}


def _collections(root: Path) -> Iterator[tuple[str, bytes]]:
    base = Path(ansible_collections.__path__[0])
    found = modules(root)
    wanted = [base / name.replace(".", "/") / "plugins" / "modules" / f"{module}.py" for name, module in found]
    for name in {name for name, _ in found}:
        folder = base / name.replace(".", "/")
        wanted += [*(folder / "plugins" / "module_utils").rglob("*.py"), folder / "meta" / "runtime.yml"]
    for path in wanted:
        yield f"collections/ansible_collections/{path.relative_to(base).as_posix()}", path.read_bytes()


def _runner(runner: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(runner.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"python/{path.relative_to(runner).as_posix()}", path.read_bytes()
