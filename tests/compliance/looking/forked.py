"""Tests of the suite in children of one pytest: imports, inventory and collection are paid for once, answers are never kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from testinfra.utils.ansible_runner import AnsibleRunner

from . import expected

SUITE = Path(__file__).parents[1]
Statuses = dict[str, tuple[set[str], str]]


class Loop:
    """A pytest plugin that runs collected tests when it is told to, each time in a new child, and never by itself."""

    def __init__(self, work: Callable[[Loop], int]) -> None:
        self._work = work
        self._items: list[Any] = []
        self.status = 2

    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of pytest's own loop."""
        self._items = session.items
        self.status = self._work(self)
        return True

    def run(self, tests: Iterable[str] = ()) -> Statuses:
        """By test (file::function; none: all): how its parameters ended, and the first thing that was said."""
        names = set(tests)
        chosen = [item for item in self._items if not names or name_of(item) in names]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _child(chosen, writer)
        os.close(writer)
        with os.fdopen(reader) as answers:
            text = answers.read()
        os.waitpid(child, 0)
        return {name: (set(seen), why) for name, (seen, why) in json.loads(text or "{}").items()}


def name_of(item: Any) -> str:
    """File and function of a collected test."""
    return f"{item.path.name}::{item.originalname}"


def _child(items: list[Any], writer: int) -> None:
    found: dict[str, tuple[list[str], str]] = {}
    try:
        for item, following in zip(items, [*items[1:], None]):
            for report in runtestprotocol(item, log=False, nextitem=following):
                if report.when == "call" or not report.passed:
                    seen, why = found.get(name_of(item), ([], ""))
                    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
                    # An error in a fixture proves nothing about a test.
                    kind = "error" if report.failed and report.when != "call" else report.outcome
                    found[name_of(item)] = ([*seen, kind], why or text)
    finally:
        with os.fdopen(writer, "w") as answers:
            json.dump(found, answers)
        os._exit(0)


def main(inventory: str, host: str, work: Callable[[Loop], int]) -> int:
    """Collect the suite for a host and do `work` with it. Returns its exit status."""
    expected.site((inventory,))
    AnsibleRunner.get_runner(inventory).get_hosts("all")
    loop = Loop(work)
    argv = [str(SUITE), "-q", "-s", "-p", "no:cacheprovider"]
    pytest.main([*argv, f"--hosts=ansible://{host}", f"--ansible-inventory={inventory}"], plugins=[loop])
    return loop.status
