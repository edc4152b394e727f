"""The watcher's word in the existing log: a node's record with its findings, and its heartbeat for CloudWatch."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping

from .. import __version__
from ..model import RECORD_SCHEMA, Facts, Finding
from ..tell.logline import lines

LEVEL = "quick"
"""Of what the watcher finds: every check that it asks is of this level, and a go of this level proves the remedy."""
METRIC = "WatchBeat"


def record(who: Mapping[str, str], findings: Iterable[Finding], gpus: List[Facts], since: str) -> Dict[str, Any]:
    """A node's record, as a preflight makes it."""
    keys = ("index", "uuid", "serial", "pci_bus_id", "name")
    return {
        "schema": RECORD_SCHEMA,
        "flightline": __version__,
        "host": who["host"],
        "instance_id": who["instance_id"],
        "instance_type": who["instance_type"],
        "level": LEVEL,
        "verdict": "no-go",
        "started_at": since,
        "seconds": 0.0,
        "findings": [finding.to_record() for finding in findings],
        "measures": {},
        "versions": {},
        "gpus": [{key: gpu.get(key) for key in keys} for gpu in gpus],
        "probes": [{"id": "watch", "rc": 0, "seconds": 0.0, "timed_out": False, "note": "followed, not probed"}],
    }


def append(path: Path, text: str) -> None:
    """Add whole lines in one write: other programs append to the same file. Raises OSError."""
    handle = os.open(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        os.write(handle, text.encode("ascii", "backslashreplace"))
    finally:
        os.close(handle)


def say(path: Path, run: str, found: Dict[str, Any]) -> None:
    """Append a record to the log that the CloudWatch agent ships. Raises OSError, LineError."""
    append(path, "".join(line + "\n" for line in lines("node", run, found)))


def beat(who: Mapping[str, str], namespace: str, states: Mapping[str, bool], counts: Mapping[str, int]) -> str:
    """A line in CloudWatch's embedded metric format (AWS, Specification: Embedded metric format).

    An alarm on missing data of this metric is the dead man's switch: a watcher that is gone says nothing.
    """
    metrics = [{"Name": name, "Unit": "Count"} for name in (METRIC, *states)]
    directive = {"Namespace": namespace, "Dimensions": [["InstanceId"]], "Metrics": metrics}
    said = {
        "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
        "InstanceId": who["instance_id"] or who["host"],
        METRIC: 1,
        **{name: int(state) for name, state in states.items()},
        **counts,
    }
    return json.dumps(said, separators=(",", ":")) + "\n"
