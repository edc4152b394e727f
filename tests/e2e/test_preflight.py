"""A preflight through Ansible on this machine: rows, verdict, exit status, and what survives an accident.

The hosts are this machine under several names, judged for little (instance type none, one check): these tests
are about the plumbing.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest
import yaml

from flightline.store.sqlite import SqliteStore
from tests.beds import BIN, ROOT, answered, begun, place_env, processes, program, ran, until

PLAYBOOK = ("ansible-playbook", "playbooks/preflight.yml", "-i")
COMMAND = ("flightline", "preflight", "-i")
BOTH = pytest.mark.parametrize("command", [PLAYBOOK, COMMAND], ids=["ansible-playbook", "flightline"])
DEAD = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": ""}
SLEEPER = "#!/bin/sh\nexec sleep 60\n"


class Bench:
    """A place with an inventory, a store and the means to run."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        self.store = tmp_path / "store" / "runs.sqlite"
        self.inventory = tmp_path / "hosts.yml"
        self.env = place_env(self.store, tmp_path)

    def write(self, hosts, **variables):
        base: dict = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        base |= {"instance_type": "none", "flightline_checks": ["memory"], **variables}
        self.inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": base}}, sort_keys=False))

    def start(self, command, *arguments, **env):
        return begun(*command, self.inventory, *arguments, env={**self.env, **env})

    def run(self, command, *arguments, **env):
        process = self.start(command, *arguments, **env)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def report(self, run="latest"):
        done = ran(BIN / "flightline", "report", run, "--json", "-", env=self.env)
        return done.returncode, json.loads(done.stdout)

    def slow_tool(self):
        """A directory whose df never ends within the deadline's first seconds."""
        tools = self.path / "tools"
        tools.mkdir()
        program(tools / "df", SLEEPER)
        return [str(tools)]

    def wait_for_rows(self, wanted, process):
        until(lambda: answered(self.store) >= wanted or process.poll() is not None, 180, every_s=0.05)
        if answered(self.store) < wanted:
            pytest.fail(f"no {wanted} rows in time: {process.communicate(timeout=5)[0]}")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def rows(report):
    return {row["host"]: row for row in report["nodes"]}


@BOTH
def test_a_good_fleet_is_go_with_status_0(bench, command):
    bench.write({"b": None, "a": {"instance_id": "i-1"}})
    status, out = bench.run(command)
    assert status == 0, out
    assert "GO  2 of 2 nodes go" in out and "NO-GO" not in out and "no-go" not in out.partition("GO  2 of 2")[0]
    assert command is PLAYBOOK or ("] a go" in out and "] b go" in out)
    assert out.rindex("GO  2 of 2") > out.find("PLAY RECAP"), "the summary comes last"
    status, report = bench.report()
    assert status == 0 and report["verdict"] == "go" and [row["host"] for row in report["nodes"]] == ["b", "a"]
    assert rows(report)["a"]["instance_id"] == "i-1" and rows(report)["a"]["cells"]["memory"] == "PASS"
    directory = next((bench.store.parent / "reports").iterdir())
    wanted = {"report.json", "junit.xml", "report.html", "no-go.txt", "go.mpi", "go.slurm", "go.ini"}
    assert {path.name for path in directory.iterdir()} == wanted


def test_unreachable_and_broken_hosts_have_rows_and_do_not_stop_the_others(bench):
    bench.write({"a": None, "dead": DEAD, "odd": {"ansible_python_interpreter": "/nonexistent/python"}})
    status, out = bench.run(PLAYBOOK)
    assert status == 1, out
    _, report = bench.report()
    found = rows(report)
    assert (found["a"]["verdict"], found["dead"]["status"], found["odd"]["status"]) == ("go", "UNREACHABLE", "UNKNOWN")
    assert "Connection refused" in found["dead"]["findings"][0]["message"]
    assert found["odd"]["findings"][0]["check"] == "node"
    assert "NO-GO  1 of 3 nodes go" in out and "Connection refused" in out


def test_all_unreachable_is_no_go_with_a_report(bench):
    bench.write({"x": DEAD, "y": DEAD})
    status, out = bench.run(PLAYBOOK)
    assert status == 1 and "NO-GO  0 of 2 nodes go" in out, out
    assert {row["status"] for row in bench.report()[1]["nodes"]} == {"UNREACHABLE"}


