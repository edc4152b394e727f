"""What a host has by decision: read after the roles, compared with what was kept of it, and what of it is to be held.

What a role installed follows the inventory. What an image brought was adopted once: no later run takes another content,
version or name for it, unless a person accepts that.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..host import Host, Problem, Problems
from ..outcome import Outcome
from . import driver_facts, efa, nccl, packages, verified

NAME = "name"
_VOLATILE = ("adopted",)
_SLURM = "/etc/slurm/*.conf"
_PACKAGES = {
    "nccl": ("libnccl*",),
    "efa": ("efa", "efa-*", "libfabric*aws*", "libnccl-ofi*", "rdma-core", "libibverbs*"),
}
_FILES = {
    "efa": (
        "/opt/amazon/efa/bin/fi_info",
        "/opt/amazon/efa/lib*/libfabric.so*",
        "/opt/amazon/ofi-nccl/lib*/libnccl-net*.so*",
        "/opt/amazon/ofi-nccl/lib*/*/libnccl-net*.so*",
    )
}
_OTHERS = "nvidia-container"
"""The container toolkit's packages have the driver's prefix and a role of their own."""
_ACCEPT = "look who changed it and put it back; or take it as it is: host_state_accept"


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """The state, after altered packages were put back. Raises Problems: what stays altered, and what nobody decided."""
    found = verified.altered(host, wanted["verify"])
    problems = [] if check else verified.put_back(host, found)
    named = {path for one in found for path in one.files}
    machine = (host.read("/etc/machine-id") or "").strip()
    kept = wanted["kept"] if wanted["kept"].get("machine") == machine else {}
    state = look(host, wanted["parts"], kept, machine, wanted["store"])
    for part in state["parts"].values():
        files = {path: digest for path, digest in part.get("files", {}).items() if path not in named}
        problems += verified.empty(files)
    problems += differences(kept, state, wanted["accept"])
    if problems:
        raise Problems(problems)
    facts = {"state": state, "held": held(state), "put_back": [one.package for one in found]}
    return Outcome(bool(found), {"altered": [str(one) for one in found]}, {"altered": []}, facts)


def look(
    host: Host, parts: Mapping[str, Any], kept: Mapping[str, Any], machine: str, store: str = ""
) -> Dict[str, Any]:
    """parts: of the roles that ran -> was it adopted? What no role decided now stays as it was kept."""
    now: Dict[str, Any] = dict(kept.get("parts") or {})
    for name, adopted in parts.items():
        now[name] = {"adopted": bool(adopted), **_part(host, name, store)}
    return {NAME: _name(host), "machine": machine, "parts": now}


def _name(host: Host) -> str:
    return host.ask(["uname", "-n"]).out.strip().partition(".")[0]


def _part(host: Host, name: str, store: str) -> Dict[str, Any]:
    if name == "driver":
        driver = driver_facts.look(host)
        brought = {one.name: one.version for one in driver.packages if one.installed and _OTHERS not in one.name}
        return {"version": driver.on_disk or driver.version, "packages": brought}
    if name == "nccl":
        there = nccl.libraries(host)
        files = {path: _sha256(host, path) for path in there.values()}
        return {"versions": sorted(there), "files": files, "packages": _installed(host, name)}
    if name == "efa":
        installer, text = efa.installed(host)
        stack = {key: value for key, value in efa.recorded(text).items() if value}
        paths = sorted({path for pattern in _FILES[name] for path in host.glob(pattern)})
        files = {path: _sha256(host, path) for path in paths}
        return {"installer": installer, **stack, "files": files, "packages": _installed(host, name)}
    if name == "store":
        return _mount(host, store)
    return {"files": {path: _sha256(host, path) for path in host.glob(_SLURM)}}


def _installed(host: Host, part: str) -> Dict[str, str]:
    return {one.name: one.version for one in packages.installed(host, _PACKAGES[part]) if one.installed}


def _mount(host: Host, path: str) -> Dict[str, Any]:
    rows = [row.split() for row in (host.read("/proc/self/mounts") or "").splitlines()]
    mine = [row for row in rows if len(row) > 3 and row[1] == path]
    return {"path": path, "type": mine[-1][2]} if mine else {"path": path, "type": ""}


def _sha256(host: Host, path: str) -> Optional[str]:
    try:
        return hashlib.sha256(Path(host.path(path)).read_bytes()).hexdigest()
    except OSError:
        return None


def differences(kept: Mapping[str, Any], state: Mapping[str, Any], accept: List[str]) -> Iterator[Problem]:
    """What differs from the last record although no role decided it."""
    if kept.get(NAME, state[NAME]) != state[NAME] and NAME not in accept:
        yield Problem(
            f"the host is called {state[NAME]}",
            f"{kept[NAME]}, as when it was last configured",
            f"hostnamectl set-hostname {kept[NAME]}; or take the new name: host_state_accept [{NAME}]",
        )
    for part, now in state["parts"].items():
        before = (kept.get("parts") or {}).get(part, {})
        if not before or part in accept or not now["adopted"]:
            continue
        if not before["adopted"]:
            yield Problem(
                f"{part}: the mark by which its role knows that it installed it is gone",
                "what a role installed stays the role's",
                f"name its source once (-e {_SOURCE.get(part, part)}=vendor); or host_state_accept [{part}]",
            )
            continue
        changed = [row for key in sorted({*before, *now} - set(_VOLATILE)) for row in _rows(key, before, now)]
        if changed:
            yield Problem(
                f"{part}, adopted from the image: {'; '.join(changed)}", "as it was adopted", f"{_ACCEPT} [{part}]"
            )


_SOURCE = {"driver": "nvidia_driver_source", "nccl": "cuda_nccl_source"}


def _rows(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> List[str]:
    was, is_ = before.get(key), now.get(key)
    if isinstance(was, dict) and isinstance(is_, dict):
        return [
            f"{name} {_short(is_.get(name))}, was {_short(was.get(name))}"
            for name in sorted({*was, *is_})
            if was.get(name) != is_.get(name)
        ]
    return [] if was == is_ else [f"{key} {_short(is_)}, was {_short(was)}"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else "gone" if value is None else json.dumps(value)
    return text[:12] if len(text) == 64 else text


def held(state: Mapping[str, Any]) -> Dict[str, str]:
    """Packages that an image brought, with their versions: no upgrade may move them."""
    parts = [part for part in state["parts"].values() if part["adopted"]]
    return {name: version for part in parts for name, version in sorted((part.get("packages") or {}).items())}
