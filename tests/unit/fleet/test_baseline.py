"""What known-good nodes reach becomes a criterion, is kept, judges later nodes, and is refused where it does not fit.

All measures are made up.
"""

import json
from datetime import datetime, timedelta, timezone

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.fabric.drive import FabricNodes, RoundAnswer, drive
from flightline.fabric.stage import Stage
from flightline.fleet import baseline as criteria
from flightline.fleet.baseline import BaselineError, learn, learn_pairs, limit_of
from flightline.run import baselines
from flightline.run.launchers.ansible import AnsibleLauncher
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline_node.know.expected import resolve
from flightline_node.model import RECORD_SCHEMA, Status
from tests.memory_store import MemoryStore
from tests.unit.fabric.test_drive import log

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
TYPE = "p5.48xlarge"
NODES = tuple(f"n{at}" for at in range(10))


def record(host, tflops=700.0, instance_type=TYPE, status="PASS", **more):
    values = {f"GPU {gpu}": tflops + gpu for gpu in range(8)}
    measures = {"gpu_load_tflops": {"unit": "TFLOPS", "values": values}, "load1": {"unit": "tasks", "values": {"": 3}}}
    return {
        "schema": RECORD_SCHEMA, "host": host, "instance_id": "", "instance_type": instance_type, "seconds": 1.0,
        "started_at": "2026-02-01T00:00:00Z", "measures": {**measures, **more},
        "findings": [{"check": "gpu_load", "status": status, "message": "-", "remedy": "NONE"}],
    }  # fmt: skip


def made(days=10, nodes=NODES, **rest):
    at = (NOW - timedelta(days=days)).isoformat()
    limits = learn([record(node) for node in nodes], TYPE, nodes)
    return criteria.Baseline(TYPE, at, "preflight x", tuple(nodes), limits, **rest)


def said(found):
    return [(one.status, one.device.get("name", "")) for one in found]


def test_median_and_spread_become_a_limit_in_the_direction_that_costs_time():
    low = limit_of("gpu_load_tflops", "TFLOPS", -1, 8, [99.0, 100.0, 101.0] * 8)
    assert (low.median, low.limit) == (100.0, 92.587) and low.broken_by(92) and not low.broken_by(140)
    high = limit_of("gpu_load_temperature_c", "C", 1, 8, [60.0] * 8)
    assert high.limit == 63.0 and high.broken_by(64) and not high.broken_by(20)


def test_only_measures_of_speed_on_enough_known_good_nodes_are_learned():
    records = [
        record(node, rare={"unit": "GB/s", "values": {"": 1.0}}) if node == "n0" else record(node) for node in NODES
    ]
    (one,) = learn(records, TYPE, NODES)
    assert (one.measure, one.nodes, one.values) == ("gpu_load_tflops", 10, 80)
    assert learn(records, TYPE, NODES[:7]) == () and learn(records, "p5e.48xlarge", NODES) == ()


@pytest.mark.parametrize("value", [None, True, "700", float("nan"), float("inf")])
def test_what_is_no_number_teaches_nothing_and_passes_nothing(value):
    strange = {"gpu_load_tflops": {"unit": "TFLOPS", "values": {"GPU 0": value}}}
    assert learn([{**record(node), "measures": strange} for node in NODES], TYPE, NODES) == ()
    assert said(criteria.judge(made(), strange, ["gpu_load_tflops"])) == [(Status.UNKNOWN, "")]


def test_a_slow_gpu_fails_with_both_figures_and_a_node_like_the_others_passes():
    slow = record("x")["measures"]
    slow["gpu_load_tflops"]["values"]["GPU 3"] = 500.0
    found = criteria.judge(made(), slow, slow)
    assert said(found) == [(Status.FAIL, "GPU 3")]
    assert (found[0].measured, found[0].expected) == (500.0, 668.325) and "29% off" in found[0].message
    assert said(criteria.judge(made(), record("x")["measures"], slow)) == [(Status.PASS, "")]


def test_what_other_nodes_measured_and_this_one_did_not_is_unknown():
    assert said(criteria.judge(made(), {}, ["gpu_load_tflops"])) == [(Status.UNKNOWN, "")]
    assert said(criteria.judge(made(), {}, ["load1"])) == [(Status.SKIP, "")]


