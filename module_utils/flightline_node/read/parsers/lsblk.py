"""lsblk -J -b: block devices, nested or flat, sizes as numbers, text or with a suffix."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("lsblk.json",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{devices[]{name type size_bytes model serial mountpoint fstype rotational parents[]}}.

    A RAID or LVM device stands under each of its disks in the output and once here, with all
    of them as parents. mountpoint is the first one; a value printed as null is None.
    """
    document = v.json_object(t.only(files))
    if not isinstance(document.get("blockdevices"), list):
        raise ParseError("no blockdevices: not lsblk -J")
    found: Dict[str, Dict[str, Any]] = {}
    pending: List[Tuple[Dict[str, Any], str]] = [(row, "") for row in reversed(v.mappings(document["blockdevices"]))]
    while pending:
        row, parent = pending.pop()
        name = v.word(row.get("name")) or "?"
        entry = found.get(name)
        if entry is None:
            entry = found[name] = _device(row, name)
            pending += [(child, name) for child in reversed(v.mappings(row.get("children")))]
        if parent:
            entry["parents"].append(parent)
    return {"devices": list(found.values())}


def _device(row: Dict[str, Any], name: str) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"name": name, "type": v.word(row.get("type")), "parents": []}
    if "size" in row:
        entry["size_bytes"] = v.size_bytes(row["size"])
    entry.update({key: v.word(row[key]) for key in ("model", "serial", "fstype") if key in row})
    if "mountpoint" in row or "mountpoints" in row:
        entry["mountpoint"] = _mountpoint(row)
    if "rota" in row:
        entry["rotational"] = {"1": True, "0": False, "True": True, "False": False}.get(str(row["rota"]))
    return entry


def _mountpoint(row: Dict[str, Any]) -> Optional[str]:
    several = row.get("mountpoints")
    choices = [row.get("mountpoint"), *(several if isinstance(several, list) else [several])]
    return next((text for text in map(v.word, choices) if text), None)
