"""A node's Python that answers as it likes: plan.json beside it says how, by host. Run by the action plugin's own command.

Called as the kept library is (`-c START directory parameters`) or, where it says that nothing is kept, as Ansible calls
a module. {CALL} in a text becomes the id of the call, {NOW} the time.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

NOT_KEPT = 97
CHUNK = b"x" * 65536


def main() -> None:
    host, argv = sys.argv[1], sys.argv[2:]
    plan: dict[str, Any] = json.loads((Path(__file__).parent / "plan.json").read_text())[host]
    kept = "-c" in argv
    if plan.get("module"):
        if kept:
            sys.exit(NOT_KEPT)
        say(plan["module"])
        return
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    call = json.loads(base64.b64decode(argv[-1]))["call_id"] if kept else ""
    text = str(plan.get("text", "")).replace("{CALL}", call).replace("{NOW}", now)
    globals()[plan.get("way", "say")](text)


def say(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")
    sys.stdout.flush()


def hang(text: str) -> None:
    """Ignores what ends a program."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(300)


def hold(text: str) -> None:
    """Leaves a child behind that holds standard output, and ends."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(297)", __file__])


def flood(text: str) -> None:
    while True:
        os.write(1, CHUNK)


def complain(text: str) -> None:
    while True:
        os.write(2, CHUNK)


def repeat(text: str) -> None:
    """A hundred megabytes around the answer."""
    head, _, tail = text.partition("{MUCH}")
    os.write(1, head.encode())
    for _ in range(1600):
        os.write(1, CHUNK)
    os.write(1, tail.encode() + b"\n")


def die(text: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def murder(text: str) -> None:
    """Kills the worker that asks: it leads this session on a node that is this machine."""
    os.kill(os.getsid(0), signal.SIGKILL)


def fail(text: str) -> None:
    sys.stderr.write(text)
    sys.exit(3)


if __name__ == "__main__":
    main()
