"""No host's failure becomes that of another; the summary names who is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.configure.site_summary import HostTrouble, SiteRun
from tools.roledocs import ROLES

from .render import tasks

NAMES = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
ON_THE_CONTROL_NODE = ("ansible.builtin.set_fact", "ansible.builtin.assert", "ansible.builtin.debug")
ROOT = ROLES.parent


def told(task):
    return f"{task.get('name')}: {[key for key in task if key in ('run_once', 'delegate_to', 'ignore_unreachable', 'ignore_errors')]}"


@pytest.mark.parametrize("role", NAMES)
def test_no_task_makes_one_node_speak_for_all(role):
    """run_once and delegate_to make one host's failure that of every host (Ansible: run_once implies any_errors_fatal)."""
    for task in tasks(role):
        local = task.get("delegate_to") == "localhost" or any(name in task for name in ON_THE_CONTROL_NODE)
        forgiven = task.get("ignore_unreachable") and task.get("ignore_errors")
        if task.get("run_once"):
            assert local or forgiven, told(task)
        if "delegate_to" in task:
            assert local or (forgiven and task.get("run_once")), told(task)


@pytest.mark.parametrize("role", NAMES)
def test_a_precondition_speaks_only_when_its_role_runs(role):
    assert [task["name"] for task in tasks(role) if "always" in (task.get("tags") or [])] == []


SITE = """\
- name: Learn
  hosts: all
  gather_facts: false
  tasks:
    - name: Ask the node
      ansible.builtin.ping:

- name: Configure
  hosts: all
  gather_facts: false
  max_fail_percentage: 100
  tasks:
    - name: Fail on one
      ansible.builtin.fail:
        msg: "saw: a broken disk; wanted: none"
      when: inventory_hostname in broken

    - name: Recover on one
      block:
        - name: Try
          ansible.builtin.command: "false"
          when: inventory_hostname == 'd'
      rescue:
        - name: Go on
          ansible.builtin.ping:

    - name: Refuse twice on one
      when: inventory_hostname == 'e'
      block: [{name: One role, ansible.builtin.fail: {msg: "saw: one; wanted: none"}}]
      rescue: [{ansible.builtin.set_fact: {flightline_refused: [one]}}]

    - name: Another role refuses on the same
      when: inventory_hostname == 'e'
      block: [{name: Another role, ansible.builtin.fail: {msg: "saw: another; wanted: none"}}]
      rescue: [{ansible.builtin.set_fact: {flightline_refused: [one, another]}}]

    - name: Refuse what roles refused
      ansible.builtin.fail: {msg: "not configured: {{ flightline_refused }}"}
      when: flightline_refused is defined
"""
INVENTORY = """\
all:
  vars: {ansible_connection: local, ansible_python_interpreter: "{{ ansible_playbook_python }}", broken: [c]}
  hosts:
    a: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1, ansible_ssh_common_args: "-o ControlPath=none"}
    b: {}
    c: {}
    d: {}
    e: {}
"""


def run(tmp_path, *more):
    for name, text in (("site.yml", SITE), ("hosts.yml", INVENTORY)):
        (tmp_path / name).write_text(text)
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(tmp_path / "hosts.yml")]
    done = subprocess.run(
        [*argv, str(tmp_path / "site.yml"), *more],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout[done.stdout.find("\nCONFIGURE") :]


def test_the_summary_names_who_failed_and_who_was_lost(tmp_path):
    status, said = run(tmp_path)
    assert status != 0
    assert "2 of 5 hosts configured\n  b, d\n" in said
    assert "failed       c  at Fail on one: saw: a broken disk; wanted: none" in said
    assert "unreachable  a  at Ask the node: " in said
    assert "failed       e  at One role: saw: one; wanted: none\nfailed       e  at Another role: saw: another" in said
    assert "not configured" not in said
    assert "do: mend or replace these" in said


def test_the_summary_comes_when_no_host_is_left(tmp_path):
    status, said = run(tmp_path, "--limit", "a")
    assert status == 4
    assert "0 of 1 hosts configured\nunreachable  a" in said


def test_a_run_without_trouble_says_so():
    said = "\n".join(SiteRun(["b", "d"]).lines())
    assert "2 of 2 hosts configured\n  b, d" in said and "do:" not in said


def test_every_host_stands_in_the_summary_once():
    names = [f"gpu-{number:03d}" for number in range(20)]
    failed = {"gpu-003": HostTrouble("t", "x" * 900), "gpu-004": HostTrouble("t")}
    site = SiteRun(names, failed, lost={"gpu-004": HostTrouble("u")})
    text = "\n".join(site.lines())
    assert all(text.count(name) == 1 for name in names)
    assert max(map(len, site.lines())) < 500


def test_a_run_over_no_host_says_so():
    """It ended with nothing but Ansible's empty recap: a cluster scaled to zero, or a filter that finds nobody."""
    text = " ".join(SiteRun().lines())
    assert text.startswith("nothing was configured saw no host")
    assert "gpuNodeCount 0" in text
