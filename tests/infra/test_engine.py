"""The real engine: preview, up, a second up without a change and destroy, against an AWS emulator on loopback.

It needs the Pulumi CLI and the AWS provider, which is used where it is on the PATH (pulumi-resource-aws) and fetched else;
without them it is skipped.
FLIGHTLINE_EMULATOR names another emulator than moto (a loopback URL); then every resource must be made. moto has no
composite alarms: there the update goes on past them, and nothing else may be missing.
"""

import json
import logging
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.infra import program, stacks, test_release

PULUMI = shutil.which("pulumi")
STACK = "local"
OTHER_EMULATOR = os.environ.get("FLIGHTLINE_EMULATOR", "")
MOTO_LACKS = set() if OTHER_EMULATOR else {"aws:cloudwatch/compositeAlarm:CompositeAlarm"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PULUMI is None, reason="the Pulumi CLI is not on the PATH (its official installer brings it)"),
]


@pytest.fixture(scope="module")
def emulator():
    if OTHER_EMULATOR:
        yield OTHER_EMULATOR
        return
    server_module = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def project(tmp_path_factory, emulator):
    """A copy of the project with the local stack pointed at the emulator, and its state in a directory."""
    root = tmp_path_factory.mktemp("project")
    parts = ("infra", "flightline", "flightline_pulumi", "module_utils", "roles", "library", "plugins", "playbooks")
    for part in (*parts, "inventory"):
        shutil.copytree(stacks.ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(stacks.ROOT / "ansible.cfg", root)
    manifest = yaml.safe_load((stacks.ROOT / "Pulumi.yaml").read_text())
    # The interpreter of this test run, instead of a .venv inside the copy.
    manifest["runtime"] = {"name": "python"}
    (root / "Pulumi.yaml").write_text(yaml.safe_dump(manifest))
    text = (stacks.ROOT / f"Pulumi.{STACK}.yaml").read_text()
    text = re.sub(r"http://127\.0\.0\.1:\d+", emulator, text)
    # ansible-core for the nodes comes from an index, which a test does not ask.
    (root / f"Pulumi.{STACK}.yaml").write_text(f"{text}  flightline:configureAtBoot: false\n")
    return root


@pytest.fixture(scope="module")
def pulumi(project, emulator, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_ENDPOINT_URL": emulator,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{project}{os.pathsep}{project / 'module_utils'}",
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "only-for-this-test",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }

    def call(*arguments, ok=True):
        run = subprocess.run(
            [PULUMI or "", "--non-interactive", "--color", "never", *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if ok:
            assert run.returncode == 0, f"pulumi {' '.join(arguments)}\n{run.stdout[-4000:]}\n{run.stderr[-4000:]}"
        return run

    call("stack", "init", STACK)
    # Pulumi takes a provider from the PATH without asking anybody.
    plugin = None if shutil.which("pulumi-resource-aws") else call("plugin", "install", ok=False)
    if plugin is not None and plugin.returncode:
        pytest.skip(f"the AWS provider plugin cannot be had: {(plugin.stderr or plugin.stdout).strip()[-300:]}")
    return call


def test_a_broken_policy_stops_the_preview(pulumi, project):
    source = project / "infra" / "components" / "launch_template.py"
    kept = source.read_text()
    source.write_text(kept.replace('http_tokens="required"', 'http_tokens="optional"'))
    try:
        run = pulumi("preview", "--stack", STACK, ok=False)
    finally:
        source.write_text(kept)
    assert run.returncode != 0
    assert "[imdsv2] nodes-template" in run.stdout + run.stderr


def resources(pulumi):
    """URN -> type and id of what the state holds."""
    deployment = json.loads(pulumi("stack", "export", "--stack", STACK).stdout)["deployment"]
    return {one["urn"]: (one["type"], one.get("id")) for one in deployment.get("resources", [])}


def update(pulumi, *more):
    arguments = ["up", "--yes", "--skip-preview", "--stack", STACK, *more]
    return pulumi(*arguments) if not MOTO_LACKS else pulumi(*arguments, "--continue-on-error", ok=False)


def policies(pulumi):
    """The locks' URNs."""
    return [urn for urn in resources(pulumi) if "flightline:policy:" in urn]


def test_a_destroy_of_a_stack_that_keeps_data_deletes_nothing(pulumi):
    pulumi("config", "set", "--stack", STACK, "flightline:keepData", "true")
    update(pulumi)
    made = resources(pulumi)
    for more in ([], ["--target", "**::network-vpc", "--target-dependents"], ["--target", "**::storage-data-bucket"]):
        run = pulumi("destroy", "--yes", "--skip-preview", "--stack", STACK, *more, ok=False)
        assert run.returncode != 0 and "protected" in run.stdout + run.stderr, more
        assert resources(pulumi) == made, more
    # What `make down` does.
    for urn in policies(pulumi):
        pulumi("state", "unprotect", urn, "--stack", STACK, "--yes")
    pulumi("destroy", "--yes", "--skip-preview", "--stack", STACK, "--exclude-protected")
    left = {type_ for type_, _ in resources(pulumi).values()}
    assert "aws:dynamodb/table:Table" in left and "aws:s3/bucket:Bucket" in left
    assert not {"aws:autoscaling/group:Group", "aws:lambda/function:Function", "aws:ec2/vpc:Vpc"} & left
    pulumi("config", "set", "--stack", STACK, "flightline:keepData", "false")


def as_released(pulumi, tmp_path):
    """The state as the last release left it: every place without the cluster that it lies in now."""
    text = pulumi("stack", "export", "--stack", STACK).stdout
    state = json.loads(text.replace(f"{test_release.CLUSTER.split('::')[0]}$", ""))
    held = state["deployment"]["resources"]
    (stack,) = [one["urn"] for one in held if one["type"] == "pulumi:pulumi:Stack"]
    (cluster,) = [one["urn"] for one in held if one["urn"].endswith(test_release.CLUSTER)]
    for one in held:
        one["parent"] = stack if one.get("parent") == cluster else one.get("parent", "")
        one["dependencies"] = [urn for urn in one.get("dependencies", []) if urn != cluster]
        one.pop("aliases", None)
    state["deployment"]["resources"] = [one for one in held if one["urn"] != cluster]
    (tmp_path / "state.json").write_text(json.dumps(state))
    return tmp_path / "state.json"


def test_a_program_of_ones_own_previews_clean(pulumi, project, tmp_path):
    """The template, as `pulumi new` renders it, with the emulator's configuration."""
    manifest = yaml.safe_load((program.rendered(tmp_path) / "Pulumi.yaml").read_text())
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump({**manifest, "runtime": {"name": "python"}}))
    local = yaml.safe_load((project / f"Pulumi.{STACK}.yaml").read_text())["config"]
    own = {key: value for key, value in local.items() if key.split(":")[1] not in ("clusterName", "gpuNodeCount")}
    own["flightline:availabilityZones"] = ["us-east-1a"]
    (tmp_path / "Pulumi.own.yaml").write_text(yaml.safe_dump({"config": own}))
    pulumi("--cwd", str(tmp_path), "stack", "init", "own")
    pulumi("--cwd", str(tmp_path), "preview", "--stack", "own")


def test_preview_up_again_and_destroy(pulumi, tmp_path):
    pulumi("preview", "--stack", STACK)
    update(pulumi)
    made = resources(pulumi)
    planned = program.run(STACK)
    missing = {one.type_ for one in planned.requests} - {type_ for type_, _ in made.values()}
    assert missing <= MOTO_LACKS
    if not MOTO_LACKS:
        update(pulumi, "--expect-no-changes")
        outputs = json.loads(pulumi("stack", "output", "--json", "--stack", STACK).stdout)
        assert outputs["cluster_name"] == stacks.settings(STACK).cluster_name
    else:
        update(pulumi)
    assert resources(pulumi) == made, "a second update must change nothing"
    pulumi("stack", "import", "--stack", STACK, "--file", str(as_released(pulumi, tmp_path)))
    steps = json.loads(pulumi("preview", "--json", "--stack", STACK).stdout)["steps"]
    # The last release's state: 0 replaced, 0 deleted, and nothing made but the component that all of it lies in.
    assert {step["op"] for step in steps} <= {"same", "update", "create"}
    anew = {step["urn"].split("::", 2)[2] for step in steps if step["op"] == "create"}
    assert {place for place in anew if place.split("::")[0].split("$")[-1] not in MOTO_LACKS} == {test_release.CLUSTER}
    pulumi("destroy", "--yes", "--skip-preview", "--stack", STACK)
    assert [urn for urn, (type_, _) in resources(pulumi).items() if type_.startswith("aws:")] == []
