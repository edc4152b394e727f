"""What the agent says to Prometheus, in its text format 0.0.4, and whether it is alive."""

from __future__ import annotations

import http.server
import threading
import time
from typing import Callable, Dict, List, Mapping, Optional

from ..model import BLOCKING, as_status
from .agent import NodeAgent
from .standing import GO, NO_GO, UNPROVEN

TYPE = "text/plain; version=0.0.4; charset=utf-8"
WHAT: Mapping[str, str] = {
    "flightline_ready": "gauge: 1 when the node's last word is go, else 0",
    "flightline_standing": "gauge: 1 for what stands of the node: go, no-go or unproven",
    "flightline_suspect": "gauge: 1 for a node that stays in service with what many nodes have",
    "flightline_judged_timestamp_seconds": "gauge: when the node was judged last, seconds since the epoch; 0 for never",
    "flightline_judgement_seconds": "gauge: how long that took",
    "flightline_findings": "gauge: findings of that judgement that block, by check",
    "flightline_judgements_total": "counter: judgements with a verdict",
    "flightline_not_judged_total": "counter: judgements that came to none",
    "flightline_api_errors_total": "counter: requests that the API server did not carry out",
}


def text(agent: NodeAgent) -> str:
    """The page."""
    stands, last = agent.stands, agent.last
    record = last.record if last else {}
    blocking: Dict[str, int] = {}
    for one in record.get("findings") or []:
        if as_status(one.get("status")) in BLOCKING:
            blocking[str(one.get("check"))] = blocking.get(str(one.get("check")), 0) + 1
    verdict = stands.verdict if stands else UNPROVEN
    rows: Dict[str, List[str]] = {
        "flightline_ready": [f" {int(verdict == GO)}"],
        "flightline_standing": [f'{{verdict="{one}"}} {int(one == verdict)}' for one in (GO, NO_GO, UNPROVEN)],
        "flightline_suspect": [f" {int(agent.suspect)}"],
        "flightline_judged_timestamp_seconds": [f" {agent.judged_at_s:.3f}"],
        "flightline_judgement_seconds": [f" {float(record.get('seconds') or 0):.3f}"],
        "flightline_findings": [f'{{check="{_word(name)}"}} {n}' for name, n in sorted(blocking.items())],
        "flightline_judgements_total": [f" {agent.counts['judged']}"],
        "flightline_not_judged_total": [f" {agent.counts['not_judged']}"],
        "flightline_api_errors_total": [f" {agent.counts['api_errors']}"],
    }
    lines = []
    for name, what in WHAT.items():
        kind, _, help_text = what.partition(": ")
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", *(f"{name}{row}" for row in rows[name])]
    return "\n".join([*lines, ""])


def _word(name: str) -> str:
    return "".join(ch for ch in name if ch.isalnum() or ch in "_-")


class AgentServer:
    """GET /metrics and /healthz. alive: when the agent's loop began its last step, time.monotonic().

    longest_s: a loop that has not come round for so long is dead, and kubelet may start it again.
    """

    def __init__(self, address: str, port: int, page: Callable[[], str], longest_s: float) -> None:
        self.alive = time.monotonic()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._send(200, page())
                elif self.path == "/healthz":
                    dead = time.monotonic() - outer.alive > longest_s
                    self._send(503 if dead else 200, "the loop hangs\n" if dead else "ok\n")
                else:
                    self._send(404, "saw another path; wanted /metrics or /healthz\n")

            def _send(self, status: int, body: str) -> None:
                data = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", TYPE)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Every probe of kubelet would be a line."""

        self._server = http.server.ThreadingHTTPServer((address, port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread: Optional[threading.Thread] = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
