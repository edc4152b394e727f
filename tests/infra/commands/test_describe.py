"""What make up, down and down-compute say before they do it, and what they then ask of Pulumi."""

import fnmatch
import json
import os
import subprocess

import pytest
from click.testing import CliRunner

from infra import describe, link
from infra.policies.data_protection import DATA
from tests.infra import program
from tests.infra.commands.workplace import lay_out
from tests.infra.guarding import destroy
from tests.infra.stacks import ROOT, STACKS, settings, values
from tests.infra.test_contract import OUTPUTS


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("action", describe.ACTIONS)
def test_every_stack_is_described(stack, action):
    text = "\n".join(describe.lines(action, stack, describe.values(stack, ROOT)))
    assert text.startswith(f"{action} {stack}: cluster {settings(stack).cluster_name} in {settings(stack).region}")
    if action == "up":
        assert f"{settings(stack).nodes.count} x {settings(stack).nodes.instance_type}" in text


def test_up_says_who_may_reach_a_cluster():
    given = describe.values("eks", ROOT)
    named, nobody = (describe.lines("up", "eks", {**given, **more}) for more in ({}, {"kubernetesPublicCidrs": []}))
    line = "cluster  EKS, Kubernetes 1.36, 3 x m7i.xlarge beside the GPU nodes; its API is public to "
    assert f"  {line}203.0.113.0/24" in named and f"  {line}nobody outside the VPC" in nobody
    assert not any("EKS, Kubernetes" in one for one in describe.lines("up", "dev", describe.values("dev", ROOT)))


@pytest.mark.parametrize("stack", STACKS)
def test_down_says_whether_the_data_stays(stack):
    text = "\n".join(describe.lines("down", stack, describe.values(stack, ROOT)))
    assert ("keeps    buckets" in text) == bool(values(stack).get("keepData", True))


@pytest.mark.parametrize("action", describe.ACTIONS)
def test_it_says_whether_pulumi_asks(action, monkeypatch):
    monkeypatch.chdir(ROOT)
    asked, answered = (CliRunner().invoke(describe.main, [*more, action, "dev"]).output for more in ((), ("--yes",)))
    assert asked.endswith("shows the preview next and asks.\n") == (action != "recover")
    assert answered.endswith("shows the preview next and goes on.\n") == (action != "recover")


def test_an_unknown_stack_is_refused_with_the_known_ones(monkeypatch):
    monkeypatch.chdir(ROOT)
    ended = CliRunner().invoke(describe.main, ["up", "nowhere"])
    assert ended.exit_code == 2
    assert "Pulumi.nowhere.yaml" in ended.output and "p5-reservation" in ended.output


@pytest.mark.parametrize("text", ["config: [", "- a list", "config: word", "config: [a]", "config:\n\t- x"])
def test_a_stack_file_that_cannot_be_read_is_named(monkeypatch, tmp_path, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "Pulumi.mine.yaml").write_text(text)
    ended = CliRunner().invoke(describe.main, ["up", "mine"])
    assert ended.exit_code == 2 and isinstance(ended.exception, SystemExit)
    assert ended.output.startswith("Pulumi.mine.yaml: wanted YAML") and "; saw " in ended.output


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


# A stand-in for Pulumi's command line: it writes down what it is asked, and tells invented outputs.
PULUMI = """#!/bin/sh
case "$*" in
    "stack export"*) echo "{}"; exit ;;
    "whoami --json") echo '{"url": "file:///nowhere"}'; exit ;;
esac
echo "$*" >>"$CALLS"
case "$*" in
    "state unprotect"*) [ -z "$UNLOCKED" ] || exit 255 ;;
    destroy*) [ -z "$DECLINES" ] || exit 255 ;;
    "stack output --json"*) cat "$OUTPUTS" ;;
    "stack output image_id"*) echo ami-0123456789abcdef0 ;;
esac
"""


