"""The fleet's judgement: every host has a row, and what only shows across hosts is found."""

import random
import time

import pytest

from flightline.fleet.checks import FLEET_CHECKS, advice_of, title_of
from flightline.fleet.judgement import judge_run
from flightline.store.rows import broken_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, SqliteStore
from flightline_node.judge.checks import CHECKS
from flightline_node.model import Remedy, Status, Verdict, device_label
from tests.memory_store import MemoryStore
from tests.unit.made import a_run, finding, record


def judge(*records, hosts=None):
    names = hosts or [item["host"] for item in records]
    return judge_run(MemoryStore(a_run(*names), {item["host"]: item for item in records}), "r1")


def versions(host, **found):
    return record(host, versions={"driver": "580.95.05", "kernel": "6.12", **found})


def row(report, host):
    return next(item for item in report.rows if item.host == host)


def test_a_good_fleet_is_go():
    report = judge(record("a"), record("b"))
    assert report.verdict is Verdict.GO and report.counts == {"nodes": 2, "go": 2, "no_go": 0, "unreachable": 0}
    assert (report.fleet, report.groups, report.checks) == ([], [], ["memory"])
    assert (report.run.id, report.run.level, report.run.inventory) == ("r1", "quick", "inventory/made")


def test_rows_keep_the_inventory_s_order_and_drop_pass_findings():
    report = judge(record("a", finding(), finding("swap", "WARN")), record("b"), hosts=["b", "a"])
    assert [item.host for item in report.rows] == ["b", "a"]
    assert row(report, "a").cells == {"memory": Status.PASS, "swap": Status.WARN}
    assert [item["check"] for item in row(report, "a").findings] == ["swap"]
    assert report.verdict is Verdict.GO, "a warning does not block"


def test_a_host_that_never_answered_is_unknown_and_blocks():
    report = judge(record("a"), hosts=["a", "lost"])
    lost = row(report, "lost")
    assert (lost.status, lost.verdict, lost.instance_type) == (Status.UNKNOWN, Verdict.NO_GO, "p5.48xlarge")
    assert lost.cells == {"reachable": Status.UNKNOWN}
    assert "the run ended before this host answered" in lost.findings[0]["message"]
    assert report.verdict is Verdict.NO_GO


def test_unreachable_hosts_are_counted_and_block():
    report = judge(record("a"), unreachable_record(ExpectedHost("gone"), "ssh: no route"), hosts=["a", "gone"])
    assert report.counts == {"nodes": 2, "go": 1, "no_go": 1, "unreachable": 1}
    assert report.verdict is Verdict.NO_GO


def test_no_hosts_is_no_go():
    report = judge(hosts=[])
    assert report.verdict is Verdict.NO_GO and report.rows == []
    assert [item["check"] for item in report.fleet] == ["inventory"]


def test_a_worse_finding_is_not_overwritten_by_a_later_better_one():
    report = judge(record("a", finding(status="FAIL"), finding(status="PASS"), finding(status="UNKNOWN")))
    assert row(report, "a").cells == {"memory": Status.FAIL} and row(report, "a").verdict is Verdict.NO_GO


@pytest.mark.parametrize("verdict", ["no-go", "", None, "maybe"])
def test_the_node_s_own_word_decides_nothing(verdict):
    assert judge(record("a", verdict=verdict)).verdict is Verdict.GO
    assert judge(record("a", finding(status="FAIL"), verdict="go")).verdict is Verdict.NO_GO


def test_a_record_without_evidence_is_no_go_whatever_it_claims():
    assert judge(record("a", finding(status="SKIP"), verdict="go")).verdict is Verdict.NO_GO
    assert judge(record("a", finding(status="SPLENDID"), verdict="go")).verdict is Verdict.NO_GO


def test_the_odd_driver_is_named_and_its_host_is_no_go():
    report = judge(versions("a"), versions("b"), versions("c", driver="570.124.06"))
    (odd,) = report.fleet
    assert (odd["check"], odd["status"], odd["remedy"]) == ("uniform_driver", "FAIL", "UPDATE_SOFTWARE")
    assert odd["hosts"] == ["c"] and odd["expected"] == "580.95.05"
    assert odd["measured"] == {"580.95.05": 2, "570.124.06": 1}
    assert [item.verdict for item in report.rows] == [Verdict.GO, Verdict.GO, Verdict.NO_GO]
    assert (
        row(report, "c").cells["uniform_driver"] is Status.FAIL
        and row(report, "a").cells["uniform_driver"] is Status.PASS
    )
    assert report.verdict is Verdict.NO_GO


