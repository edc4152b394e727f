"""The commands and the inventory's variable: what a user types, and what is loaded when nothing is published."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.cloud.awsstore import AwsStore
from flightline.fleet.offenders import judge
from flightline.run.conclude import own_report_dir
from flightline.run.validation import HostVars, validate
from flightline.store.bundles import bundle_file, keep
from flightline.store.sqlite import Past, SqliteStore, default_path
from tests.unit.made import a_run, finding, flightline, record

ROOT = Path(__file__).parents[3]
BAD = finding("row_remap", "FAIL", device={"index": 3}, remedy="REPLACE")
GPUS = [{"index": 3, "serial": "S-bad", "uuid": "GPU-bad", "pci_bus_id": "00000000:86:00.0"}]
DAYS = [f"2026-11-{day:02d}T10:00:00+00:00" for day in range(1, 9)]


@pytest.fixture
def call(capsys):
    def _call(*words):
        status, out, err = flightline(capsys, *words)
        return status, " ".join(out.split()), err

    return _call


def fill(store):
    """A GPU that is bad, comes back with another instance and is bad again; its neighbours are not."""
    good = [{"index": 0, "serial": "S-good"}]
    rows = [
        ("r1", record("gpu-03", BAD, instance_id="i-old", gpus=GPUS + good)),
        ("r2", record("gpu-03", instance_id="i-new", gpus=good)),
        ("r3", record("gpu-07", BAD, instance_id="i-next", gpus=GPUS)),
    ]
    for (run_id, row), day in zip(rows, DAYS, strict=False):
        store.start(a_run(row["host"], run_id=run_id, started_at=day))
        store.save(run_id, row)


@pytest.fixture(params=["sqlite", "aws"])
def where(request, tmp_path):
    if request.param == "sqlite":
        path = tmp_path / "runs.sqlite"
        with SqliteStore(path) as store:
            fill(store)
        return str(path)
    aws = request.getfixturevalue("aws")
    fill(AwsStore(aws.table()))
    return "aws"


OFFENDER = (
    "repeat offender: GPU S-bad was blamed in 2 of 2 runs (row_remap) on i-old (gpu-03), i-next (gpu-07) "
    "(it came back on another node)"
)


@pytest.mark.parametrize("name", ["S-bad", "GPU-bad", "i-old", "i-next", "gpu-07", "gpu-03"])
def test_history_names_a_repeat_offender_across_instances(call, where, name):
    status, out, _ = call("history", name, "--store", where)
    assert status == 0 and OFFENDER in out


def test_history_names_nobody_who_was_blamed_once_or_only_stood_by(call, where):
    for name in ("S-good", "i-new"):
        status, out, _ = call("history", name, "--store", where)
        assert status == 0 and "repeat offender" not in out


def test_history_and_report_of_the_store_in_aws(call, where):
    status, out, _ = call("history", "S-bad", "--store", where, "--json")
    assert status == 0 and [item["run_id"] for item in json.loads(out)] == ["r3", "r1"]
    status, out, _ = call("report", "latest", "--store", where)
    assert status == 1 and "NO-GO" in out and "gpu-07" in out
    assert f"flightline report r3 --store {where}" in out
    status, _, err = call("history", "nobody", "--store", where)
    assert status == 2 and "nothing known of 'nobody'; wanted a host, hosts of the last run: gpu-07" in err


def test_history_names_a_node_that_is_blamed_again_for_what_is_no_gpus(call, tmp_path):
    path = tmp_path / "runs.sqlite"
    cable = finding("efa_errors", "FAIL", device={"name": "rdmap79s0"})
    with SqliteStore(path) as store:
        for run_id, day, found in zip(("r1", "r2", "r3"), DAYS, (cable, finding(), cable), strict=False):
            store.start(a_run("gpu-03", run_id=run_id, started_at=day))
            store.save(run_id, record("gpu-03", found))
    for name in ("i-gpu-03", "gpu-03"):
        _, out, _ = call("history", name, "--store", path)
        assert f"repeat offender: node {name} was blamed in 2 of 3 runs (efa_errors) on i-gpu-03 (gpu-03)" in out
        assert "GPU S-gpu-03 was" not in out
    _, out, _ = call("history", "S-gpu-03", "--store", path)
    assert "repeat offender" not in out, "the GPU was there, and is not to blame"


@pytest.mark.parametrize(
    ("device", "blamed"),
    [
        ({"serial": "S-1"}, True),
        ({"uuid": "GPU-1"}, True),
        ({"pci": "0000:86:00.0"}, True),
        ({"index": 3}, True),
        ({"index": 4}, False),
        ({"serial": "S-2", "index": 3}, False),
        ({"name": "rdmap79s0"}, False),
        ({}, False),
    ],
)
def test_a_gpu_is_blamed_by_the_surest_name(device, blamed):
    gpu = {"index": 3, "serial": "S-1", "uuid": "GPU-1", "pci_bus_id": "00000000:86:00.0"}
    row = record("a", finding("xid", "FAIL", device=device), gpus=[gpu])
    past = [Past(f"r{n}", DAYS[n], "a", "i-a", "no-go", "FAIL", row) for n in (1, 0)]
    found = judge("S-1", past)
    assert bool(found) is blamed
    assert judge("S-1", past[:1]) is None, "once is no repetition"
    if found:
        assert not found.moved and found.places == (("i-a", "a"),) and found.checks == ("xid",)


def test_both_gpus_of_a_board_that_share_its_serial_are_blamed():
    gpus = [{"index": index, "serial": "S-board", "uuid": f"GPU-{index}"} for index in (0, 1)]
    row = record("a", finding("xid", "FAIL", device={"index": 1}), gpus=gpus)
    past = [Past(f"r{n}", DAYS[n], "a", "i-a", "no-go", "FAIL", row) for n in (1, 0)]
    found = judge("S-board", past)
    assert found and found.blamed == 2


def test_report_shows_the_files_that_the_run_left(call, tmp_path, monkeypatch):
    monkeypatch.delenv("FLIGHTLINE_REPORT_DIR", raising=False)
    path = tmp_path / "runs.sqlite"
    with SqliteStore(path) as store:
        fill(store)
    directory = own_report_dir(path, "r3")
    directory.mkdir(parents=True)
    (directory / "report.html").write_text("<html>")
    _, out, _ = call("report", "latest", "--store", path)
    assert str(directory / "report.html") in out and "report.json" not in out
    _, out, _ = call("report", "r1", "--store", path)
    assert "report.html" not in out


def test_publish_sends_a_run_and_then_has_nothing_left(call, aws, tmp_path, monkeypatch):
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    with SqliteStore(path) as store:
        fill(store)
    status, out, _ = call("publish", "latest", "--publish", f"table={aws.table()}")
    assert status == 0 and "run r3 published: " in out and ("RUN#r3", "RECORD#gpu-07") in aws.items()
    assert call("publish")[:2] == call("publish", "--list")[:2] == (0, "nothing waits to be published")
    monkeypatch.setenv("FLIGHTLINE_PUBLISH", "table=not-there")
    status, _, err = call("publish", "r1")
    assert status == 1 and "not there (ResourceNotFoundException)" in err
    status, out, _ = call("publish", "--list")
    assert status == 0 and out.startswith("r1 waiting") and "ResourceNotFoundException" in out


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["publish", "latest"], "nowhere to publish to"),
        (["publish", "latest", "--publish", "tabel=x"], "no such setting: saw 'tabel', wanted one of table"),
        (["publish", "--store", "aws"], "kept in a file first"),
        (["preflight", "--store", "aws:x"], "kept in a file first"),
        (["preflight", "--publish", "slack=https://hooks.slack.com/services/very-secret"],
         "the secret itself, which does not belong here"),
    ],
)  # fmt: skip
def test_misuse_ends_with_2(call, monkeypatch, tmp_path, arguments, wanted):
    monkeypatch.delenv("FLIGHTLINE_PUBLISH", raising=False)
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    status, _, err = call(*arguments)
    assert status == 2 and wanted in err and "very-secret" not in err


def test_the_local_file_stays_the_first_store(monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", "aws:table")
    assert default_path().name == "runs.sqlite"


def check(**hosts):
    return validate({name: HostVars({"instance_type": "p5.48xlarge", **given}) for name, given in hosts.items()})


def test_the_inventory_says_where_to():
    wanted = {"table": "abc", "bucket": "my-bundles"}
    checked = check(a={"flightline_publish": wanted}, b={"flightline_publish": wanted})
    assert checked.mistakes == {} and checked.publish["table"] == "abc" and checked.publish["bucket"] == "my-bundles"
    assert check(a={}).publish == {} and check(a={"flightline_publish": False}).publish == {}


def test_mistakes_of_the_inventory_are_told_before_any_node_is_touched():
    checked = check(a={"flightline_publish": {"topic": "x"}}, b={"flightline_publish": {"table": "abc"}})
    texts = list(checked.mistakes)
    assert any("flightline_publish.topic: saw 'x', wanted an SNS topic's ARN" in text for text in texts)
    differs = next(text for text in texts if "not as on the first host" in text)
    assert checked.mistakes[differs] == ["b"]


def test_bundles_stay_in_their_directory_and_damage_is_told(tmp_path):
    store = tmp_path / "runs.sqlite"
    assert keep(store, "r1", "../../etc/x", "aGVsbG8=") == ""
    assert bundle_file(store, "r1", "../../etc/x").read_bytes() == b"hello"
    assert bundle_file(store, "r1", "../../etc/x").parent == tmp_path / "bundles" / "r1"
    assert "could not be kept" in keep(store, "r1", "a", "not base64!")


def test_nothing_of_aws_is_loaded_unless_something_is_published():
    """boto3 takes longer to load than the demo fleet takes to judge."""
    script = "from flightline import cli; from flightline.run import conclude, preflight, validation; from flightline.commands import preflight, report, history"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{script}\nprint([m for m in sys.modules if m.startswith(('boto', 'flightline.cloud'))])"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