@pytest.fixture
def cluster(tmp_path):
    """scripts/cluster in a directory of its own, with a stand-in for Pulumi; answers what Pulumi was asked."""
    lay_out(tmp_path, PULUMI, OUTPUTS)

    def call(action, ends=0, **env):
        calls = tmp_path / "calls"
        env = {"CALLS": str(calls), "OUTPUTS": str(tmp_path / "outputs.json"), **env}
        run = subprocess.run(
            ["/bin/sh", "scripts/cluster", action, "dev"],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == ends, run.stderr
        assert run.stdout.startswith(f"{action} dev: cluster flightline-dev")
        return calls.read_text().splitlines()

    return call


def test_up_updates_the_stack_and_gives_its_outputs_to_ansible(cluster, tmp_path):
    assert cluster("up") == [
        "stack select --create dev --non-interactive",
        "up --stack dev",
        "stack output --json --non-interactive --stack dev",
        "stack output image_id --stack dev",
        f"config set --stack dev flightline:amiPin {OUTPUTS['image_id']}",
    ]
    written = json.loads((tmp_path / "inventory" / link.STACK_FILE).read_text())
    assert written[link.VARIABLE]["cluster_name"] == OUTPUTS["cluster_name"]


@pytest.mark.parametrize("status", ["1", "2"])
def test_nothing_is_built_in_an_account_that_is_not_ready_unless_nobody_wants_to_know(cluster, status):
    assert cluster("up", ends=int(status), NOT_READY=status) == ["stack select --create dev --non-interactive"]
    assert "up --stack dev" in cluster("up", NOT_READY=status, READY="no")


@pytest.mark.parametrize(("env", "yes"), [({}, False), ({"YES": ""}, False), ({"YES": "1"}, True)])
@pytest.mark.parametrize("action", ["up", "down", "down-compute"])
def test_nothing_is_answered_for_the_user_without_yes(cluster, action, env, yes):
    (change,) = [one for one in cluster(action, **env) if one.split()[0] in ("up", "destroy")]
    assert ("--yes" in change.split()) == yes


LOCKS = {"everything": "Seal::policies", "ground": "Lock::lock"}
LOCKS = {key: f"urn:pulumi:dev::flightline::flightline:policy:{name}" for key, name in LOCKS.items()}


def states(verb, *locks):
    return [f"state {verb} {LOCKS[lock]} --stack dev --yes" for lock in locks]


def test_down_opens_the_locks_passes_protected_data_by_and_locks_again(cluster):
    both = ("everything", "ground")
    change = "destroy --stack dev --exclude-protected"
    assert cluster("down")[1:] == [*states("unprotect", *both), change, *states("protect", *both)]


@pytest.mark.parametrize("action", ["down", "down-compute"])
def test_a_destroy_that_is_declined_leaves_the_stack_locked(cluster, action):
    """Pulumi's exit status after a no is the script's own; a no is no reason to stay open."""
    calls = cluster(action, ends=255, DECLINES="1")
    opened = [one.split()[2] for one in calls if one.startswith("state unprotect")]
    assert opened and [one.split()[2] for one in calls if one.startswith("state protect")] == opened


def test_a_lock_that_is_not_there_is_not_made(cluster):
    calls = cluster("down", UNLOCKED="1")
    assert [one for one in calls if one.startswith("state protect")] == []


def test_down_compute_takes_the_nodes_and_no_data(cluster):
    """With --target-dependents Pulumi takes what depends on the nodes as well: none of it may be data or network."""
    calls = cluster("down-compute")
    assert calls[1] == states("unprotect", "everything")[0] and states("unprotect", "ground")[0] not in calls
    (words,) = [one.split() for one in calls if one.startswith("destroy")]
    assert "--target-dependents" in words
    patterns = [after for word, after in zip(words, words[1:], strict=False) if word == "--target"]
    requests = program.full().requests
    gone = frozenset(one.urn for one in requests for pattern in patterns if fnmatch.fnmatchcase(one.urn, pattern))
    assert sorted(urn.rsplit("::", 1)[1] for urn in gone) == ["head-instance", "nodes-group"]
    gone = destroy.above(requests, gone)
    lost = [one for one in requests if one.urn in gone and one.name != "policies"]
    assert [one.name for one in lost if one.protect or one.type_ in DATA or one.type_.startswith("aws:ec2/vpc")] == []
