"""kill -9 at random moments of a run: of whoever was told has its row, and the store is whole. KILLS=50 for more of them."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from flightline.run import live, process_tree
from flightline.store.sqlite import SqliteStore, spill_files, worst_of
from tests.launchers.conftest import NODES, Fleet, demo, package  # noqa: F401  # a fixture
from tests.launchers.test_alike import kubectl

KILLS = int(os.environ.get("KILLS", "6"))
WAYS = ("ansible", "kubernetes", "a store that is held")
LINE = re.compile(r"^\[\d+/\d+\] (\S+) (go|no-go)", re.M)


@contextmanager
def held(store: Path) -> Iterator[None]:
    """Another process's lock, so that rows go beside the store."""
    SqliteStore(store).close()
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


class Killed:
    """A small demo fleet that is judged in one way, again and again, with one store."""

    def __init__(self, fleet: Fleet, way: str) -> None:
        self.fleet, self.is_held = fleet, way not in ("ansible", "kubernetes")
        self.store = fleet.place / way.replace(" ", "-") / "runs.sqlite"
        self.store.parent.mkdir()
        self.words = ["--via", "kubernetes"] if way == "kubernetes" else ["--forks", "2"]
        began = time.monotonic()
        self.usual = self.preflight(None, False)
        self.seconds = time.monotonic() - began

    def preflight(self, moment: float | None, is_all: bool) -> tuple[int, dict[str, bool]]:
        """A run that is killed at a moment, all of it or the command alone: its status, and who was told of as what."""
        tmp = self.fleet.place / "tmp" / str(time.monotonic_ns())
        tmp.mkdir(parents=True)
        argv = ["flightline", "preflight", "-i", str(self.fleet.inventory), "--store", str(self.store), *self.words]
        env = {**self.fleet.env, "TMPDIR": str(tmp), "PYTHONUNBUFFERED": "1"}
        below: process_tree.Processes = {}
        with (tmp / "out").open("wb") as out, held(self.store) if self.is_held else nullcontext():
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                below = process_tree.descendants(process.pid)
                for pid in (process.pid, *(below if is_all else ())):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
            self.wait_for_the_rest(below)
        return process.returncode, told_in(tmp)

    def wait_for_the_rest(self, below: process_tree.Processes) -> None:
        """Until none is left. One that ends shows no command line any more while it still holds its files and their locks."""
        until = time.monotonic() + 60
        while str(self.fleet.place).encode() in commands() or process_tree.are_there(below):
            assert time.monotonic() < until, "processes of a killed run go on"
            time.sleep(0.1)

    def runs(self) -> list[str]:
        with SqliteStore(self.store) as store:
            return [run.run_id for run in store.runs(1000)]

    def report(self, run_id: str) -> dict[str, str]:
        """What `flightline report` says of each host."""
        path = self.store.parent / "report.json"
        argv = ["flightline", "report", run_id, "--store", str(self.store), "--json", str(path)]
        done = subprocess.run(argv, env=self.fleet.env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1, done.stdout + done.stderr
        return {node["host"]: node["status"] for node in json.loads(path.read_text())["nodes"]}


def commands() -> bytes:
    """The command lines of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes()
        except OSError:
            continue
    return found


def told_in(tmp: Path) -> dict[str, bool]:
    """Host -> is it go, by the terminal and by the run's own lines."""
    told = {host: word == "go" for host, word in LINE.findall((tmp / "out").read_text(errors="replace"))}
    for path in tmp.glob("flightline-run-*/*.jsonl"):
        for line in path.read_text().split("\n")[:-1]:
            kind, what = json.loads(line)
            told.update({what["host"]: what["go"]} if kind == live.ANSWERED else {})
    return told


@pytest.fixture(scope="module")
def fleets(tmp_path_factory, package):  # noqa: F811
    """Way -> its fleet, once it is asked for."""
    place = tmp_path_factory.mktemp("killed")
    (place / "bin").mkdir()
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{kubectl(place / 'bin')}:{before}"
    fleet, made = demo(place, {}, package, lambda _: {}), {}
    yield lambda way: made.get(way) or made.setdefault(way, Killed(fleet, way))
    os.environ["PATH"] = before


@pytest.mark.parametrize("number", range(KILLS))
def test_who_was_told_of_has_its_row(fleets, number):
    way, of_a_way = WAYS[number % len(WAYS)], -(-KILLS // len(WAYS))
    killed, chance = fleets(way), random.Random(f"{KILLS} {number}")
    before = set(killed.runs())
    moment = (number // len(WAYS) + chance.random()) / of_a_way * killed.seconds
    _, told = killed.preflight(moment, is_all=chance.random() < 0.5)
    new = [run_id for run_id in killed.runs() if run_id not in before]
    assert not spill_files(killed.store), "what lay beside the store is merged"
    with sqlite3.connect(killed.store) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert new or not told, f"{way}, killed after {moment:.1f} s: told of {sorted(told)} of a run that no store has"
    for run_id in new:
        with SqliteStore(killed.store) as store:
            rows = {record["host"]: record for record in store.records(run_id)}
        lost = {host: rows.get(host, {}).get("verdict") for host, go in told.items() if is_go(rows.get(host)) is not go}
        assert not lost, f"{way}, killed after {moment:.1f} of {killed.seconds:.1f} s"
        shown = killed.report(run_id)
        assert len(shown) == NODES and {host: shown[host] for host in rows} == {
            host: str(worst_of(row)) for host, row in rows.items()
        }


def is_go(row: dict | None) -> bool | None:
    return row["verdict"] == "go" if row else None


@pytest.mark.parametrize("way", WAYS)
def test_after_them_a_run_is_as_ever(fleets, way):
    usual = fleets(way).usual
    assert usual[0] == 1 and len(usual[1]) == NODES and usual[1]["gpu-01"] and not usual[1]["gpu-03"]
    assert fleets(way).preflight(None, is_all=False) == usual
