"""What a run cannot do at its end is refused before the first node is asked, and nothing is made above a named folder."""

import os
import re
import sqlite3
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from flightline.store.sqlite import SqliteStore
from tests.beds import program
from tests.e2e.test_preflight import BOTH, COMMAND, PLAYBOOK, Bench

TODAY = datetime.now(timezone.utc).date()
SHAPE = re.compile(r"\bsaw\b.*\bwanted\b", re.S)


class Place(Bench):
    """A fleet of one host, whose Python leaves a mark when it is asked."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = path / "asked"
        self.python = program(path / "python3", f'#!/bin/sh\n: > {self.asked}\nexec {sys.executable} "$@"\n')
        self.write({"a": None})

    def write(self, hosts, **variables):
        super().write(hosts, **{"ansible_python_interpreter": str(self.python), **variables})

    def named(self, command, **given):
        """Run it with settings of a run, as an option or a variable of the environment."""
        if command is COMMAND:
            options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
            return self.run(command, *options)
        return self.run(command, **{f"FLIGHTLINE_{name.upper()}": str(value) for name, value in given.items()})

    def refused(self, done, *words):
        """Status 2, a sentence with these words, and no node was asked."""
        status, out = done
        said = " ".join(out.split())
        assert status == 2, out
        assert not self.asked.exists(), "a node was asked"
        assert SHAPE.search(said) and "Traceback" not in said, out
        for word in words:
            assert word in said, out
        assert not re.search(r"run \S+ has no verdict", said), out


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def taken(place):
    """What stands in the way: a folder, a file, a text and another program's database. A run leaves all as it was."""
    (place.path / "there").mkdir()
    for name, text in (("taken", "a file"), ("notes.txt", "my notes, " * 50)):
        (place.path / name).write_text(text)
    with sqlite3.connect(place.path / "other.sqlite") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    before = {name: (place.path / name).read_bytes() for name in ("taken", "notes.txt", "other.sqlite")}
    yield place
    assert list((place.path / "there").iterdir()) == [] and not (place.path / "no").exists()
    assert {name: (place.path / name).read_bytes() for name in before} == before


@BOTH
@pytest.mark.parametrize(
    ("setting", "wanted", "words"),
    [
        ("store", "there", ("/there", "wanted a file")),
        ("store", "no/such/runs.sqlite", ("/no",)),
        ("store", "/proc/runs.sqlite", ()),
        ("store", "notes.txt", ("/notes.txt", "not a database")),
        ("store", "other.sqlite", ("/other.sqlite", "saw the table mine")),
        ("report_dir", "no/such/reports", ()),
        ("report_dir", "taken/reports", ()),
        ("report_dir", "taken", ()),
    ],
)
def test_a_place_that_cannot_be(taken, command, setting, wanted, words):
    where = "/proc" if wanted.startswith("/proc") else str(taken.path)
    said = [f"{where}{word}" if word.startswith("/") else word for word in words] or [where]
    taken.refused(taken.named(command, **{setting: taken.path / wanted}), *said)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file read-only needs root")
@BOTH
def test_a_store_that_is_read_only(place, command):
    store = place.path / "runs.sqlite"
    SqliteStore(store).close()
    bound = [["mount", "--bind", str(store), str(store)], ["mount", "-o", "remount,ro,bind", str(store)]]
    if any(subprocess.run(argv, check=False).returncode for argv in bound):
        pytest.skip("this container may not mount")
    try:
        place.refused(place.named(command, store=store), str(store), "Read-only file system")
    finally:
        subprocess.run(["umount", str(store)], check=True)


@pytest.mark.parametrize("wanted", ["no/such/x.json", "taken/x.json", "there"])
def test_a_json_report_s_place_that_cannot_be(taken, wanted):
    status, out = taken.named(COMMAND, json=taken.path / wanted)
    assert status == 2 and not taken.asked.exists() and str(taken.path / wanted.partition("/")[0]) in out, out


def test_a_json_report_over_the_store(place):
    place.refused(place.run(COMMAND, "--json", place.store), "the run store")


def test_the_last_folder_of_each_place_is_made(place):
    places = {name: place.path / name for name in ("stores", "reports", "jsons")}
    status, out = place.run(
        COMMAND, "--store", places["stores"] / "runs.sqlite", "--report-dir", places["reports"], "--json",
        places["jsons"] / "x.json",
    )  # fmt: skip
    assert status == 0, out
    assert (places["reports"] / "report.json").is_file() and (places["jsons"] / "x.json").is_file()
    assert not [one for one in places["reports"].iterdir() if one.name.startswith(".")], "nothing of the trial is left"