@pytest.mark.parametrize(
    ("days", "instance_type", "why"),
    [
        (91, TYPE, "91 days old, wanted 90"),
        (10, "p5e.48xlarge", "wanted p5e.48xlarge"),
        (-5, TYPE, "which is not yet"),
        (90, TYPE, ""),
    ],
)
def test_too_old_another_type_or_from_the_future_is_unfit(days, instance_type, why):
    found = criteria.unfit(made(days), instance_type, NOW)
    assert why in found if why else found == ""


def test_too_few_nodes_and_nothing_learned_are_refused():
    with pytest.raises(BaselineError, match="saw 7 known-good nodes of"):
        criteria.checked(made(nodes=NODES[:7]))
    with pytest.raises(BaselineError, match="saw no measure of speed"):
        criteria.checked(criteria.Baseline(TYPE, NOW.isoformat(), "-", NODES))


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "flightline-baseline/0"},
        {"made_at": "yesterday"},
        {"limits": [{"measure": "x"}]},
        {"nodes": None},
        {"limits": 3},
    ],
)
def test_a_file_that_is_no_baseline_is_refused(change):
    good = json.loads(json.dumps(made().to_dict()))
    assert criteria.read(good) == made()
    with pytest.raises(BaselineError):
        criteria.read({**good, **change})
    broken = json.loads(json.dumps(good))
    broken["limits"][0]["limit"] = float("nan")
    with pytest.raises(BaselineError, match="no number"):
        criteria.read(broken)


def kept(tmp_path, days=10, **rest):
    store = tmp_path / "runs.sqlite"
    baselines.use(store, made(days, **rest))
    return store


def test_a_nodes_finding_names_the_host_and_other_types_are_left_alone(tmp_path):
    found = baselines.findings(kept(tmp_path), [record("a"), record("b", 500.0), record("c", 5.0, "g5.xlarge")], NOW)
    assert {(one["device"]["host"], one["status"]) for one in found} == {("a", "PASS"), ("b", "FAIL")}


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("{"), lambda path: path.write_text("[]"), None])
def test_one_in_use_that_is_too_old_or_broken_passes_nobody(tmp_path, spoil):
    store = kept(tmp_path, days=10 if spoil else 200)
    if spoil:
        spoil(baselines.in_use(store)[TYPE])
    (found,) = baselines.findings(store, [record("a")], NOW)
    assert found["status"] == "UNKNOWN" and found["device"] == {"host": "a"} and "do: " in found["message"]


def test_it_judges_a_run_at_any_level_beside_the_nodes_own_checks(tmp_path):
    store, path = kept(tmp_path, days=-((datetime.now(timezone.utc) - NOW).days)), tmp_path / "none.yml"
    path.write_text("all: {hosts: {a: {}, b: {}}}\n")
    run = Run("r", "2026-03-01T00:00:00Z", "standard", str(path), (ExpectedHost("a"), ExpectedHost("b")))
    stage = Stage([str(path)], "", store, lambda _: None)
    rows = MemoryStore(run, {"a": record("a"), "b": record("b", 500.0)})
    given = stage(run, rows, AnsibleLauncher())
    assert given and {(one["device"]["host"], one["status"]) for one in given["findings"]} == {
        ("a", "PASS"),
        ("b", "FAIL"),
    }
    assert (
        Stage([str(path)], "", tmp_path / "other" / "runs.sqlite", lambda _: None)(run, rows, AnsibleLauncher()) is None
    )


def run_of(tmp_path, bad=("n9",)):
    store = SqliteStore(tmp_path / "runs.sqlite")
    hosts = tuple(ExpectedHost(node, TYPE) for node in NODES)
    began = datetime.now(timezone.utc).isoformat()
    store.start(Run("r1", began, "standard", "-", hosts))
    for node in NODES:
        store.save("r1", record(node, status="FAIL" if node in bad else "PASS"))
    store.finish("r1", began, "no-go")
    store.close()
    return tmp_path / "runs.sqlite"


def flightline(*argv):
    return CliRunner().invoke(cli, ["baseline", *map(str, argv)])