def test_limit_and_check_mode(bench):
    bench.write({"a": None, "b": None, "dead": DEAD})
    status, out = bench.run(PLAYBOOK, "--limit", "a", "--check")
    assert status == 0 and "1 of 1 node go" in out, out
    assert list(rows(bench.report()[1])) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], "saw no host in"),
        (["-i", "/no/such.yml"], "saw no inventory /no/such.yml"),
        (["--limit", ""], "saw --limit ''"),
        (["--tags", "foo"], "saw no host in"),
    ],
    ids=["empty", "missing", "no limit", "tags"],
)
def test_from_elsewhere_a_start_without_a_verdict_ends_with_2(bench, tmp_path, arguments, wanted):
    """The whole table is `make hostile`."""
    bench.write({})
    command = [BIN / "ansible-playbook", ROOT / "playbooks/preflight.yml", "-i", bench.inventory]
    done = ran(*command, *arguments, cwd=tmp_path, env=bench.env)
    assert done.returncode == 2 and wanted in done.stderr, done.stdout + done.stderr


BAD = {"a": {"instance_type": "p99.metal"}, "b": {"flightline_thresholds": {"memory.nope": 1}}, "c": None}


@BOTH
def test_a_bad_inventory_stops_before_any_node_with_every_mistake_and_status_2(bench, command):
    bench.write(BAD)
    status, out = bench.run(command)
    assert status == 2, out
    assert "unknown instance type 'p99.metal'" in out and "unknown threshold 'memory.nope'" in out
    assert not bench.store.exists(), "no run was opened"


def test_validate_alone_checks_the_inventory(bench):
    bench.write({"a": None})
    assert bench.run(("ansible-playbook", "playbooks/validate.yml", "-i"))[0] == 0
    bench.write(BAD)
    status, out = bench.run(("ansible-playbook", "playbooks/validate.yml", "-i"))
    assert status == 2 and "p99.metal" in out and not bench.store.exists()


def test_other_callbacks_alone_do_not_switch_ours_off(bench):
    """Nothing would be kept, and ansible-playbook would end with 0 whatever the nodes are."""
    bench.write({"a": None})
    status, out = bench.run(PLAYBOOK, ANSIBLE_CALLBACKS_ENABLED="ansible.posix.timer")
    assert status == 0 and "GO  1 of 1 node go" in out, out


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [(["--limit", "nobody"], "nobody"), (["--level", "fast"], "fast"), (["-i", "/nonexistent/hosts"], "nonexistent")],
)
def test_a_preflight_that_cannot_run_ends_with_2_and_says_why(bench, arguments, wanted):
    bench.write({"a": None})
    status, out = bench.run(COMMAND, *arguments)
    assert status == 2 and wanted in out and "Traceback" not in out, out


def test_a_part_of_the_limit_that_matches_nothing_is_no_verdict_about_the_rest(bench):
    bench.write({"a": None, "b": None})
    status, out = bench.run(PLAYBOOK, "--limit", "a,nosuch")
    assert status == 2 and "--limit 'nosuch': no such host or group in the inventory" in out, out
    assert not bench.store.exists(), "no run was opened"
    status, out = bench.run(COMMAND, "--limit", "a:!nosuch")
    assert status == 0 and "GO  1 of 1 node go" in out, out


def test_a_date_without_quotes_reaches_the_node(bench):
    """YAML makes a date of it, which is no JSON; docs/preflight.md writes it so. First run: sent; second: kept there."""
    waiver = {"check": "memory", "scope": "*", "reason": "x", "owner": "ops", "expiry": date(2099, 1, 1)}
    bench.write({"a": None}, flightline_waivers=[waiver])
    for _ in range(2):
        status, out = bench.run(PLAYBOOK, HOME=str(bench.path))
        assert status == 0 and "GO  1 of 1 node go" in out, out


def test_a_reader_that_leaves_changes_no_verdict_and_files_go_where_they_are_told(bench):
    """`flightline preflight | head -1`: the run goes on to its end, and its exit status is the verdict's."""
    bench.write({"a": None, "dead": DEAD})
    process = bench.start(COMMAND, "--json", bench.path / "deep" / "r.json", "--report-dir", bench.path / "here")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 1
    assert {host: row["verdict"] for host, row in rows(bench.report()[1]).items()} == {"a": "go", "dead": "no-go"}
    assert json.loads((bench.path / "deep" / "r.json").read_text())["verdict"] == "no-go"
    assert (bench.path / "here" / "report.html").is_file()


def test_other_playbooks_and_ad_hoc_commands_are_left_alone(bench):
    bench.write({"a": None, "dead": DEAD})
    status, out = bench.run(("ansible", "all", "-m", "ping", "-i"))
    assert status == 4 and "GO" not in out and not bench.store.parent.exists()
    play = bench.path / "other.yml"
    play.write_text("- hosts: a\n  gather_facts: false\n  tasks:\n    - ansible.builtin.command: 'false'\n")
    status, out = bench.run(("ansible-playbook", str(play), "-i"))
    assert status == 2 and "GO" not in out and not bench.store.parent.exists()