def test_a_report_goes_where_a_shell_reads_it(place):
    """A device or a pipe is written to and not replaced."""
    status, out = place.run(("bash", "-c", f'{" ".join(COMMAND)} "$1" --json >(cat > {place.path}/read.json)', "x"))
    assert status == 0 and "could not be written" not in out, out
    assert (place.path / "read.json").read_text().startswith("{")


@BOTH
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("tabel=x", "no such setting"),
        ("{", "not JSON"),
        ("slack=https://hooks.slack.com/x", "the secret itself, which does not belong here"),
        ("slack=env:FLIGHTLINE_NO_SUCH_HOOK", "env:FLIGHTLINE_NO_SUCH_HOOK"),
        ("slack=file:/no/such/hook", "file:/no/such/hook"),
    ],
)
def test_publishing_that_cannot_be_from_the_environment(place, command, given, words):
    place.refused(place.run(command, FLIGHTLINE_PUBLISH=given), words)


@BOTH
def test_publishing_that_cannot_be_from_the_inventory(place, command):
    place.write({"a": None}, flightline_publish={"slack": "env:FLIGHTLINE_NO_SUCH_HOOK"})
    place.refused(place.run(command), "flightline_publish", "env:FLIGHTLINE_NO_SUCH_HOOK")


def test_the_inventory_s_publishing_is_taken_before_the_environment_s(place):
    place.write({"a": None}, flightline_publish={"slack": "env:HOOK", "slack_hosts": ["127.0.0.1"]})
    status, out = place.run(PLAYBOOK, FLIGHTLINE_PUBLISH="tabel=x", HOOK="https://127.0.0.1:1/x")
    assert status == 0 and "tabel" not in out, out


def waiver(expiry: date, **rest: str) -> dict[str, object]:
    return {
        "check": "swap", "scope": "gpu-9*", "reason": "known", "owner": "ops@example.com", "expiry": expiry, **rest,
    }  # fmt: skip


VIA_SLURM = pytest.param(("flightline", "preflight", "--via", "slurm", "-i"), id="via-slurm")


@pytest.mark.parametrize(
    "command",
    [pytest.param(PLAYBOOK, id="ansible-playbook"), pytest.param(COMMAND, id="flightline"), VIA_SLURM],
)
def test_an_expired_waiver_without_a_finding(place, command):
    gone = TODAY - timedelta(days=1)
    place.write({"a": None}, flightline_waivers=[waiver(TODAY), waiver(gone)])
    place.refused(
        place.run(command), "flightline_waivers", "swap", "gpu-9*", "ops@example.com", str(gone), "renew or delete",
        str(place.inventory),
    )  # fmt: skip


def test_every_expired_and_every_malformed_waiver_is_named_with_its_hosts(place):
    gone = TODAY - timedelta(days=40)
    own = [waiver(gone, check="memory"), waiver(TODAY, check="memry"), {"check": "swap"}]
    place.write({"a": None, "b": {"flightline_waivers": own}}, flightline_waivers=[waiver(gone)])
    place.refused(place.run(COMMAND), "- a: flightline_waivers", "- b: flightline_waivers", "memry", "lacks scope")


def test_a_waiver_of_hosts_that_the_run_leaves_out_is_not_its_business(place):
    place.write({"a": None, "b": {"flightline_waivers": [waiver(TODAY - timedelta(days=1))]}})
    status, out = place.run(COMMAND, "--limit", "a")
    assert status == 0, out


def test_a_waiver_on_its_last_day_holds(place):
    place.write({"a": None}, flightline_waivers=[waiver(TODAY + timedelta(days=1))])
    status, out = place.run(PLAYBOOK)
    assert status == 0, out


def test_more_nodes_wanted_than_there_are(place):
    place.refused(place.run(COMMAND, "--need", "2"), "--need", "2", "1 host")


def test_a_fabric_test_that_cannot_be_at_a_level_that_the_inventory_asks_for(place):
    place.write({"a": None}, flightline_level="deep", flightline_fabric={"rnks": 8})
    place.refused(place.run(COMMAND), "flightline_fabric", "rnks")


@pytest.mark.parametrize("words", [("reservation=checks",), ("checks", "--reservation=x"), ("--", "x"), ("-",)])
def test_a_word_for_srun_that_it_would_take_for_a_program(place, words):
    options = [part for word in words for part in ("--via-option", word)]
    place.refused(place.run(("flightline", "preflight", "--via", "slurm", *options, "-i")), "--via-option", words[0])