def test_save_show_and_use_from_a_run_learn_from_its_go_nodes_only(tmp_path):
    store, file = run_of(tmp_path), tmp_path / "p5.json"
    done = flightline("save", "--run", "r1", "--file", file, "--store", store)
    assert done.exit_code == 0 and "p5.48xlarge, 9 nodes, 1 measures" in done.output, done.output
    shown = flightline("show", file, "--store", store)
    assert "gpu_load_tflops" in shown.output and "at least" in shown.output
    assert "no baseline is in use" in flightline("show", "--store", store).output
    assert flightline("use", file, "--store", store).exit_code == 0
    assert "gpu_load_tflops" in flightline("show", "--store", store).output
    assert json.loads(flightline("show", "--json", "--store", store).output)[0]["nodes"] == list(NODES[:9])
    assert "no baseline for p5.48xlarge" in flightline("use", "--none", "--store", store).output
    assert baselines.in_use(store) == {}


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["save", "--file", "x.json"], "saw neither --run nor --fabric"),
        (["use"], "saw both or neither"),
        (["use", "no-such.json"], "No such file"),
        (["save", "--run", "r1", "--type", "p4d.24xlarge", "--file", "x.json"],
         "saw go nodes of the types p5.48xlarge"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(tmp_path, argv, why, monkeypatch):
    store = run_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = flightline(*argv, "--store", store)
    assert done.exit_code != 0 and why in done.output + str(done.exception)


def test_few_good_nodes_old_ones_and_another_type_are_refused_by_name(tmp_path):
    few = run_of(tmp_path, bad=NODES[6:])
    done = flightline("save", "--run", "r1", "--file", tmp_path / "x.json", "--store", few)
    assert "saw 6 known-good nodes" in str(done.exception) and not (tmp_path / "x.json").exists()
    old = tmp_path / "old.json"
    baselines.write(old, made(days=4000))
    assert "days old, wanted 90" in str(flightline("use", old, "--store", few).exception)
    now = tmp_path / "now.json"
    baselines.write(now, criteria.Baseline(TYPE, datetime.now(timezone.utc).isoformat(), "-", NODES, made().limits))
    assert "wanted p4d.24xlarge" in str(flightline("use", now, "--type", "p4d.24xlarge", "--store", few).exception)
    assert baselines.in_use(few) == {}


def result_of(ring, gb_s=10.0, slow=()):
    pairs = [(ring[at], ring[(at + 1) % len(ring)]) for at in range(len(ring))]
    tests = [{"nodes": list(pair), "slow": [one for one in pair if one in slow], "gb_s": gb_s} for pair in pairs]
    return {"collective": "all_reduce", "rounds": [tests]}


def test_pairs_of_known_good_nodes_make_a_floor_and_slow_ones_teach_nothing():
    (one,) = learn_pairs(result_of(NODES), NODES)
    assert (one.measure, one.limit) == ("all_reduce", 9.5)
    assert learn_pairs(result_of(NODES[:7]), NODES) == () and learn_pairs(result_of(NODES, slow=NODES), NODES) == ()


def test_a_fleet_slow_alike_falls_to_the_baselines_floor_where_peers_would_pass(tmp_path):
    """Every pair reaches 7 GB/s: alike, so peers see nothing; known-good nodes reached 10."""
    ring = NODES[:6]

    def play(name, tests, collective):
        if not tests:
            return {node: RoundAnswer({"machine": node, "problems": []}) for node in ring}
        return {leader: RoundAnswer({"rc": 0, "output": log(7.0, nodes=len(nodes))}) for leader, nodes in tests.items()}

    plain = FabricNodes(ring, {node: node for node in ring}, resolve("none"), ("all_reduce",))
    assert drive(plain, play, tmp_path / "a", lambda _: None).go
    floors = made(pairs=learn_pairs(result_of(NODES), NODES)).pair_floors
    with_floor = FabricNodes(ring, {node: node for node in ring}, resolve("none"), ("all_reduce",), pair_floors=floors)
    result = drive(with_floor, play, tmp_path / "b", lambda _: None)
    assert (
        not result.go and [blame.kind for blame in result.found] == ["fabric"] and "wanted 9.5" in result.found[0].why
    )
