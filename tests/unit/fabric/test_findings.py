"""A fabric test's result becomes findings that name node, figures and remedy, and the fleet's judgement blocks by them."""

import pytest

from flightline.fabric import stage as stages
from flightline.fabric.findings import of_result
from flightline.fabric.logs import LogResult
from flightline.fabric.settings import wanted_of
from flightline.fleet.judgement import judge_run
from flightline.fleet.together import FABRIC_HOST
from flightline.run import inventory
from flightline.run.launchers.ansible import AnsibleLauncher
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline_node.model import SettingsError, Status, Verdict
from tests.memory_store import MemoryStore
from tests.unit.fabric.test_drive import RoundAnswer, played
from tests.unit.made import record


def found_of(result):
    return {(one["device"].get("host", ""), one["status"]): one for one in of_result(result)}


def run_of(hosts, level="deep"):
    return Run("r1", "2026-11-22T10:00:00+00:00", level, "inv", tuple(ExpectedHost(name) for name in hosts))


def judged(result):
    hosts = result.fleet.ring
    rows = {**{name: record(name) for name in hosts}, FABRIC_HOST: {"host": FABRIC_HOST, "findings": of_result(result)}}
    return judge_run(MemoryStore(run_of(hosts), rows), "r1")


def test_a_slow_node_is_named_with_figures_and_the_others_pass(tmp_path):
    result, _, _ = played(tmp_path, n3=2.0)
    found = found_of(result)
    bad = found["n3", "FAIL"]
    assert (bad["measured"], bad["expected"], bad["unit"], bad["remedy"]) == (2.0, 8.0, "GB/s", "REPLACE")
    assert "failed with" in bad["message"] and len(found) == 6
    report = judged(result)
    rows = {row.host: row for row in report.rows}
    assert rows["n3"].verdict is Verdict.NO_GO and rows["n2"].verdict is Verdict.GO and report.verdict is Verdict.NO_GO
    assert rows["n2"].cells["fabric"] is Status.PASS and FABRIC_HOST not in rows and "fabric" in report.checks


def test_a_healthy_fleet_is_go_and_a_fabric_that_fails_whole_is_the_fleet_s(tmp_path):
    result, _, _ = played(tmp_path)
    assert judged(result).verdict is Verdict.GO
    broken, _, _ = played(tmp_path / "b", **{f"n{at}": RoundAnswer(trouble="no route") for at in range(6)})
    report = judged(broken)
    assert report.counts["go"] == 0 and [one["check"] for one in report.fleet] == ["fabric"]


def test_together_slow_and_each_pair_good_blocks_the_fleet_and_no_node(tmp_path):
    result, _, _ = played(tmp_path)
    result.together["all_reduce"] = LogResult("too slow", 1.0)
    report = judged(result)
    assert report.verdict is Verdict.NO_GO and report.counts["no_go"] == 0
    assert "each pair alone passed" in report.fleet[0]["message"]


def test_who_took_no_part_is_unknown_and_no_go(tmp_path):
    result, _, _ = played(tmp_path, ready_n1=RoundAnswer({"machine": "n1", "problems": ["no mpirun on this node"]}))
    row = next(row for row in judged(result).rows if row.host == "n1")
    assert row.verdict is Verdict.NO_GO and "no mpirun" in row.findings[0]["message"]


def test_every_mistake_of_the_settings_is_told():
    with pytest.raises(SettingsError) as caught:
        wanted_of({"flightline_fabric": {"launcher": "ssh", "rank": 8, "deadline_s": 1, "collectives": ["allreduce"]}})
    assert len(caught.value.mistakes) == 4 and "unknown key 'rank' (did you mean ranks?)" in str(caught.value)
    assert wanted_of({}).asked.collectives == ("all_reduce", "all_gather", "reduce_scatter", "alltoall")


def staged(tmp_path, level="deep", **rest):
    run = run_of("ab", level)
    store = MemoryStore(run, {name: record(name) for name in "ab"})
    return stages.Stage(("inv",), "", tmp_path / "runs.sqlite", lambda _: None, **rest)(run, store, AnsibleLauncher())


@pytest.mark.parametrize(
    ("hostvars", "why"),
    [
        ({"instance_type": "p5.48xlarge", "demo_dir": "/x"}, "simulated nodes share one machine"),
        ({"instance_type": "none"}, "must name the program"),
        ({"instance_type": "trn1.32xlarge"}, "has no NVIDIA GPU"),
        ({"instance_type": "p5.48xlarge", "flightline_fabric": {"run": "never"}}, "run: never"),
    ],
)
def test_where_it_does_not_apply_it_is_a_skip_with_its_reason(tmp_path, monkeypatch, hostvars, why):
    monkeypatch.setattr(inventory, "hosts", lambda *_: {"a": hostvars, "b": hostvars})
    kept = staged(tmp_path)
    assert {one["status"] for one in kept["findings"]} == {"SKIP"} and why in kept["findings"][0]["message"]


def test_other_levels_have_no_such_test_and_chosen_checks_are_not_joined_by_it(tmp_path, monkeypatch):
    monkeypatch.setattr(inventory, "hosts", lambda *_: {name: {"instance_type": "p5.48xlarge"} for name in "ab"})
    assert staged(tmp_path, "standard") is None
    assert "only some checks" in staged(tmp_path, chosen=True)["findings"][0]["message"]


def test_an_inventory_that_cannot_be_read_any_more_is_unknown(tmp_path, monkeypatch):
    def gone(*_):
        raise SettingsError("inventory gone")

    monkeypatch.setattr(inventory, "hosts", gone)
    assert {one["status"] for one in staged(tmp_path)["findings"]} == {"UNKNOWN"}


def test_a_kept_record_is_read_again_by_every_reader_and_a_damaged_one_is_no_go(tmp_path):
    result, _, _ = played(tmp_path, n3=2.0)
    hosts = result.fleet.ring
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        store.start(run_of(hosts))
        for name in hosts:
            store.save("r1", record(name))
        store.save("r1", {"host": FABRIC_HOST, "findings": of_result(result)})
        assert [row.host for row in judge_run(store, "r1").rows if row.verdict is Verdict.NO_GO] == ["n3"]
        store._db.execute("UPDATE nodes SET record=x'00' WHERE host=?", (FABRIC_HOST,))
        report = judge_run(store, "r1")
    assert report.verdict is Verdict.NO_GO and "cannot be read" in report.fleet[0]["message"]
