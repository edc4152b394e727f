"""Run the real playbook against hostile nodes: this machine under many names, each with a Python of its own."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.common import TreeMemory
from flightline.fleet.judgement import judge_run
from flightline.fleet.result import Report
from flightline.store.sqlite import SqliteStore
from tests.beds import ROOT, answered, place_env, processes, program, until
from tests.unit.made import loaded

from . import node
from .generator import ESCAPE, START, TYPE, good

MARK = '{"flightline_call": '
CHECKS = ("memory", "load", "swap")
RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]")
PLAYBOOK = ("ansible-playbook", "playbooks/preflight.yml")
COMMAND = ("flightline", "preflight")


def key() -> str:
    """The kept library's version, as the action plugin names it."""
    return str(loaded("flightline_action", ROOT / "plugins/action/flightline_node.py").KEY)


@dataclass
class Result:
    """What a run came to. rows: host -> report row; peak_mb: the control side's processes, shared memory once."""

    status: int
    out: str
    seconds: float
    peak_mb: float
    report: Report | None
    rows: dict[str, Any] = field(default_factory=dict)
    place: "HostileBed | None" = None
    left_over: list[str] = field(default_factory=list)


class HostileBed:
    """A place with an inventory, nodes and a store."""

    def __init__(self, path: Path) -> None:
        self.path, self.store = path, path / "store" / "runs.sqlite"
        self.plan: dict[str, Any] = {}
        self.variables: dict[str, dict[str, Any]] = {}
        home = path / "home"
        (home / ".ansible" / "flightline" / key()).mkdir(parents=True)
        shutil.copy(node.__file__, path / "node.py")
        self.env = place_env(self.store, path, HOME=str(home))

    def add(self, host: str, plan: Mapping[str, Any], **variables: Any) -> None:
        """A node that answers by a plan."""
        python = self.path / "bin" / host / "python3"
        python.parent.mkdir(parents=True)
        program(python, f'#!/bin/sh\nexec {sys.executable} {self.path}/node.py {host} "$@"\n')
        self.plan[host] = dict(plan)
        self.variables[host] = {"ansible_python_interpreter": str(python), **variables}

    def write(self, **variables: Any) -> None:
        """Put the inventory and the plan down."""
        every = {
            "ansible_connection": "local", "instance_type": TYPE, "flightline_checks": list(CHECKS),
            "flightline_timeout_s": 60, **variables,
        }  # fmt: skip
        (self.path / "plan.json").write_text(json.dumps(self.plan))
        self.inventory = self.path / "hosts.json"
        self.inventory.write_text(json.dumps({"all": {"hosts": self.variables, "vars": every}}))

    def run(self, command: tuple[str, ...] = PLAYBOOK, *arguments: str, timeout_s: float = 600, **env: str) -> Result:
        """Run to the end, watching the memory."""
        began, out = time.monotonic(), self.path / "out.txt"
        with out.open("wb") as stream:
            process = subprocess.Popen(
                [*command, "-i", str(self.inventory), *arguments],
                cwd=ROOT, env={**self.env, **env}, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            )  # fmt: skip
            memory = TreeMemory(process.pid, every_s=0.3)
            try:
                status = process.wait(timeout_s)
            finally:
                memory.stop()
                process.kill()
        report = self._report()
        said = out.read_text(encoding="utf-8", errors="surrogateescape")
        rows = {row.host: row for row in report.rows} if report else {}
        return Result(status, said, time.monotonic() - began, memory.peak_mb, report, rows)

    def _report(self) -> Report | None:
        if not self.store.exists():
            return None
        with SqliteStore(self.store) as store:
            return judge_run(store, "latest") if store.runs(1) else None

    def wait_for_rows(self, wanted: int, seconds: float = 180) -> None:
        """Until so many hosts have answered."""
        until(lambda: answered(self.store) >= wanted, seconds, f"{wanted} rows")

    def left_over(self) -> list[str]:
        """Processes of this place that still run."""
        return processes(str(self.path))


def answer(record: Any, host: str) -> str:
    """The line of the kept library with a record, as it would come from this host. A text is taken as it is."""
    text = record if isinstance(record, str) else json.dumps(record)
    named = text.replace('"host": "n"', f'"host": {json.dumps(host)}').replace('"call-1"', '"{CALL}"')
    named = named.replace(f'"{START}"', '"{NOW}"')
    return f'{MARK}{{"changed": false, "verdict": "go", "record": {named}}}}}'


def real(status: str = "PASS") -> dict[str, Any]:
    """A good record of just the checks that these runs ask for."""
    made = good(status)
    made["instance_id"] = ""
    for finding, check in zip(made["findings"], CHECKS, strict=True):
        finding["check"] = check
    # Every host its own GPU, or the fleet's judgement blames both for it.
    return {**made, "gpus": []}


WARNING = {
    "changed": False, "failed": True, "msg": f"m {ESCAPE}", "warnings": [f"w {ESCAPE}"], "exception": f"e {ESCAPE}",
    "deprecations": [{"msg": f"d {ESCAPE}", "version": "9"}], "module_stderr": f"s {ESCAPE}",
}  # fmt: skip

MUCH = answer(real(), "{HOST}").replace("memory seen", "{MUCH}")


def rogues() -> dict[str, dict[str, Any]]:
    """Nodes that are broken beyond any record: name -> plan. Each stands for something that was seen."""
    bare, evil = {"verdict": "go", "findings": real()["findings"][:1]}, {"ansible_python_interpreter": "/bin/evil"}
    five_mb = put_message(real(), "y" * 5_000_000)
    fail, ok = ('"status": "FAIL"', '"status": "PASS"')
    doubled = json.dumps(real()).replace(ok, f"{fail}, {ok}", 1)
    return {
        "hangs": {"way": "hang"},
        "holds": {"way": "hold"},
        "floods": {"way": "flood"},
        "complains": {"way": "complain"},
        "much": {"way": "repeat", "text": MUCH.replace("{HOST}", "much")},
        "junk": {"way": "repeat", "text": "{MUCH}"},
        "dies": {"way": "die"},
        "fails": {"way": "fail", "text": f"{ESCAPE} my last words"},
        "silent": {"text": ""},
        "five-mb": {"text": answer(five_mb, "five-mb")},
        "bundle": {"text": answer(real("FAIL"), "bundle")[:-2] + ', "bundle": "' + "QUJD" * 400_000 + '"}}'},
        "twice": {"text": answer(real(), "twice") + "\n" + answer(real(), "twice")},
        "doubled": {"text": answer(doubled, "doubled")},
        "escapes": {"text": f"{MARK}{json.dumps({**WARNING, 'record': 5})}}}"},
        "sings": {"module": json.dumps(WARNING)},
        "sings-well": {"module": json.dumps({**WARNING, "failed": False, "record": real()})},
        "bare": {"module": json.dumps({"verdict": "go", "record": bare})},
        "facts": {"module": json.dumps({"ansible_facts": evil, "verdict": "go"})},
    }


def put_message(record: dict[str, Any], text: str) -> dict[str, Any]:
    """The record with a long message."""
    record["findings"][0]["message"] = text
    return record
