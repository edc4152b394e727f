"""User data: what it may hold. The boot script itself runs in tests/e2e/test_boot.py."""

import json
import shlex
import subprocess
from dataclasses import fields, replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flightline_node import selfcheck
from flightline_node.inputs import defaults
from flightline_node.judge.checks import CHECKS
from flightline_node.settings import resolve_settings
from infra.planning.user_data import CONFIGURED_LATER, MAX_BYTES, BootPlan, BootRoles, boot_plan, render, template
from tests.infra.stacks import STACKS, place, planned_names, settings

SHA = "0" * 64
PLAN = BootPlan(
    region="us-east-1",
    instance_type="p5.48xlarge",
    level="quick",
    time_limit_minutes=20,
    package_url=f"s3://train-results/artifacts/flightline-node-{SHA}.pyz",
    package_sha256=SHA,
    group="train-gpu",
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
    text = render(boot_plan(settings(stack), names, place(stack), SHA))
    assert text.startswith("#cloud-config\n")
    assert len(text.encode()) <= MAX_BYTES
    roles = render(boot_plan(settings(stack), names, place(stack), SHA, BootRoles(SHA, SHA)))
    assert len(roles.encode()) <= MAX_BYTES
    env = environment(text)
    assert env["GROUP"] == names.node_group
    assert env["PACKAGE_URL"] == f"s3://{names.results_bucket}/{names.package_key(SHA)}"
    assert env["PACKAGE_SHA256"] == SHA


def test_the_script_reads_every_value_that_it_is_given():
    script = template("flightline-boot")
    assert [name for name in environment(render(PLAN)) if f"${name}" not in script and f"${{{name}" not in script] == []


def test_the_node_is_judged_by_the_interfaces_it_gets():
    """With EFA off, the type's own count of 32 would condemn every node."""
    own = render(boot_plan(settings("p5-reservation"), planned_names("p5-reservation"), place("p5-reservation"), SHA))
    assert judged_by(own)["expected"] == {"efa_count": 32}
    off = settings("p5-reservation", efa="off", fsxEfa=False)
    assert judged_by(render(boot_plan(off, planned_names("p5-reservation"), place("p5-reservation"), SHA)))[
        "expected"
    ] == {"efa_count": 0}


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


@given(st.sampled_from([item.name for item in fields(BootPlan) if item.type is str]), st.text(max_size=60))
def test_no_value_can_run_on_the_node(name, value):
    """A value is refused, or a shell reads back exactly that value."""
    try:
        text = render(replace(PLAN, **{name: value}))
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
        ({"results_url": ""}, "told by what lies there"),
        ({"skip": ("a b",)}, "ids or tags"),
        ({"level": "deep"}, "level"),
        ({"package_sha256": "abc"}, "package_sha256"),
        ({"roles_url": "s3://bucket/roles.tar.gz"}, "all or none"),
    ],
)
def test_a_malformed_plan_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        render(replace(PLAN, **changes))


def test_the_script_is_plain_shell():
    """dash and bash -n agree that it can be read."""
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n"], input=template("flightline-boot"), text=True, check=True)