def test_two_hosts_that_differ_are_both_named():
    report = judge(versions("a"), versions("b", driver="570.124.06"))
    assert report.fleet[0]["hosts"] == ["a", "b"]
    assert {item.verdict for item in report.rows} == {Verdict.NO_GO}


@pytest.mark.parametrize("key", ["driver", "cuda", "nccl", "efa_installer", "efa_driver", "kernel"])
def test_software_that_differs_blocks(key):
    report = judge(versions("a", **{key: "1"}), versions("b", **{key: "1"}), versions("c", **{key: "2"}))
    assert report.verdict is Verdict.NO_GO and report.fleet[0]["check"] == f"uniform_{key}"


def test_another_vbios_only_warns():
    report = judge(versions("a", vbios="96.00.A5"), versions("b", vbios="96.00.A5"), versions("c", vbios="96.00.99"))
    assert report.verdict is Verdict.GO
    assert row(report, "c").status is Status.WARN and report.fleet[0]["status"] == "WARN"


def test_a_driver_that_differs_does_not_blame_its_cuda_version_too():
    good = {"driver": "580.95.05", "cuda": "13.0"}
    report = judge(versions("a", **good), versions("b", **good), versions("c", driver="570.1", cuda="12.8"))
    assert [item["check"] for item in report.fleet] == ["uniform_driver"]


def test_types_are_compared_among_themselves_and_a_missing_version_is_no_fault():
    other = record("x", instance_type="g6.48xlarge", versions={"driver": "570.1"})
    report = judge(versions("a"), record("b"), other)
    assert report.fleet == [] and report.verdict is Verdict.GO
    report = judge(versions("a"), versions("b"), versions("c", driver="570.1"), record("d"))
    assert row(report, "d").cells["uniform_driver"] is Status.SKIP and row(report, "d").verdict is Verdict.GO


def test_one_gpu_on_two_hosts_is_one_finding_that_names_both():
    gpu = [{"index": 0, "uuid": "GPU-1", "serial": "77"}]
    report = judge(record("a", gpus=gpu), record("b", gpus=gpu), record("c"))
    (found,) = report.fleet
    assert (found["check"], found["status"], found["hosts"]) == ("duplicate_gpu", "FAIL", ["a", "b"])
    assert set(found["evidence"]) == {"uuid GPU-1", "serial 77"}
    assert [item.verdict for item in report.rows] == [Verdict.NO_GO, Verdict.NO_GO, Verdict.GO]


@pytest.mark.parametrize("serial", [None, "", "0", "N/A", 0])
def test_a_serial_that_is_none_is_not_a_duplicate(serial):
    gpus = [[{"index": 0, "uuid": f"GPU-{host}", "serial": serial}] for host in "ab"]
    assert judge(record("a", gpus=gpus[0]), record("b", gpus=gpus[1])).verdict is Verdict.GO


def test_one_serial_twice_on_one_host_is_not_the_fleet_s_business():
    gpus = [{"index": n, "uuid": f"GPU-{n}", "serial": "7"} for n in (0, 1)]
    assert judge(record("a", gpus=gpus)).verdict is Verdict.GO


def test_an_instance_under_two_names_is_found():
    report = judge(record("a", instance_id="i-1"), record("b", instance_id="i-1"), record("c", instance_id=""))
    assert report.fleet[0]["check"] == "duplicate_instance" and report.fleet[0]["hosts"] == ["a", "b"]
    assert report.verdict is Verdict.NO_GO


def test_the_same_trouble_is_one_group_over_hosts_and_devices():
    def hot(host, *indices):
        bad = [
            finding("row_remap", "FAIL", remedy="REPLACE", device={"index": n}, measured="yes", expected="no")
            for n in indices
        ]
        return record(host, *bad)

    report = judge(hot("a", 3, 5), hot("b", 3), record("c", finding("swap", "WARN")))
    first, second = report.groups
    assert (first.check, first.status, first.hosts) == ("row_remap", Status.FAIL, ["a", "b"])
    assert first.where == [("a", "GPU 3", "yes"), ("a", "GPU 5", "yes"), ("b", "GPU 3", "yes")]
    assert first.title == CHECKS["row_remap"].title and first.remedy_text == Remedy.REPLACE.row.advice
    assert second.check == "swap"


def test_one_broken_probe_is_one_group_not_one_per_check():
    lost = [finding(check, "UNKNOWN", reason="ended_badly.nvidia_smi", remedy="INVESTIGATE") for check in CHECKS]
    report = judge(record("a", *lost), record("b", *lost))
    (only,) = (item for item in report.groups if not item.explained_by)
    assert only.hosts == ["a", "b"] and {only.check, *only.explains} == set(CHECKS)
    assert len(report.groups) == len(CHECKS), "what it explains is told apart, and told"
    assert len(report.rows[0].findings) == len(CHECKS), "the rows keep every finding"


