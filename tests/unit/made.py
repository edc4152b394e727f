"""Made-up records, runs and programs: the shape of node records, none of it measured."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from flightline.record.intake import stamped
from flightline.store.sqlite import ExpectedHost, Run
from flightline_node.inputs import INPUTS

STARTED = "2026-11-21T10:00:00+00:00"


def loaded(name: str, path: Path) -> ModuleType:
    """The module of a file that lies in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(path: Path, script: str) -> Path:
    """A shell script that can be run, with the folder that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def flightline(capsys: Any, *words: object) -> tuple[int, str, str]:
    """What the command line ends with and prints; it never prints a traceback."""
    from flightline import cli  # here: programs of tests import this file to be killed soon

    status = cli.run(lambda: cli.cli.main([str(word) for word in words], standalone_mode=False))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    return status, printed.out, printed.err


def node_settings(**given: Any) -> dict[str, Any]:
    """The settings file of a node that judges itself."""
    return {**{one.name: one.default for one in INPUTS if one.stored}, **given}


def finding(check: str = "memory", status: str = "PASS", **rest: Any) -> dict[str, Any]:
    base = {"device": {}, "measured": None, "expected": None, "unit": "", "message": f"{check} said {status}"}
    return {"check": check, "status": status, **base, "remedy": "NONE", "evidence": [], **rest}


def record(host: str, *findings: dict[str, Any], **rest: Any) -> dict[str, Any]:
    found = list(findings) or [finding()]
    bad = any(item["status"] in ("FAIL", "UNKNOWN", "UNREACHABLE") for item in found)
    made = {
        "schema": "flightline-node/1",
        "host": host,
        "instance_id": f"i-{host}",
        "instance_type": "p5.48xlarge",
        "level": "quick",
        "verdict": "no-go" if bad else "go",
        "started_at": STARTED,
        "seconds": 1.5,
        "findings": found,
        "measures": {},
        "versions": {},
        "gpus": [{"index": 0, "uuid": f"GPU-{host}", "serial": f"S-{host}"}],
    }
    return {**stamped(made), **rest}


def a_run(*hosts: str, run_id: str = "r1", started_at: str = STARTED) -> Run:
    return Run(
        run_id, started_at, "quick", "inventory/made", tuple(ExpectedHost(host, "p5.48xlarge") for host in hosts)
    )
