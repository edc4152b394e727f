"""One call of the Ansible module: the same whether Ansible's own wrapper or the kept library runs it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, Dict, Mapping

from .arguments import PATH_LISTS, PATHS
from .bounds import NODE_GRACE_S
from .expected import resolve
from .model import SettingsError, Verdict
from .node import Identity, run, scratch_dir
from .runner import Node
from .settings import build

MARK = '{"flightline_call": '
"""How the answer's line begins: what a login shell prints before it is not the answer."""


def answer(params: Mapping[str, Any]) -> Dict[str, Any]:
    """Probe and judge this node; returns the module's result, `failed` with a reason when it could not."""
    try:
        return _judged(params)
    except SettingsError as error:
        return {"failed": True, "msg": str(error)}
    except OSError as error:
        where = "free space in /tmp or /dev/shm on the node"
        return {"failed": True, "msg": f"no place for the probes' outputs: {error}; {where}"}


def _judged(params: Mapping[str, Any]) -> Dict[str, Any]:
    _end_by_itself(params.get("timeout_s") or 0)
    expected = resolve(params["instance_type"], params["expected"])
    settings = build(
        level=params["level"],
        select=params["checks"],
        skip=params["skip"],
        thresholds=params["thresholds"],
        waivers=params["waivers"],
        options={**params["options"], **({"evidence_dir": ""} if params.get("check_mode") else {})},
    )
    wanted, given = bool(params.get("return_bundle")), params["bundle_dir"]
    directory = Path(given) if given else scratch_dir() if wanted else None
    node, identity = (
        Node(params["root"], tuple(params["tool_path"])),
        Identity(params["host"], params["instance_id"], params.get("call_id") or ""),
    )
    try:
        record = run(node, expected, settings, identity, directory)
        result = {"changed": False, "verdict": record["verdict"], "record": record}
        if wanted and directory and record["verdict"] != Verdict.GO:
            from .packing import packed

            result["bundle"] = packed(directory)
        return result
    finally:
        if directory and not given:
            shutil.rmtree(directory, ignore_errors=True)


def _end_by_itself(timeout_s: int) -> None:
    """Nobody listens any more after the caller's deadline: the alarm's own action ends this process then."""
    if timeout_s > 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(timeout_s + NODE_GRACE_S)


def main(encoded: str) -> None:
    """Answer a call whose parameters are base64 of JSON, as plugins/action/flightline_node.py sends them."""
    params = json.loads(base64.b64decode(encoded))
    for name in PATHS:
        params[name] = _expanded(params[name]) if params[name] else params[name]
    for name in PATH_LISTS:
        params[name] = [_expanded(item) for item in params[name]]
    sys.stdout.write(f"{MARK}{json.dumps(answer(params))}}}\n")


def _expanded(path: str) -> str:
    return str(Path(os.path.expandvars(path)).expanduser())
