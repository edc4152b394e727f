"""A preflight of idle nodes as a process: it ends with whoever began it, and nothing that it started goes on.

One line of JSON on standard input says what to judge; the end of that input is the end of the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from ...run import launchers
from ...run.live import RunObserver
from ...run.preflight import CannotRunError, Request, run

STORE = "runs.sqlite"
"""In the place that the caller names."""


def main() -> int:
    """Judge; 0 when it came to its end, 2 with the reason on standard error when it could not run."""
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    place = Path(asked["place"])
    try:
        launcher = launchers.make(asked["via"] or launchers.DEFAULT)
        request = Request(
            tuple(asked["inventory"]),
            asked["limit"],
            {"flightline_level": asked["level"]},
            place / STORE,
            place / "report",
            publishes=False,
        )
        run(request, RunObserver(), launcher)
    except CannotRunError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _end_with_the_caller() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
