"""User data: what it may hold, and that the boot script lets a node in only on a go."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flightline_node import selfcheck
from flightline_node.inputs import defaults
from flightline_node.judge.checks import CHECKS
from flightline_node.settings import resolve_settings
from infra.planning.user_data import CONFIGURED_LATER, MAX_BYTES, BootPlan, BootRoles, boot_plan, render, template
from tests.infra.stacks import STACKS, planned_names, settings

SHA = "0" * 64
PLAN = BootPlan(
    region="us-east-1",
    instance_type="p5.48xlarge",
    level="quick",
    time_limit_minutes=20,
    package_url=f"s3://train-results/artifacts/flightline-node-{SHA}.pyz",
    package_sha256=SHA,
    group="train-gpu",
    launch_hook="train-boot-preflight",
    results_url="s3://train-results/bundles",
)


def files(text):
    """path -> file of a cloud-config."""
    return {item["path"]: item for item in yaml.safe_load(text)["write_files"]}


def judged_by(text):
    """The settings that the node judges itself by."""
    return json.loads(files(text)["/etc/flightline/node.json"]["content"])


def environment(text):
    """The boot environment as a shell reads it."""
    lines = files(text)["/etc/flightline/boot.env"]["content"].splitlines()
    return dict(shlex.split(line)[0].split("=", 1) for line in lines)


@pytest.mark.parametrize("stack", STACKS)
def test_user_data_of_an_example_stack(stack):
    names = planned_names(stack)
    text = render(boot_plan(settings(stack), names, SHA))
    assert text.startswith("#cloud-config\n")
    assert len(text.encode()) <= MAX_BYTES
    roles = render(boot_plan(settings(stack), names, SHA, BootRoles(SHA, SHA)))
    assert len(roles.encode()) <= MAX_BYTES
    env = environment(text)
    assert (env["GROUP"], env["HOOK"]) == (names.node_group, names.launch_hook)
    assert env["PACKAGE_URL"] == f"s3://{names.results_bucket}/{names.package_key(SHA)}"
    assert env["PACKAGE_SHA256"] == SHA


def test_the_script_reads_every_value_that_it_is_given():
    script = template("flightline-boot")
    assert [name for name in environment(render(PLAN)) if f"${name}" not in script and f"${{{name}" not in script] == []


def test_the_node_is_judged_by_the_interfaces_it_gets():
    """With EFA off, the type's own count of 32 would condemn every node."""
    own = render(boot_plan(settings("p5-reservation"), planned_names("p5-reservation"), SHA))
    assert judged_by(own)["expected"] == {"efa_count": 32}
    off = settings("p5-reservation", efa="off", fsxEfa=False)
    assert judged_by(render(boot_plan(off, planned_names("p5-reservation"), SHA)))["expected"] == {"efa_count": 0}


def test_the_settings_are_what_the_package_takes(tmp_path):
    path = tmp_path / "node.json"
    path.write_text(files(render(PLAN))["/etc/flightline/node.json"]["content"])
    expected, judged = resolve_settings({**defaults(), **selfcheck.load(path)})
    assert expected.instance_type == "p5.48xlarge"
    assert [check.id for check in judged.skipped] == [name for name in CHECKS if name in CONFIGURED_LATER]


def test_a_verdict_comes_before_the_hook_gives_up():
    assert 0 < int(environment(render(PLAN))["LIMIT_S"]) <= PLAN.time_limit_minutes * 60 - 60


def test_the_unit_starts_on_every_boot_and_does_not_hold_cloud_init():
    text = render(PLAN)
    commands = yaml.safe_load(text)["runcmd"]
    assert ["systemctl", "enable", "flightline-boot.service"] in commands
    assert ["systemctl", "start", "--no-block", "flightline-boot.service"] in commands
    unit = files(text)["/etc/systemd/system/flightline-boot.service"]
    assert "ExecStart=/usr/local/sbin/flightline-boot\n" in unit["content"]
    assert "cloud-final" not in unit["content"].replace("# Not after cloud-final.service", "")
    assert files(text)["/usr/local/sbin/flightline-boot"]["permissions"] == "0755"


def test_what_is_judged_later_are_checks():
    assert set(CONFIGURED_LATER) <= set(CHECKS)
    assert not [name for name in CONFIGURED_LATER if {"gpu", "nvlink", "pcie"} & set(CHECKS[name].tags)]


@given(st.sampled_from([item.name for item in fields(BootPlan) if item.type == "str"]), st.text(max_size=60))
def test_no_value_can_run_on_the_node(name, value):
    """A value is refused, or a shell reads back exactly that value."""
    changed = {name: value, **({"launch_hook": "hook"} if name == "group" and value else {})}
    try:
        text = render(replace(PLAN, **changed))
    except ValueError as error:
        assert name in str(error)
        return
    assert value in environment(text).values()
    assert name != "instance_type" or judged_by(text)["instance_type"] == value


