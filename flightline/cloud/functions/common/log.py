"""Log lines and metrics of a function: JSON on standard output, which Lambda sends to CloudWatch Logs.

Metrics go out in the embedded metric format, so counting needs no API call and cannot be throttled.
Source: CloudWatch user guide, "Specification: Embedded metric format".
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TextIO


def say(message: str, **fields: object) -> None:
    """One structured line. Fields must not hold secrets: this is the place where they would become readable."""
    _write({"message": message, **fields})


def count(
    namespace: str,
    dimensions: Mapping[str, str],
    values: Mapping[str, float],
    *,
    now_s: float | None = None,
    out: TextIO | None = None,
) -> None:
    """Publish metrics (unit: Count), all with the same dimensions."""
    if not values:
        return
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    document = {
        "_aws": {
            "Timestamp": int((time.time() if now_s is None else now_s) * 1000),
            "CloudWatchMetrics": [{"Namespace": namespace, "Dimensions": [list(dimensions)], "Metrics": metrics}],
        },
        **dimensions,
        **values,
    }
    _write(document, out)


def _write(document: Mapping[str, object], out: TextIO | None = None) -> None:
    stream = out or sys.stdout
    stream.write(json.dumps(document, separators=(",", ":"), default=str) + "\n")
    stream.flush()
