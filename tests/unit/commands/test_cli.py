"""The command line: stable JSON, exit status 0/1/2, errors in one sentence that say what to do."""

import json
import stat
import xml.etree.ElementTree as ElementTree
from functools import partial

import pytest
from click.testing import CliRunner

from flightline import cli
from flightline.store.sqlite import SqliteStore
from flightline_node.adopt import found
from flightline_node.ask.probes import BY_ID
from flightline_node.judge.checks import CHECKS
from tests.unit.made import a_run, finding, flightline, record

HEALTHY = "MemTotal: 2097152000 kB\nMemAvailable: 2000000000 kB\n"
SMALL = "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n"


@pytest.fixture
def call(capsys):
    return partial(flightline, capsys)


@pytest.fixture
def bundle(tmp_path):
    directory = tmp_path / "bundle"
    directory.mkdir()
    (directory / "meminfo.txt").write_text(HEALTHY)
    return directory


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "store" / "runs.sqlite"
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    with SqliteStore(path) as db:
        db.start(a_run("a", "bad", run_id="r1"))
        db.save("r1", record("a"))
        db.save(
            "r1",
            record("bad", finding(status="FAIL", message="too little [red]memory[/red]\x1b[31m", remedy="REPLACE")),
        )
        db.finish("r1", "2026-11-21T10:05:00+00:00", "no-go")
    return path


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_every_command_has_help_with_an_example(call, command):
    status, out, _ = call(*[command] if command else [], "--help")
    assert status == 0 and "Example:" in out and f"flightline {command}".strip() in out.split("Example:")[1]


def test_judge_prints_one_json_object(call, bundle):
    status, out, err = call("judge", bundle, "--instance-type", "p5.48xlarge", "--json")
    answer = json.loads(out)
    assert (status, answer["verdict"], answer["instance_type"], err) == (0, "go", "p5.48xlarge", "")
    assert answer["facts"]["meminfo"]["total_kib"] == 2097152000
    assert {item["check"] for item in answer["findings"]} >= set(CHECKS), "without a level every check answers"
    first = answer["findings"][0]
    assert set(first) == {
        "check", "status", "device", "measured", "expected", "unit", "message", "remedy", "evidence",
        "reason",
    }  # fmt: skip


def test_judge_says_no_go_with_the_reason(call, bundle):
    (bundle / "meminfo.txt").write_text(SMALL)
    status, out, _ = call("judge", bundle, "--instance-type", "p5.48xlarge")
    assert status == 1 and "NO-GO" in out.splitlines()[0]
    assert "FAIL" in out and "memory" in out and "REPLACE" in out


def test_judge_of_an_empty_bundle_is_no_go(call, tmp_path):
    (tmp_path / "empty").mkdir()
    status, out, _ = call("judge", tmp_path / "empty", "--instance-type", "none")
    assert status == 1 and "nothing in the bundle could be judged" in out


def test_judge_takes_expected_values_thresholds_checks_and_level(call, bundle):
    base = ("judge", bundle, "--instance-type", "none", "--json")
    assert call(*base, "--expected", "memory_mib=99999999")[0] == 1
    assert call(*base, "--threshold", "memory.min_available_percent=100")[0] == 0, "a warning does not block"
    only = json.loads(call(*base, "--check", "memory")[1])
    assert {item["check"] for item in only["findings"]} == {"memory"}
    skipped = json.loads(call(*base, "--skip", "memory")[1])
    assert skipped["verdict"] == "no-go"
    quick = json.loads(call(*base, "--level", "quick")[1])
    assert {item["check"] for item in quick["findings"]} == {c.id for c in CHECKS.values() if c.level == "quick"}


