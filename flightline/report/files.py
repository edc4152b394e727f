"""Write the report's files: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from flightline.result import Report

from . import html, jsonfile, junit
from .copies import copies

Records = Callable[[], Iterable[dict[str, Any]]]
"""Gives the run's node records afresh at each call, one at a time, each as flightline_node.node.record() makes it."""

NAMES: Mapping[str, str] = {"json": "report.json", "junit": "junit.xml", "html": "report.html", "hosts": "no-go.txt"}


def existing(directory: Path) -> dict[str, Path]:
    """The report files that are in a directory."""
    paths = {kind: directory / name for kind, name in NAMES.items()}
    return {kind: path for kind, path in paths.items() if path.is_file()}


def write_all(report: Report, records: Records, directory: Path) -> dict[str, Path]:
    """Write report.json, junit.xml, report.html and no-go.txt; returns the path of each.

    Every file is complete before the first is put in place, so that a reader never sees half a report
    and a failure leaves the earlier report alone. Raises OSError when the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = {kind: directory / name for kind, name in NAMES.items()}
    drafts = {kind: path.with_name(f".{path.name}.{os.getpid()}.tmp") for kind, path in paths.items()}
    writers: dict[str, Callable[[IO[str]], None]] = {
        "json": lambda stream: jsonfile.write(report, records(), stream),
        "junit": lambda stream: junit.write(report, stream),
        "html": lambda stream: html.write(report, stream, {"JSON": NAMES["json"], "JUnit": NAMES["junit"]}),
        "hosts": lambda stream: _hosts(report, stream),
    }
    try:
        for kind, draft in drafts.items():
            with draft.open("w", encoding="utf-8", newline="\n") as stream:
                writers[kind](stream)
        for kind, draft in drafts.items():
            draft.replace(paths[kind])
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return paths


def _hosts(report: Report, stream: IO[str]) -> None:
    """The no-go hosts, one a line, as `ansible-playbook --limit @FILE` reads them."""
    found = copies(report)
    stream.write("".join(f"{host}\n" for host in found.hosts.split()) if found else "")
