"""A bundle: the directory of raw probe outputs of one node, with a manifest.

Read back, it can be judged anywhere. A bare directory without a manifest will do.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Union

from ..ask.runner import ProbeResult
from ..model import SettingsError

MANIFEST = "manifest.json"
SCHEMA = "flightline-bundle/1"
MMAP_FROM_BYTES = 32 << 20

Data = Union[bytes, mmap.mmap]


class Bundle:
    """Files of one node by name. `manifest` is empty for a bare directory."""

    def __init__(
        self, directory: Path, manifest: Mapping[str, Any], places: Optional[Mapping[str, Path]] = None
    ) -> None:
        """places: where each known file is, when not all of them stand in the directory under their names."""
        self.directory = directory
        self.manifest = manifest
        self.taken: Set[str] = set()
        """Files of which somebody has asked for the content."""
        self._places = places
        probes = manifest.get("probes")
        self.entries: Dict[str, Dict[str, Any]] = {
            str(entry.get("file")): entry
            for entry in (probes if isinstance(probes, list) else [])
            if isinstance(entry, dict)
        }

    def entry(self, file: str) -> Optional[Dict[str, Any]]:
        """The manifest's entry of a file, if the probe was run."""
        return self.entries.get(file)

    def has(self, file: str) -> bool:
        """Is the file in the bundle?"""
        return (self.directory / file).is_file() if self._places is None else file in self._places

    def files(self) -> List[str]:
        """Names of the regular files in the bundle, the manifest excluded."""
        return sorted(p.name for p in self.directory.iterdir() if p.is_file() and p.name != MANIFEST)

    def read(self, file: str) -> Data:
        """The raw bytes of a file; a large one is mapped, not read.

        Raises OSError when it cannot be read.
        """
        self.taken.add(file)
        path = self.directory / file if self._places is None else self._places[file]
        with open(path, "rb") as handle:
            if os.fstat(handle.fileno()).st_size < MMAP_FROM_BYTES:
                return handle.read()
            return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def load(directory: Path, places: Optional[Mapping[str, Path]] = None) -> Bundle:
    """Open a bundle. Raises SettingsError when it is not a directory of outputs."""
    if not directory.is_dir():
        raise SettingsError(f"{directory}: saw what is not a bundle, wanted a directory of tool outputs")
    manifest: Dict[str, Any] = {}
    path = directory / MANIFEST if places is None else places.get(MANIFEST)
    if path is not None and path.is_file():
        try:
            loaded = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        except ValueError as error:
            raise SettingsError(
                f"{path}: saw what is not JSON ({error}), wanted an object; "
                f"do: remove it to judge the directory without a manifest"
            ) from error
        if not isinstance(loaded, dict):
            raise SettingsError(f"{path}: saw {type(loaded).__name__}, wanted an object")
        manifest = loaded
    return Bundle(directory, manifest, places)


def write_manifest(
    directory: Path,
    *,
    host: str,
    instance_id: str,
    instance_type: str,
    collected_at: str,
    probes: Iterable[ProbeResult],
) -> Dict[str, Any]:
    """Write manifest.json beside the outputs, whole or not at all; returns it."""
    manifest = {
        "schema": SCHEMA,
        "host": host,
        "instance_id": instance_id,
        "instance_type": instance_type,
        "collected_at": collected_at,
        "probes": [probe.to_dict() for probe in probes],
    }
    part = directory / (MANIFEST + ".part")
    part.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    os.replace(part, directory / MANIFEST)
    return manifest
