"""What the launcher of a training run tells beside its program: nodes, code, checkpoints and cost so far."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Optional

COST = "TrainCost"
"""Metric of a job: US dollars since the run was asked for."""
INTERRUPTIONS = "TrainInterruptions"
"""Metric of a job: 1 at each hang and each end of a start that was not the run's."""
MOST_NAMED = 100
"""Nodes, of which an item of the training table has room for the names."""
MOST_CHECKPOINTS = 20
STEP_MARK = '"event": "step"'


def facts(journal: str) -> Dict[str, Any]:
    """What rank 0's journal says of all starts: the last start's nodes and code, the last step, the newest checkpoints.

    {} where there is none, and what a damaged line would have said is left out: a run's own words decide nothing.
    """
    together: Dict[str, Any] = {}
    saved: List[Dict[str, Any]] = []
    last, refused = "", 0
    try:
        with open(journal, encoding="utf-8", errors="replace") as file:
            for line in file:
                if STEP_MARK in line:
                    # The most of the file by far: only the last is read.
                    last = line
                    continue
                event = event_of(line)
                kind = event.get("event")
                if kind == "together":
                    together = event
                elif kind == "checkpoint":
                    saved.append({"step": _number(event.get("step")), "name": str(event.get("name"))[:100]})
                elif kind in ("checkpoint_refused", "checkpoint_failed"):
                    refused += 1
    except OSError:
        return {}
    nodes = together.get("nodes")
    names = sorted({str(name)[:100] for name in nodes}) if isinstance(nodes, list) else []
    found = {
        "nodes": len(names),
        "node_names": names[:MOST_NAMED],
        "code": str(together.get("code") or "")[:100],
        "step": _number(event_of(last).get("step")),
        "checkpoints": saved[-MOST_CHECKPOINTS:],
        "checkpoints_bad": refused,
    }
    return {key: value for key, value in found.items() if value not in (0, "", None, [])}


def cost_line(namespace: str, job: str, run: str, usd: float) -> str:
    """A log line with the job's cost."""
    return metric_line(namespace, job, run, COST, round(usd, 4))


def metric_line(namespace: str, job: str, run: str, name: str, value: float) -> str:
    """A log line that CloudWatch turns into a metric of the job. Source: CloudWatch user guide, embedded metrics."""
    directive = {"Namespace": namespace, "Dimensions": [["job"]], "Metrics": [{"Name": name, "Unit": "None"}]}
    about = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    return json.dumps({"_aws": about, "job": job, "run": run, name: value}) + "\n"


def event_of(line: str) -> Dict[str, Any]:
    """The object in a line; {} for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
