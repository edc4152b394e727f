"""What make up, down and down-compute say before they do it."""

from __future__ import annotations

import os
import subprocess

import pytest
from click.testing import CliRunner

from infra import describe
from tests.infra.stacks import ROOT, STACKS, settings, values


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("action", describe.ACTIONS)
def test_every_stack_is_described(stack, action):
    text = "\n".join(describe.lines(action, stack, describe.values(stack, ROOT)))
    assert text.startswith(f"{action} {stack}: cluster {settings(stack).cluster_name} in {settings(stack).region}")
    if action == "up":
        assert f"{settings(stack).nodes.count} x {settings(stack).nodes.instance_type}" in text


@pytest.mark.parametrize("stack", STACKS)
def test_down_says_whether_the_data_stays(stack):
    text = "\n".join(describe.lines("down", stack, describe.values(stack, ROOT)))
    assert ("keeps    buckets" in text) == bool(values(stack).get("keepData", True))


def test_an_unknown_stack_is_refused_with_the_known_ones(monkeypatch):
    monkeypatch.chdir(ROOT)
    ended = CliRunner().invoke(describe.main, ["up", "nowhere"])
    assert ended.exit_code == 2
    assert "Pulumi.nowhere.yaml" in ended.output and "p5-reservation" in ended.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["up"], "which stack? make up STACK=dev"),
        (["down", "dev"], "pulumi is not on the PATH"),
    ],
)
def test_the_script_says_what_it_lacks(tmp_path, arguments, words):
    # Only what the script needs is on the PATH: a pulumi that is installed must not run here.
    for tool in ("sh", "env"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    run = subprocess.run(
        ["/bin/sh", "scripts/cluster", *arguments],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert words in run.stderr
    assert not arguments[1:] or "cluster flightline-dev in us-east-1" in run.stdout
