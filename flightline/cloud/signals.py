"""Names that the alert router and the stack share: events, metrics, alarms. Standard library only: it ships."""

from __future__ import annotations

LAUNCH_FAILED, LAUNCHED = "EC2 Instance Launch Unsuccessful", "EC2 Instance Launch Successful"
BLOCK_ENDS = "Capacity Block Reservation Expiration Warning"
TEST_SOURCE, TEST_TYPE = "flightline.monitor", "Flightline Test Alert"
"""Detail types of EventBridge events; the last is what playbooks/monitor.yml sends."""

SILENT_NODES, REPORTING_NODES, WATCH_RUNS = "SilentNodes", "ReportingNodes", "WatchRuns"
UNWATCHED_NODES = "UnwatchedNodes"
BUSIEST_GPU = "BusiestGpuPercent"
"""Metrics of the cluster by each look at its nodes; the last: the most that any GPU was used since, in percent."""

OPEN_INCIDENTS, HELD_NODES, DRAIN_PRECISION = "OpenIncidents", "HeldNodes", "DrainPrecision"
TIME_TO_DETECT, TIME_TO_QUARANTINE, TIME_TO_RETURN = "TimeToDetect", "TimeToQuarantine", "TimeToReturn"
PERCENTILE = "Percentile"
"""Metrics of the cluster by each round of healing, over its window: counts, percent; seconds with that dimension."""

INVALID_EVENTS, ALERTS_LOST = "BadEvents", "AlertsLost"
"""Metrics of one function: events kept because they cannot be used, messages that nobody will get."""

INVALID_EVENTS_PREFIX = "bad-events/"
"""Where in the results bucket a function keeps what it cannot use."""


def alarm_prefix(cluster: str) -> str:
    """How the names of the alarms begin that the router tells people about."""
    return f"{cluster}-node-"
