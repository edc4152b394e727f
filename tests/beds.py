"""What the beds share: commands to their ends, programs that a test writes, waits with a deadline, simulated nodes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from flightline.demo import prepare
from flightline.store.sqlite import SqliteStore
from flightline_node import node, settings
from flightline_node.ask.runner import Node
from flightline_node.know.expected import resolve

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def ran(*argv: object, **given: Any) -> subprocess.CompletedProcess[str]:
    """A command to its end, whatever its status; what it printed is text. given: as subprocess.run takes it."""
    return subprocess.run(list(map(str, argv)), **{"capture_output": True, "text": True, "check": False, **given})


def flightline(*words: object, **given: Any) -> subprocess.CompletedProcess[str]:
    """`flightline` of this checkout, to its end."""
    return ran(sys.executable, "-m", "flightline", *words, **{"cwd": ROOT, **given})


def own_env(*others: str, **more: str) -> dict[str, str]:
    """This process's environment without what begins like one of the others, and more."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(others)}, **more}


def place_env(store: Path, place: Path, **more: str) -> dict[str, str]:
    """The environment of a run with a store and temporary files of its own."""
    own = {"FLIGHTLINE_STORE": str(store), "ANSIBLE_LOCAL_TEMP": str(place / "local")}
    return own_env("ANSIBLE", "FLIGHTLINE", **own, PATH=f"{BIN}:{os.environ['PATH']}", **more)


def begun(*argv: object, **given: Any) -> subprocess.Popen[str]:
    """A command that runs on, at the checkout's root, both outputs in one pipe; it hears signals as at a terminal."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(list(map(str, argv)), **{"cwd": ROOT, **both, "preexec_fn": hears_signals, **given})


def hears_signals() -> None:
    """In a started child: what the tests' own shell or nohup ignores would stay ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def answered(path: Path) -> int:
    """How many hosts of a store's latest run have answered."""
    if not path.is_file():
        return 0
    with SqliteStore(path) as store:
        return sum(len(store.answered(run.run_id)) for run in store.runs(1))


def program(path: Path, text: str) -> Path:
    """A file that can be run."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def until(seen: Callable[[], Any], most_s: float = 60.0, why: str = "", every_s: float = 0.1) -> Any:
    """The first answer that is true, else the last one; with a `why` the test fails instead, and says it."""
    end = time.monotonic() + most_s
    while not (found := seen()) and time.monotonic() < end:
        time.sleep(every_s)
    assert found or not why, f"not within {most_s:g} s: {why}"
    return found


def free_port() -> int:
    """A port of loopback that nobody listened at a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def processes(text: str) -> list[str]:
    """Command lines of other live processes that name the text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [line] if text in line and int(entry.name) != os.getpid() else []
    return found


def simulated(
    place: Path,
    kind: str,
    faults: Iterable[str] = (),
    level: str = "quick",
    *,
    judged_as: str = "",
    bundle: Path | None = None,
    options: Mapping[str, Any] | None = None,
    folders: Iterable[str] = (),
) -> dict[str, Any]:
    """The record of a node of the demo, asked as the Ansible module asks: real probes and processes, simulated tools.

    judged_as: the type that the inventory names. folders: what stands below its root beside. It is called as its place.
    """
    prepare({place.name: {"demo_dir": place, "instance_type": kind, "demo_faults": list(faults)}})
    for name in folders:
        (place / "root" / name).mkdir(parents=True)
    there, site = Node(f"{place}/root", (f"{place}/tools",)), settings.build(level=level, options=options)
    return node.run(there, resolve(judged_as or kind), site, node.Identity(place.name), bundle)


def statuses(record: Mapping[str, Any]) -> dict[str, set[str]]:
    """Check -> what its findings say."""
    found: dict[str, set[str]] = {}
    for finding in record["findings"]:
        found.setdefault(finding["check"], set()).add(finding["status"])
    return found
