"""What makes a checkpoint whole: a manifest with the hash of every file, written last. Standard library only.

A checkpoint is a directory `step-00000040-NONCE`. Each rank writes its files and then a part with their hashes; rank 0
writes `manifest.json` when all parts are there. The nonce is of one start of the job, so that nothing of an attempt
that died can complete a later one. A directory without a manifest, or whose files are not what it says, is none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMAT = "flightline-checkpoint/1"
NAME = "manifest.json"
DIRECTORY = re.compile(r"step-(?P<step>\d{8,12})-(?P<nonce>[0-9a-f]{8})")
CHUNK_BYTES = 8 * 1024 * 1024


class DamagedError(ValueError):
    """A checkpoint that must not be resumed from."""


def directory(root: Path, step: int, nonce: str) -> Path:
    """Where a checkpoint of this start of the job goes."""
    return root / f"step-{step:08d}-{nonce}"


def step_of(path: Path) -> int:
    """Steps that were done when it was saved."""
    found = DIRECTORY.fullmatch(path.name)
    if not found:
        raise DamagedError(f"{path.name}: wanted step-NUMBER-NONCE")
    return int(found["step"])


def write_atomic(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON file that is there as a whole or not at all, also after a power cut."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    entry = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


def measured(path: Path) -> dict[str, Any]:
    """Bytes and SHA-256 of one file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def part(where: Path, rank: int) -> Path:
    """Where a rank says what it wrote."""
    return where / f"part-{rank:06d}.json"


def write_part(where: Path, rank: int, files: Iterable[Path]) -> None:
    """Say that this rank's files are complete."""
    write_atomic(part(where, rank), {path.name: measured(path) for path in sorted(files)})


def write(where: Path, world: int, more: Mapping[str, Any]) -> None:
    """The manifest of all parts. Raises OSError when one is missing."""
    files: dict[str, Any] = {}
    for rank in range(world):
        files.update(json.loads(part(where, rank).read_text(encoding="utf-8")))
    write_atomic(where / NAME, {**more, "format": FORMAT, "world": world, "files": files})


def read(where: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose files have the right sizes. Raises DamagedError; hashes are `check`'s."""
    try:
        found = json.loads((where / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DamagedError(f"{where.name}: no {NAME}, so it was never completed") from None
    except (OSError, ValueError) as error:
        raise DamagedError(f"{where.name}: {NAME} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("files"), dict):
        raise DamagedError(f"{where.name}: {NAME} is not {FORMAT}")
    if found.get("step") != step_of(where):
        raise DamagedError(f"{where.name}: {NAME} is of step {found.get('step')}")
    for name, wanted in found["files"].items():
        try:
            size = (where / name).stat().st_size
        except OSError as error:
            raise DamagedError(f"{where.name}/{name}: {error.strerror}") from None
        if size != wanted["bytes"]:
            raise DamagedError(f"{where.name}/{name}: {size} bytes, wanted {wanted['bytes']}")
    return found


def check(where: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare the content of these files. Raises DamagedError naming the first that differs."""
    for name, wanted in files.items():
        try:
            seen = measured(where / name)
        except OSError as error:
            raise DamagedError(f"{where.name}/{name}: {error.strerror}") from None
        if seen != wanted:
            raise DamagedError(f"{where.name}/{name}: the content is not what was saved")


def candidates(root: Path) -> list[Path]:
    """Checkpoint directories, whole or not: the most steps first, of equal steps the newest."""
    found = [path for path in root.iterdir() if DIRECTORY.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: (step_of(path), path.stat().st_mtime_ns), reverse=True)


def surplus(whole: Sequence[tuple[int, str]], incomplete: Sequence[tuple[int, str]], last: int, every: int) -> set[str]:
    """Names to remove, of (step, name). Kept: the last `last` steps, each step that `every` divides (0: none).

    An incomplete one goes when a whole one has as many steps: until then it may be another rank's, being written.
    """
    steps = sorted({step for step, _ in whole}, reverse=True)
    keep = set(steps[:last]) | {step for step in steps if every and step % every == 0}
    newest = steps[0] if steps else -1
    return {name for step, name in whole if step not in keep} | {name for step, name in incomplete if step <= newest}


def tidy(root: Path, last: int, every: int, held: str = "") -> list[str]:
    """Remove what is surplus, but not what somebody reads; returns the names."""
    whole: list[tuple[int, str]] = []
    incomplete: list[tuple[int, str]] = []
    for path in candidates(root):
        (whole if (path / NAME).exists() else incomplete).append((step_of(path), path.name))
    gone = sorted(surplus(whole, incomplete, last, every) - {held})
    for name in gone:
        # Without its manifest first: half of a removed checkpoint is not taken for one.
        (root / name / NAME).unlink(missing_ok=True)
        shutil.rmtree(root / name, ignore_errors=True)
    return gone
