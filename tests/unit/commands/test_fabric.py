"""What flightline fabric runs: as the inventory wants it, and above that what the command line says."""

import json

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.commands import fabric
from flightline.fabric.settings import ENVIRONMENT, EVERY, program_of, wanted_of
from flightline.run import inventory
from flightline_node.model import SettingsError


@pytest.fixture
def asked(monkeypatch):
    def of(given, *argv):
        monkeypatch.setattr(inventory, "hosts", lambda *_: {"a": {"flightline_fabric": given}, "b": {}})
        with fabric.command.make_context("fabric", ["-i", "hosts.yml", *argv]) as ctx:
            params = {name: value for name, value in ctx.params.items() if name not in ("inventory", "hostfile")}
            return fabric._asked(ctx, ctx.params["inventory"], params)

    return of


def test_nothing_said_is_the_defaults(asked):
    found, share = asked({})
    assert (found.program, found.collectives, found.environment, found.launcher) == (
        program_of(""),
        EVERY,
        ENVIRONMENT,
        "mpirun",
    )
    assert (found.deadline_s, found.storage, share) == (300, "", 0.8)


def test_the_inventory_says_how_and_the_command_line_is_above_it(asked):
    given = {"program": "/t/{collective} -b 1M", "collectives": ["alltoall"], "launcher": "srun", "least_share": 0.5}
    given |= {"launcher_options": ["--x"], "environment": {"A": "1"}, "deadline_s": 60, "storage": "/fsx", "ranks": 4}
    found, share = asked(given)
    assert (found.program, found.collectives, found.launcher) == (
        ("/t/{collective}", "-b", "1M"),
        ("alltoall",),
        "srun",
    )
    assert (found.options, found.deadline_s, found.storage, found.ranks, share) == (("--x",), 60, "/fsx", 4, 0.5)
    argv = [
        "--program",
        "/u 2",
        "--collective",
        "all_reduce",
        "--launcher",
        "mpirun",
        "--deadline",
        "9",
        "--env",
        "B=2",
    ]
    found, share = asked(given, *argv, "--least-share", "0.7", "--launcher-option=--y", "--ranks", "2")
    assert (found.program, found.collectives, found.launcher) == (("/u", "2"), ("all_reduce",), "mpirun")
    assert (found.options, found.deadline_s, found.storage, found.ranks, share) == (("--y",), 9, "/fsx", 2, 0.7)
    assert {"A": "1", "B": "2"}.items() <= found.environment.items()


@pytest.mark.parametrize(
    ("instance_type", "largest"), [("none", "8G"), ("p5.48xlarge", "8G"), ("p6-b300.48xlarge", "16G")]
)
def test_the_default_goes_to_the_size_that_fills_the_links_of_the_type(instance_type, largest):
    program = wanted_of({"instance_type": instance_type}).asked.program
    assert program[program.index("-b") + 1] == "8" and program[program.index("-e") + 1] == largest


@pytest.mark.parametrize(
    "given",
    [
        {"launchr": "srun"},
        {"storage": "fsx"},
        {"storage_mb_s": 0.5},
        {"storage_mb_s": True},
        {"collectives": ["nothing"]},
    ],
)
def test_a_mistake_in_the_inventory_is_said_by_key(asked, given):
    with pytest.raises(SettingsError, match=next(iter(given))):
        asked(given)


def test_fewer_nodes_than_a_test_needs_is_said_and_nothing_is_written(tmp_path):
    (tmp_path / "one.yml").write_text("all: {hosts: {a: {ansible_connection: local}}}\n")
    argv = ["fabric", "-i", str(tmp_path / "one.yml"), "--json", str(tmp_path / "r.json")]
    done = CliRunner().invoke(cli, argv)
    assert done.exit_code == 2 and "saw 1 hosts in the inventory, wanted two or more" in done.output
    assert not (tmp_path / "r.json").exists()


def test_a_pairs_figure_is_that_of_its_slower_direction():
    from flightline.fabric.criterion import Measured
    from flightline.fabric.pairs import Pair, Tested

    pair = Pair("a", "b")
    told = fabric._pair(Measured(pair, {"a": 2.0, "b": 1.0}), Tested(pair, frozenset("b"), "slow"))
    assert json.loads(json.dumps(told)) == {"nodes": ["a", "b"], "slow": ["b"], "why": "slow", "gb_s": 1.0}
    assert fabric._pair(Measured(pair, {}, error="dead"), Tested(pair, frozenset(pair), "dead"))["gb_s"] is None


def test_the_json_has_who_is_healthy_and_what_the_storage_test_found(tmp_path, monkeypatch):
    """A node may pass its pairs and be slow to the shared file system: neither is lost."""
    from flightline.fabric import ansible as edge
    from tests.unit.fabric.test_drive import RING, Play, fleet

    shared = [{"device": {"host": "n2"}, "status": "FAIL", "message": "slow", "measured": 1.0, "expected": 9.0}]
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setattr(fabric, "_asked", lambda *_: (None, 0.8))
    monkeypatch.setattr(fabric, "_shared", lambda *_: shared)
    monkeypatch.setattr(edge, "fleet_of", lambda _: fleet())
    monkeypatch.setattr(edge, "with_baseline", lambda made, _: made)
    monkeypatch.setattr(edge, "Rounds", lambda _asked, made, _run: Play(made, n4=1.0))
    argv = ["fabric", "-i", "hosts.yml", "--json", str(tmp_path / "r.json"), "--hostfile", str(tmp_path / "hosts")]
    assert CliRunner().invoke(cli, argv).exit_code == 1
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["healthy"] == [node for node in RING if node not in ("n2", "n4")]
    assert told["storage"] == shared
    assert [fault["nodes"] for fault in told["faults"]] == [["n4"]]
    assert (tmp_path / "hosts").read_text().split()[::2] == told["healthy"]
