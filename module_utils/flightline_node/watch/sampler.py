"""Reads small files of /sys, EFA's counters and DCGM's watches, in a process of its own: a read can hang in a driver.

Prints one line a sample: a JSON object of what changed since the line before, by the readers of a preflight. Started
as `python -m flightline_node.watch.sampler SETTINGS`, a JSON object of root, path, every_s, dcgm_every_s, counters.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Dict, List, Mapping

from ..ask.efa import efa_counters
from ..ask.sysfs import moving

DCGM_DEADLINE_S = 8.0


def main(argv: List[str]) -> int:
    """Sample until the reader of the lines is gone."""
    given: Mapping[str, Any] = json.loads(argv[0])
    said: Dict[str, str] = {}
    dcgm_next = 0.0
    while True:
        began = time.monotonic()
        now = {
            "sysfs.json": moving(given["root"]),
            "efa-counters.json": efa_counters(given["root"], given["counters"]),
        }
        if given["dcgm_every_s"] and began >= dcgm_next:
            dcgm_next = began + given["dcgm_every_s"]
            now.update(_dcgm(given["path"]))
        news = {name: text for name, text in now.items() if said.get(name) != text}
        said.update(now)
        try:
            sys.stdout.write(json.dumps(news, separators=(",", ":")) + "\n")
            sys.stdout.flush()
        except OSError:
            return 0
        time.sleep(max(0.05, given["every_s"] - (time.monotonic() - began)))


def _dcgm(path: str) -> Dict[str, str]:
    """What DCGM's watches saw, where dcgmi is; it sets no watch, for that would change the node."""
    import shutil  # a node without DCGM keeps its memory

    if shutil.which("dcgmi", path=path) is None:
        return {}
    from .tool import run

    try:
        said = run(["dcgmi", "health", "-c", "-j"], path, DCGM_DEADLINE_S)
    except OSError:
        return {}
    return {"dcgm-health.json": said.text} if said.status is not None else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
