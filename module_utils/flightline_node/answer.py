"""The answer to one call of the Ansible module, whether Ansible's own wrapper or the installed library runs it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import sys
import threading
import zlib
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from .ask.runner import Node
from .bounds import NODE_GRACE_S
from .inputs import PATH_LISTS, PATHS
from .model import LEVELS, SettingsError, Verdict
from .node import Identity, run, scratch_dir
from .settings import resolve_settings

ACTIVE = LEVELS[1:]
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
    if params.get("timeout_s") and params.get("level") in ACTIVE:
        _end_with_who_asked()
    kept = {"evidence_dir": ""} if params.get("check_mode") else {}
    # Waivers are the control side's: it sets aside by its own, whatever comes back.
    expected, settings = resolve_settings({**params, "options": {**params["options"], **kept}, "waivers": []})
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
            from .tell.packing import packed

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


def _end_with_who_asked() -> None:
    """Tests must not go on beside a job when whoever wanted them is gone: what prints to a pipe that nobody reads ends.

    By an exception, so that the tests' own processes are ended with it.
    """

    def watch() -> None:
        # Nothing but an error or a hang-up wakes it. Source: poll(2), POLLERR: "the read end has been closed".
        asked = select.poll()
        asked.register(1, 0)
        asked.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=watch, daemon=True).start()


def call(encoded: str) -> int:
    """Answer a call whose parameters are base64 of JSON, as plugins/action/flightline_node.py sends them."""
    params = _here(json.loads(base64.b64decode(encoded)))
    sys.stdout.write(f"{MARK}{json.dumps(answer(params))}}}\n")
    return 0


def call_of_many(name: str, encoded: bytes) -> int:
    """Answer this node's part of a call that a launcher gives to all nodes alike (flightline/run/launchers).

    encoded: packed JSON, {"calls": [parameters], "nodes": {name of a node: [which of the calls, its own parameters]}};
    the name "*" is every node that is not listed, whose host and instance id are its name; it makes its call id of the
    parameter call_key.
    """
    from .tell.frames import frames

    asked = json.loads(zlib.decompress(base64.b64decode(encoded)))
    which, own = asked["nodes"].get(name) or _of_every(name, *asked["nodes"].get("*", (None, {})))
    if which is None:
        found: Dict[str, Any] = {
            "failed": True,
            "msg": f"the launcher calls this node {name!r}, and was asked for others",
        }
    else:
        found = answer(_here({**asked["calls"][which], **own}))
    sys.stdout.write("".join(f"{line}\n" for line in frames(json.dumps(found))))
    return 0


def _of_every(name: str, which: Optional[int], told: Mapping[str, str]) -> Tuple[Optional[int], Dict[str, str]]:
    from .nonce import call_id

    return which, {"host": name, "instance_id": name, "call_id": call_id(told.get("call_key", ""), name)}


def _here(params: Dict[str, Any]) -> Dict[str, Any]:
    """Parameters with paths as this node has them."""
    for name in PATHS:
        params[name] = _expanded(params[name]) if params[name] else params[name]
    for name in PATH_LISTS:
        params[name] = [_expanded(item) for item in params[name]]
    return params


def _expanded(path: str) -> str:
    return str(Path(os.path.expandvars(path)).expanduser())