def test_too_large_user_data_is_refused():
    with pytest.raises(ValueError, match=f"EC2 takes {MAX_BYTES}"):
        render(replace(PLAN, skip=tuple(f"check_{index}" for index in range(2000))))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time_limit_minutes": 3}, "more than 3"),
        ({"launch_hook": ""}, "both or neither"),
        ({"skip": ("a b",)}, "ids or tags"),
        ({"level": "deep"}, "level"),
        ({"package_sha256": "abc"}, "package_sha256"),
        ({"roles_url": "s3://bucket/roles.tar.gz"}, "all or none"),
    ],
)
def test_a_malformed_plan_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        render(replace(PLAN, **changes))


# The boot script, run for real with stand-ins for curl, aws and the node package. No AWS is involved.

CURL = """#!/bin/sh
echo "curl $*" >>"$CALLS"
case "$*" in
    *api/token*) echo token ;;
    *meta-data/instance-type*) echo "${TYPE:-}"; [ -n "${TYPE:-}" ] ;;
    *instance-id*) [ -z "${NO_METADATA:-}" ] || exit 7; echo i-0123456789abcdef0 ;;
esac
"""
AWS = """#!/bin/sh
echo "aws $*" >>"$CALLS"
case "$*" in
    *autoscaling*) [ -z "${NO_GROUP:-}" ] ;;
    "s3 cp --only-show-errors s3://"*) [ -z "${NO_PACKAGE:-}" ] || exit 1; cp "$SERVED" "$5" ;;
esac
"""
PACKAGE = """#!/usr/bin/env python3
import os, pathlib, sys
arguments = sys.argv[1:]
pathlib.Path(os.environ["CALLS"]).open("a").write("package " + " ".join(arguments) + "\\n")
if "--bundle" in arguments:
    pathlib.Path(arguments[arguments.index("--bundle") + 1]).mkdir()
pathlib.Path(arguments[arguments.index("--record") + 1]).write_text("{}")
sys.exit(int(os.environ.get("PACKAGE_EXITS", "0")))
"""