def test_device_labels():
    assert device_label({"index": 0, "uuid": "GPU-1"}) == "GPU 0"
    assert device_label({"pci": "0000:10:1c.0", "serial": "7"}) == "0000:10:1c.0"
    assert device_label({"name": "", "mount": "/scratch"}) == "/scratch" and device_label({}) == ""


def test_every_fleet_check_explains_itself_and_hides_no_node_check():
    assert not set(FLEET_CHECKS) & set(CHECKS)
    for name, check in FLEET_CHECKS.items():
        assert all((check.title, check.why, check.remedy)) and title_of(name) == check.title
    assert (title_of("from_the_future"), advice_of("from_the_future")) == ("from_the_future", "")


def test_a_killed_run_is_judged_over_what_it_had(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        store.start(a_run("a", "b", "c"))
        store.save("r1", record("a"))
    with SqliteStore(tmp_path / "runs.sqlite", create=False) as store:
        report = judge_run(store, "latest")
    assert [item.verdict for item in report.rows] == [Verdict.GO, Verdict.NO_GO, Verdict.NO_GO]


def test_two_thousand_nodes_take_seconds():
    """The promise is ten thousand in a few seconds; a fifth of it here, with a wide margin for a busy machine."""
    random.seed(7)
    findings = [finding(f"check_{number}") for number in range(45)]

    def measures():
        return {
            f"m{number}": {"unit": "C", "values": {f"GPU {gpu}": random.gauss(40, 2) for gpu in range(8)}}
            for number in range(10)
        }

    records = {f"n{number}": record(f"n{number}", *findings, measures=measures()) for number in range(2000)}
    store = MemoryStore(a_run(*records), records)
    started = time.process_time()
    report = judge_run(store, "r1")
    assert time.process_time() - started < 5
    assert report.verdict is Verdict.GO and len(report.distributions) == 10


def waiver(**changes):
    base = {
        "check": "uniform_driver",
        "scope": "c",
        "reason": "rolling upgrade",
        "owner": "ops",
        "expiry": "2099-01-01",
    }
    return {**base, **changes}


def drivers(**waived):
    return judge(versions("a"), versions("b"), {**versions("c", driver="570.1", cuda="12.8"), **waived})


def test_a_version_that_differs_can_be_waived_and_the_row_says_so():
    report = drivers(fleet_waivers=[waiver()])
    assert report.verdict is Verdict.GO and report.fleet == []
    (set_aside,) = [item for item in row(report, "c").findings if item["check"] == "uniform_driver"]
    assert (
        set_aside["status"] == "SKIP" and "rolling upgrade" in set_aside["message"] and "570.1" in set_aside["message"]
    )


@pytest.mark.parametrize(
    "changes", [{"scope": "b"}, {"check": "uniform_kernel"}, {"check": "duplicate_gpu"}, {"expiry": "soon"}]
)
def test_a_waiver_of_something_else_changes_nothing(changes):
    assert drivers(fleet_waivers=[waiver(**changes)]).verdict is Verdict.NO_GO


def test_an_expired_waiver_fails_the_run_and_says_so():
    report = drivers(fleet_waivers=[waiver(expiry="2020-01-01")])
    assert report.verdict is Verdict.NO_GO
    assert any("expired on 2020-01-01" in item["message"] for item in row(report, "c").findings)


def test_the_waivable_fleet_checks_are_those_that_compare_versions_and_runs():
    from flightline.fleet import growth
    from flightline.fleet.checks import UNIFORM
    from flightline_node.judge.waivers import FLEET_CHECKS

    assert set(FLEET_CHECKS) == {f"uniform_{key}" for key in UNIFORM} | {growth.ECC_CHECK, growth.EFA_CHECK}


def test_nodes_that_failed_in_different_ways_are_not_one_group():
    """Of a node that was not judged the message is all there is."""
    broken = [
        broken_record(ExpectedHost(name), why)
        for name, why in (("a", "status 127"), ("b", "no python3"), ("c", "status 127"))
    ]
    groups = judge(*broken).groups
    assert [(item.hosts, item.message.rpartition(": ")[2]) for item in groups] == [
        (["a", "c"], "status 127"),
        (["b"], "no python3"),
    ]
    silent = [unreachable_record(ExpectedHost(name), f"ssh: connect to host {name}: timed out") for name in ("a", "b")]
    assert [item.hosts for item in judge(*silent).groups] == [["a", "b"]]
