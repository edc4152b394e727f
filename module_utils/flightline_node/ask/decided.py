"""What configure decided about this host and left with it (role host_state): its name and the versions it had."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator

from .files import contents

RECORD = "etc/flightline/host_state.json"


def record(root: str = "/") -> Dict[str, Any]:
    """The record; nothing where there is none, it cannot be read, or another machine brought it in its image."""
    try:
        found = json.loads(contents(os.path.join(root, RECORD)) or "{}").get("state")
    except (ValueError, AttributeError):
        return {}
    machine = contents(os.path.join(root, "etc/machine-id"))
    return found if isinstance(found, dict) and machine and found.get("machine") == machine.strip() else {}


def expected(root: str = "/") -> Dict[str, Any]:
    """The record in the words of the reader `versions`; adopted: the parts that the image brought."""
    found = record(root)
    parts = found.get("parts")
    known = {name: part for name, part in (parts if isinstance(parts, dict) else {}).items() if isinstance(part, dict)}
    values = {
        "name": found.get("name"),
        "nvidia_module": known.get("driver", {}).get("version"),
        "nccl": known.get("nccl", {}).get("versions"),
        "efa_installer": known.get("efa", {}).get("installer"),
        "adopted": sorted(name for name, part in known.items() if part.get("adopted")),
    }
    return {name: value for name, value in values.items() if value}


def own_names(root: str = "/") -> Iterator[str]:
    """As a scheduler may call this host: by the recorded name alone where there is one, never by a changed one."""
    recorded, full = str(record(root).get("name") or ""), os.uname().nodename
    yield from dict.fromkeys([recorded] if recorded else [full.split(".")[0], full])