def test_a_killed_playbook_leaves_what_was_measured(bench):
    bench.write({"a": None, "b": None, "slow": {"flightline_tool_path": bench.slow_tool()}})
    process = bench.start(PLAYBOOK)
    bench.wait_for_rows(2, process)
    process.kill()
    process.communicate()
    status, report = bench.report()
    assert status == 1
    assert {host: row["status"] for host, row in rows(report).items()} == {"a": "PASS", "b": "PASS", "slow": "UNKNOWN"}
    assert "the run ended before this host answered" in rows(report)["slow"]["findings"][0]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["ctrl-c", "sigterm", "hang-up"])
def test_an_interrupted_run_ends_its_children_and_reports_what_was_measured(bench, number):
    bench.write({"a": None, "slow": {"flightline_tool_path": bench.slow_tool()}})
    process = bench.start(COMMAND)
    bench.wait_for_rows(1, process)
    time.sleep(1)
    process.send_signal(number)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and "NO-GO  1 of 2 nodes go" in out and "Traceback" not in out, out
    assert "the run ended before this host answered" in " ".join(out.split())
    assert processes(str(bench.path)) == []


@pytest.mark.slow
def test_a_locked_store_costs_no_result(bench):
    """Held to the end: the verdict counts every row. Released: the rows are merged by the next reader."""
    bench.write({"a": None, "dead": DEAD})
    SqliteStore(bench.store).close()
    holder = sqlite3.connect(bench.store, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    status, out = bench.run(PLAYBOOK)
    assert status == 1 and "NO-GO  1 of 2 nodes go" in out, out
    assert "locked" in out and "Traceback" not in out
    holder.execute("ROLLBACK")
    holder.close()
    _, report = bench.report()
    assert {host: row["verdict"] for host, row in rows(report).items()} == {"a": "go", "dead": "no-go"}


def test_the_gate_lets_only_good_hosts_through(bench):
    bench.write({"a": None, "dead": DEAD})
    assert bench.run(PLAYBOOK)[0] == 1
    play = bench.path / "gate.yml"
    play.write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - flightline_verdict_info: {hosts: [a], max_age_hours: 1}\n      run_once: true\n"
        "    - flightline_verdict_info: {fail_on_no_go: false}\n      run_once: true\n      register: answer\n"
        "    - ansible.builtin.assert: {that: [answer.verdict == 'no-go', \"answer.go == ['a']\", \"'dead' in answer.no_go\"]}\n"
        "      run_once: true\n"
        "    - flightline_verdict:  # its former name\n      run_once: true\n"
    )
    env = {"ANSIBLE_ACTION_PLUGINS": str(ROOT / "plugins/action"), "ANSIBLE_LIBRARY": str(ROOT / "library")}
    status, out = bench.run(("ansible-playbook", str(play), "-i"), **env)
    assert status == 2 and "dead: reachable: no connection" in out, out
    assert out.count("ok: [a]") == 3, out


def test_playbooks_and_plugins_are_documented_and_lint(bench):
    for playbook in ("preflight.yml", "validate.yml"):
        done = ran(BIN / "ansible-playbook", "--syntax-check", f"playbooks/{playbook}", cwd=ROOT, env=bench.env)
        assert done.returncode == 0, done.stderr
    modules = ["flightline_node", "flightline_validate", "flightline_verdict_info"]
    done = ran(BIN / "ansible-doc", "--json", *modules, cwd=ROOT, env=bench.env)
    described = json.loads(done.stdout)
    assert set(described) == set(modules)
    assert all(item["doc"]["description"] and item["examples"] for item in described.values())


def test_after_a_go_the_next_playbook_runs_and_after_a_no_go_it_does_not(bench):
    after = bench.path / "after.yml"
    after.write_text("- hosts: a\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: trained}\n")
    both = ("ansible-playbook", "playbooks/preflight.yml", str(after), "-i")
    bench.write({"a": None})
    status, out = bench.run(both)
    assert status == 0 and "trained" in out, out
    bench.write({"a": None, "dead": DEAD})
    status, out = bench.run(both)
    assert status == 1 and "trained" not in out, out


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_costs_the_files_not_the_verdict(bench):
    bench.store.parent.mkdir()
    place = str(bench.store.parent)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode:
        pytest.skip("this container may not mount")
    try:
        (bench.store.parent / "filler").write_bytes(b"x" * 40_000)
        bench.write({"a": None, "dead": DEAD})
        for command in (PLAYBOOK, COMMAND):
            status, out = bench.run(command)
            assert status == 1 and "NO-GO  1 of 2 nodes go" in out and "Traceback" not in out, out
            text = " ".join(out.split())
            assert "free space" in text and "report could not be written" in text and "only in this summary" in text
    finally:
        subprocess.run(["umount", place], check=True)