def test_judge_takes_the_type_from_the_manifest_and_says_when_there_is_none(call, bundle):
    status, _, err = call("judge", bundle)
    assert status == 2 and "--instance-type is needed" in err
    (bundle / "manifest.json").write_text(json.dumps({"instance_type": "p5.48xlarge", "probes": []}))
    assert json.loads(call("judge", bundle, "--json")[1])["instance_type"] == "p5.48xlarge"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--instance-type", "p99"], "unknown instance type 'p99'; wanted one of the known instance types: "),
        (["--instance-type", "none", "--expected", "gpu_count"], "--expected 'gpu_count', wanted NAME=VALUE"),
        (["--instance-type", "none", "--expected", "gpus=8"],
         "unknown expected value 'gpus'; wanted one of the known expected values: "),
        (["--instance-type", "none", "--threshold", "memory.x=1"],
         "unknown threshold 'memory.x'; wanted one of the "),
        (["--instance-type", "none", "--threshold", "memory.min_total_percent=x"], "saw 'x', wanted a number"),
        (["--instance-type", "none", "--level", "fast"], "quick"),
        (["--instance-type", "none", "--check", "gremlin"], "unknown check or tag 'gremlin'"),
        (["--instance-type", "none", "--nonsense"], "No such option"),
    ],
)  # fmt: skip
def test_misuse_of_judge_ends_with_2_and_says_what_was_wanted(call, bundle, arguments, wanted):
    status, out, err = call("judge", bundle, *arguments)
    assert (status, out) == (2, "") and wanted in err


def test_a_bundle_that_is_not_there_is_misuse(call, tmp_path):
    status, _, err = call("judge", tmp_path / "absent", "--instance-type", "none")
    assert status == 2 and "wanted a directory" in err


def test_collect_then_judge(call, tmp_path):
    out = tmp_path / "here"
    status, printed, progress = call("collect", "--out", out, "--instance-type", "none")
    assert status == 0 and "probes" in printed and "meminfo" in progress
    answer = json.loads(call("judge", out, "--json")[1])
    assert answer["facts"]["meminfo"]["total_kib"] > 0
    status, _, err = call("collect", "--out", out)
    assert status == 2 and "not empty" in err
    assert call("collect", "--out", tmp_path / "x", "--instance-type", "p99")[0] == 2


def test_report_prints_the_run_and_writes_each_format(call, store, tmp_path):
    paths = {kind: tmp_path / "out" / f"report.{kind}" for kind in ("json", "junit", "html")}
    status, out, _ = call("report", "latest", *(part for kind, path in paths.items() for part in (f"--{kind}", path)))
    assert status == 1 and "NO-GO" in out and "too little" in out
    assert json.loads(paths["json"].read_text())["verdict"] == "no-go"
    assert ElementTree.parse(paths["junit"]).getroot().tag == "testsuites"
    assert "<html" in paths["html"].read_text()
    assert all(not stat.S_IMODE(path.stat().st_mode) & 0o111 for path in paths.values())


def test_report_to_standard_output_is_only_that(call, store):
    status, out, _ = call("report", "r1", "--json", "-")
    assert status == 1 and json.loads(out)["verdict"] == "no-go"


def test_report_of_an_unknown_run_or_store(call, store, tmp_path):
    status, _, err = call("report", "nope")
    assert status == 2 and "no run 'nope'; wanted one of the store, newest runs: r1" in err
    status, _, err = call("report", "latest", "--store", tmp_path / "absent.sqlite")
    assert status == 2 and "no run store here" in err


def test_history_of_a_node_an_instance_and_a_gpu(call, store):
    for name in ("bad", "i-bad", "S-bad", "GPU-bad"):
        status, out, _ = call("history", name)
        assert status == 0 and "no-go" in out and "too little" in out
    assert "\x1b[31m" not in call("history", "bad")[1] and "[red]" in call("history", "bad")[1]
    answer = json.loads(call("history", "bad", "--json")[1])
    assert answer[0]["run_id"] == "r1" and answer[0]["why"][0].startswith("memory: too little")
    status, _, err = call("history", "nobody")
    assert status == 2 and "nothing known of 'nobody'; wanted a host, hosts of the last run: a, bad" in err


def test_checks_lists_all_and_explains_one(call):
    status, out, _ = call("checks")
    assert status == 0 and all(check in out for check in CHECKS) and "uniform_driver" in out
    status, out, _ = call("checks", "memory")
    assert status == 0 and all(text in out for text in (CHECKS["memory"].why, "memory.min_total_percent = 90 %"))
    assert "whole fleet" in call("checks", "duplicate_gpu")[1]
    assert {item["id"] for item in json.loads(call("checks", "--json")[1])} == set(CHECKS)
    status, _, err = call("checks", "memroy")
    assert (
        status == 2 and "unknown check 'memroy' (did you mean memory?); wanted one of the " in err and "memory" in err
    )