@dataclass
class Machine:
    """A directory that stands for a node."""

    root: Path
    plan: BootPlan

    def boot(self, **env: str) -> tuple[int, list[str]]:
        """Exit status and calls of one boot."""
        calls = self.root / "calls"
        calls.write_text("")
        text = render(self.plan)
        for name in ("boot.env", "node.json"):
            (self.root / name).write_text(files(text)[f"/etc/flightline/{name}"]["content"])
        script = self.root / "flightline-boot"
        script.write_text(files(text)["/usr/local/sbin/flightline-boot"]["content"])
        done = subprocess.run(
            ["/bin/sh", str(script)],
            env={
                "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                "CALLS": str(calls),
                "SERVED": str(self.root / "served.pyz"),
                "FLIGHTLINE_BOOT_ENV": str(self.root / "boot.env"),
                "FLIGHTLINE_SETTINGS": str(self.root / "node.json"),
                "FLIGHTLINE_STATE": str(self.root / "state"),
                "FLIGHTLINE_LOG": str(self.root / "log"),
                "FLIGHTLINE_PAUSE_S": "0",
                **env,
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert "not found" not in done.stderr, done.stderr
        return done.returncode, calls.read_text().splitlines()


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, content in (("curl", CURL), ("aws", AWS)):
        tool = tmp_path / "bin" / name
        tool.write_text(content)
        tool.chmod(0o755)
    (tmp_path / "served.pyz").write_text(PACKAGE)
    sha = hashlib.sha256(PACKAGE.encode()).hexdigest()
    return Machine(tmp_path, replace(PLAN, package_sha256=sha, efa_count=32))


def told(calls):
    """What the group was told, in order."""
    return [call.split()[-1] for call in calls if "complete-lifecycle-action" in call]


def test_a_go_lets_the_node_in(machine):
    status, calls = machine.boot()
    assert (status, told(calls)) == (0, ["CONTINUE"])
    (asked,) = [call for call in calls if call.startswith("package ")]
    for argument in (
        "--instance-type p5.48xlarge",
        "--instance-id i-0123456789abcdef0",
        "--level quick",
        "check --settings",
        "/log/records.jsonl",
    ):
        assert argument in asked
    (action,) = [call for call in calls if "complete-lifecycle-action" in call]
    assert "--auto-scaling-group-name train-gpu --lifecycle-hook-name train-boot-preflight" in action
    assert any("record.json" in call for call in calls)
    assert not any("--recursive" in call for call in calls)


@pytest.mark.parametrize(
    ("kind", "judged_as"),
    [("g6.48xlarge", "g6.48xlarge"), ("p5.48xlarge", "p5.48xlarge"), ("g6.4xlarge", "p5.48xlarge")],
    ids=["another of the list", "the first", "not asked for"],
)
def test_of_several_types_a_node_is_judged_as_the_one_it_is(machine, kind, judged_as):
    machine.plan = replace(machine.plan, other_types="g6e.48xlarge,g6.48xlarge")
    status, calls = machine.boot(TYPE=kind)
    (asked,) = [call for call in calls if call.startswith("package ")]
    assert status == 0 and f"--instance-type {judged_as} " in asked


def test_a_node_that_cannot_say_its_type_is_not_judged_as_another(machine):
    machine.plan = replace(machine.plan, other_types="g6.48xlarge")
    status, calls = machine.boot()
    assert status != 0 and told(calls) == [] and not any(call.startswith("package ") for call in calls)


@pytest.mark.parametrize("status", ["1", "137"])
def test_anything_but_a_go_keeps_the_node_out_and_its_outputs(machine, status):
    code, calls = machine.boot(PACKAGE_EXITS=status)
    assert (code, told(calls)) == (int(status), ["ABANDON"])
    assert any("--recursive" in call and call.endswith("/bundle") for call in calls)


def test_a_package_with_another_checksum_is_not_run(machine):
    machine.plan = replace(machine.plan, package_sha256=SHA)
    code, calls = machine.boot()
    assert (code, told(calls)) == (2, ["ABANDON"])
    assert not [call for call in calls if call.startswith("package ")]
    assert not list((machine.root / "state").glob("*.pyz"))


def test_a_package_that_changed_on_disk_is_fetched_again(machine):
    machine.boot()
    (kept,) = (machine.root / "state").glob("*.pyz")
    kept.write_text("import sys; sys.exit(0)")
    _, calls = machine.boot()
    assert [call for call in calls if call.startswith("aws s3 cp --only-show-errors s3://")]
    assert kept.read_text() == PACKAGE


def test_without_a_package_the_node_stays_out(machine):
    code, calls = machine.boot(NO_PACKAGE="1")
    assert (code, told(calls)) == (2, ["ABANDON"])
    assert len([call for call in calls if call.startswith("aws s3 cp --only-show-errors s3://")]) == 5
    assert [call for call in calls if call.endswith("/outcome.json")]


def test_without_metadata_nobody_is_told_and_the_hook_times_out(machine):
    code, calls = machine.boot(NO_METADATA="1")
    assert (code, told(calls)) == (2, [])


def test_a_group_that_cannot_be_told_is_an_error(machine):
    code, calls = machine.boot(NO_GROUP="1")
    assert (code, told(calls)) == (2, ["CONTINUE"] * 5)
    _, calls = machine.boot()
    assert told(calls) == ["CONTINUE"]


def test_a_slow_boot_does_not_count_against_the_node(machine):
    """The hook's time is started anew before anything that takes long; a group that refuses is no reason to stop."""
    _, calls = machine.boot()
    beats = [index for index, call in enumerate(calls) if "record-lifecycle-action-heartbeat" in call]
    assert len(beats) == 2
    assert beats[0] < min(index for index, call in enumerate(calls) if call.startswith(("aws s3", "package ")))
    assert beats[1] < min(index for index, call in enumerate(calls) if call.startswith("package "))
    _, calls = machine.boot()
    assert not [call for call in calls if "heartbeat" in call]


def test_a_later_boot_judges_again_and_tells_nobody(machine):
    machine.boot()
    code, calls = machine.boot(PACKAGE_EXITS="1")
    assert (code, told(calls)) == (1, [])
    assert [call for call in calls if call.startswith("package ")]


def test_a_node_outside_a_group_tells_nobody(machine):
    machine.plan = replace(machine.plan, group="", launch_hook="")
    assert machine.boot()[0] == 0
    assert told(machine.boot()[1]) == []


def test_the_script_is_plain_shell():
    """dash and bash -n agree that it can be read."""
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n"], input=template("flightline-boot"), text=True, check=True)


def test_a_node_outside_a_stack_judges_itself_by_the_role_s_settings(machine):
    """The same script, without a stack's boot.env: no metadata, no AWS, the library that the role installed."""
    env = {"FLIGHTLINE_BOOT_ENV": str(machine.root / "nothing"), "FLIGHTLINE_PACKAGE": str(machine.root / "served.pyz")}
    status, calls = machine.boot(**env, PACKAGE_EXITS="1")
    assert status == 1
    (asked,) = calls
    assert asked.startswith(f"package check --settings {machine.root}/node.json --run boot-")
    assert "--level" not in asked and "--instance-type" not in asked
    assert machine.boot(**env)[0] == 0
