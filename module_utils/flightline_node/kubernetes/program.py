"""The command line of the agent: it runs until it is ended. Exit status: 0 ended, 2 could not run."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import List, Optional

from ..bounds import DEADLINE_S
from ..model import SettingsError
from ..watch import marker as marking
from ..watch.kmsg import boot_id
from ..watch.options import options as watch_options
from ..watch.slurm import DrainResult
from . import api
from .agent import AgentOptions, NodeAgent, complain
from .allocation import why_not_idle
from .drain import leave
from .judging import judge
from .metrics import AgentServer, text
from .own_node import OwnNode
from .standing import Standing

ENDED, NOT_RUN = 0, 2
HANGS_S = float(DEADLINE_S["standard"]) + 600.0


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-node.pyz kubernetes",
        description="Judge this node of a Kubernetes cluster and tell its Node. Exit status: 0 ended, 2 could not run.",
        epilog="example: FLIGHTLINE_NODE=gpu-07 flightline-node.pyz kubernetes --every 300",
    )
    one = AgentOptions()
    parser.add_argument("--settings", type=Path, default=Path("/etc/flightline/node.json"), help="the node's settings")
    parser.add_argument("--log", type=Path, default=Path("/var/log/flightline/records.jsonl"), help="records go here")
    parser.add_argument("--directory", type=Path, default=one.directory, help="where the quarantine marker is")
    parser.add_argument("--every", type=float, default=one.every_s, metavar="S", help="seconds between quick ones")
    parser.add_argument(
        "--standard-every", type=float, default=one.standard_every_s, metavar="S",
        help="seconds between standard judgements, while no pod has GPUs; 0: never",
    )  # fmt: skip
    parser.add_argument("--look-every", type=float, default=one.look_every_s, metavar="S", help="and looks at its Node")
    parser.add_argument("--metrics-port", type=int, default=9817, metavar="N", help="for Prometheus and kubelet")
    parser.add_argument("--metrics-address", default="", metavar="IP", help="all addresses unless one is given")
    parser.add_argument("--watch-settings", type=Path, default=Path("/etc/flightline/watch.json"), help="the rule's")
    parser.add_argument(
        "--returns", choices=("yes", "no"), default="yes", help="no: a controller's proof lifts a no-go"
    )
    parser.add_argument("--root", default="/", help="file-system root that probes read from")
    parser.add_argument("--kmsg", default=one.kmsg, help="the kernel's buffer")
    return parser.parse_args(argv)


def main(argv: Optional[List[str]] = None) -> int:
    """Judge and tell until asked to end; returns the exit status."""
    given = arguments(argv)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        env = api.environment()
        own = OwnNode(api.access(env), api.own_name(env), lambda: marking.stamp()[:19] + "Z")
        given.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        given.log.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="flightline-kubernetes-") as scratch:
            _serve(given, own, Path(scratch), ended)
    except (api.ApiError, SettingsError) as error:
        complain(str(error))
        return NOT_RUN
    except OSError as error:
        complain(f"saw: {error}; wanted: places to write and a free port; do: check free space and permissions")
        return NOT_RUN
    return ENDED


def _serve(given: argparse.Namespace, own: OwnNode, scratch: Path, ended: threading.Event) -> None:
    options = AgentOptions(
        given.every, given.standard_every, given.directory, given.kmsg, given.look_every, returns=given.returns == "yes"
    )
    wanted = watch_options(given.watch_settings)

    def out(word: Standing, again: bool) -> DrainResult:
        with marking.locked(given.directory, marking.CLAIM_LOCK):
            return leave(own, word, wanted, again)

    root = ("--root", given.root)
    agent = NodeAgent(
        options,
        own,
        boot_id(given.root),
        lambda level, run: judge(
            given.settings, level, run, given.log, scratch, (*root, "--instance-id", agent.instance)
        ),
        lambda: why_not_idle(given.root),
        ended.wait,
        out,
    )
    server = AgentServer(given.metrics_address, given.metrics_port, lambda: text(agent), HANGS_S)
    complain(f"{own.name}: judged every {given.every:g} s, metrics on port {server.port}")
    try:
        while not ended.is_set():
            server.alive = time.monotonic()
            ended.wait(agent.step())
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
