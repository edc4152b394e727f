"""What a rank says while it runs: one JSON line per event, and metrics in CloudWatch's embedded format."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNITS = {
    "TrainStep": "Count",
    "TrainLoss": "None",
    "TrainTokensPerSecond": "Count/Second",
    "TrainMfu": "Percent",
    "TrainEffectiveTime": "Percent",
    "TrainCheckpointStall": "Milliseconds",
    "TrainDataWait": "Percent",
    "TrainOthersWait": "Percent",
}


def rank_file(logs: Path, rank: int) -> Path:
    """The journal of one rank; starts of the same job append to it."""
    return logs / f"rank-{rank:06d}.jsonl"


def next_attempt(logs: Path) -> int:
    """Which start of the job this is: one more than the last line of rank 0's journal says, 0 for the first."""
    path = rank_file(logs, 0)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    for line in reversed(lines):
        try:
            return int(json.loads(line)["attempt"]) + 1
        except (ValueError, KeyError, TypeError):
            continue  # half a line of a rank that was killed
    return 0


class Journal:
    """Appends whole lines. attempt: which start of the job this is."""

    def __init__(self, logs: Path, rank: int, attempt: int) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._file = rank_file(logs, rank).open("a", encoding="utf-8", buffering=1)
        if self._file.tell():
            self._file.write("\n")  # an earlier start may have been killed within a line
        self._base = {"rank": rank, "attempt": attempt}

    def say(self, event: str, **values: Any) -> None:
        """One line; `time` is seconds since 1970."""
        self._file.write(json.dumps({"event": event, "time": time.time(), **self._base, **values}) + "\n")


def who() -> dict[str, Any]:
    """Which process this is: host, process id, and the device of its local rank."""
    return {"host": os.environ.get("FLIGHTLINE_NODE") or socket.gethostname(), "pid": os.getpid(),
            "device": int(os.environ.get("LOCAL_RANK", "0"))}  # fmt: skip


def embedded(namespace: str, job: str, values: Mapping[str, float]) -> str:
    """A log line that CloudWatch turns into metrics of the job. Source: CloudWatch user guide, EMF."""
    metrics = [{"Name": name, "Unit": UNITS[name]} for name in values]
    about = {
        "Timestamp": int(time.time() * 1000),
        "CloudWatchMetrics": [{"Namespace": namespace, "Dimensions": [["job"]], "Metrics": metrics}],
    }
    return json.dumps({"_aws": about, "job": job, **values}) + "\n"