def test_demo_lists_faults_and_writes_an_inventory(call, tmp_path):
    status, out, _ = call("demo", "--faults")
    name = out.split()[0]
    assert status == 0 and len(out.splitlines()) > 3
    rows = {line.split()[0]: line.split(None, 1)[1] for line in out.splitlines()}
    assert rows["persistence_off"].startswith("go, a warning: persistence_mode  ")
    assert rows["gpu_missing"].startswith("no-go: gpu_count  ")
    assert rows["gpu_slow"].startswith("no-go: gpu_load, from level standard  ")
    assert rows["kernel_drift"].startswith("no-go, drift across the fleet: uniform_kernel  ")
    assert rows["unreachable"].startswith("no-go, no answer: reachable  ")
    status, out, _ = call("demo", "--out", tmp_path / "fleet", "--nodes", 3)
    assert status == 0 and "3 simulated p5.48xlarge" in out and any((tmp_path / "fleet").iterdir())
    assert call("demo")[0] == 2
    status, _, err = call("demo", "--out", tmp_path / "x", "--fault", "gremlin=n1")
    assert status == 2 and "unknown fault 'gremlin'; wanted one of the " in err
    status, _, err = call("demo", "--out", tmp_path / "x", "--fault", name)
    assert status == 2 and "wanted NAME=NODE" in err
    assert call("demo", "--out", tmp_path / "x", "--type", "p99")[0] == 2


def test_an_unknown_command_is_misuse(call):
    assert call("fly")[0] == 2


def test_an_internal_error_is_one_sentence(capsys):
    def broken():
        raise ZeroDivisionError("one over zero")

    assert cli.run(broken) == 2
    assert capsys.readouterr().err.strip() == (
        "flightline: internal error: ZeroDivisionError: one over zero (FLIGHTLINE_DEBUG=1 shows where)"
    )


def test_judge_reports_a_process_on_a_gpu_and_fails_it_only_where_the_node_was_to_be_idle(call, tmp_path):
    # Hand-written after nvidia-smi -q -x of driver 550, cut down to what one check reads.
    (tmp_path / "nvidia-smi.xml").write_text(
        '<?xml version="1.0" ?><nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>1</attached_gpus>'
        '<gpu id="0"><uuid>GPU-1</uuid><processes><process_info><pid>7</pid><type>C</type><process_name>python'
        "</process_name><used_memory>9 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>"
    )
    base = ("judge", tmp_path, "--instance-type", "none", "--check", "gpu_processes", "--json")
    seen: dict[object, list[str]] = {}
    for level in ((), ("--level", "standard")):
        seen[level] = [item["status"] for item in json.loads(call(*base, *level)[1])["findings"]]
    active = next(name for name, probe in BY_ID.items() if probe.level == "standard")
    probes = [{"id": active, "rc": 0}]
    (tmp_path / "manifest.json").write_text(json.dumps({"instance_type": "none", "probes": probes}))
    seen["manifest"] = [item["status"] for item in json.loads(call(*base)[1])["findings"]]
    assert {key: found[0] for key, found in seen.items()} == {
        (): "INFO",
        ("--level", "standard"): "FAIL",
        "manifest": "FAIL",
    }


@pytest.mark.parametrize("limit", ["", " ", ",", ":"])
@pytest.mark.parametrize(
    "words", [["preflight"], ["preflight", "--via", "slurm"], ["preflight", "--via", "ssm"], ["fabric"]]
)
def test_a_limit_that_names_nobody_is_refused_whoever_asks_the_nodes(words, limit):
    """An unset variable: it would be every node."""
    done = CliRunner().invoke(cli.cli, [*words, "--limit", limit])
    assert done.exit_code == 2 and f"saw --limit {limit!r}, which names no host" in done.output


@pytest.mark.parametrize("words", [(), ("-i", "nowhere.yml"), ("--remove",)])
def test_adopt_without_hosts_to_adopt_says_what_to_name(call, monkeypatch, words):
    monkeypatch.setattr(found, "look", lambda: found.Found("", found.PLAIN, ("here",)))
    status, _, err = call("adopt", *words)
    wanted = "saw no inventory nowhere.yml" if "-i" in words else "saw no Slurm here and no -i"
    assert status == 2 and wanted in err and "Traceback" not in err
