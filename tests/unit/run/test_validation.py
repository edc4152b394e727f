"""The inventory is checked whole, before any node is touched."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from flightline import contract, stack
from flightline.run import launchers, validation
from flightline.run.validation import VARIABLES, HostVars, explain, validate
from flightline_node.settings import build

INVENTORY = Path(__file__).parents[3] / "inventory" / "aws_ec2.yml"
WAIVER = {"check": "memory", "scope": "a", "reason": "x", "owner": "ops", "expiry": "2026-12-01"}


def check(**hosts):
    return validate({name: HostVars({"instance_type": "p5.48xlarge", **given}) for name, given in hosts.items()})


def test_a_sound_inventory_gives_hosts_and_level():
    checked = check(
        a={"instance_id": "i-1", "flightline_level": "deep", "flightline_checks": "memory,gpu_count"},
        b={
            "instance_type": "none",
            "flightline_expected": {"gpu_count": 4},
            "flightline_thresholds": {"memory.min_available_percent": 30},
            "flightline_waivers": [WAIVER],
            "flightline_skip": ["host"],
        },
    )
    assert checked.mistakes == {} and checked.level == "deep" and checked.demo == {}
    assert checked.hosts["a"] == {"instance_type": "p5.48xlarge", "instance_id": "i-1", "place": "", "address": ""}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"instance_type": None}, "instance_type: not set, wanted an EC2 instance type such as p5.48xlarge, or none"),
        ({"instance_type": "p99.metal"}, "unknown instance type 'p99.metal'; wanted one of the known instance types: "),
        ({"flightline_level": "fast"}, "unknown level 'fast'; known levels: quick, standard, deep"),
        (
            {"flightline_checks": ["gpu_cuont"]},
            "checks: saw unknown check or tag 'gpu_cuont' (did you mean gpu_count?); wanted one of the ",
        ),
        ({"flightline_skip": "gpu_cuont"}, "skip: saw unknown check or tag 'gpu_cuont'"),
        (
            {"flightline_thresholds": {"memory.nope": 1}},
            "unknown threshold 'memory.nope'; wanted one of the ",
        ),
        ({"flightline_thresholds": "many"}, "wanted a mapping"),
        (
            {"flightline_expected": {"gpus": 8}},
            "unknown expected value 'gpus'; wanted one of the known expected values: ",
        ),
        ({"flightline_expected": ["gpu_count=8"]}, "flightline_expected: saw ['gpu_count=8'], wanted a mapping"),
        ({"flightline_waivers": [{**WAIVER, "expiry": "never"}]}, "expiry 'never', wanted a date"),
        ({"flightline_options": {"xid_polic": {}}}, "unknown option 'xid_polic'; known options: active_when_busy"),
        ({"flightline_options": {"xid_policy": {79: "no"}}}, "xid_policy 79: saw 'no', wanted ignore, info, warn"),
        ({"flightline_options": {"bug_report": "often"}}, "bug_report: saw 'often', wanted auto, always or never"),
        ({"flightline_options": {"active_when_busy": "maybe"}}, "saw 'maybe', wanted true or false"),
        ({"flightline_options": {"fs_io_mounts": ["data"]}}, "saw ['data'], wanted a list of absolute paths"),
        ({"flightline_options": {"s3_endpoints": 7}}, "s3_endpoints: saw 7, wanted a list"),
        ({"flightline_options": {"evidence_dir": "here"}}, "evidence_dir: saw 'here', wanted an absolute path"),
        ({"flightline_root": "here"}, "flightline_root: saw 'here', wanted an absolute path"),
        ({"flightline_bundle_dir": "here"}, "flightline_bundle_dir: saw 'here', wanted an absolute path"),
        ({"flightline_keep_bundles": "maybe"}, "flightline_keep_bundles: saw 'maybe', wanted true or false"),
        ({"flightline_options": "x"}, "flightline_options: saw 'x', wanted a mapping"),
        ({"demo_faults": ["gremlins"]}, "demo_faults: saw unknown fault 'gremlins'; wanted one of the "),
        ({"flightline_tresholds": {}}, "flightline_tresholds: no such variable; did you mean flightline_thresholds?"),
    ],
)
def test_each_mistake_is_named_with_what_was_wanted(given, wanted):
    checked = check(good={}, bad=given)
    (mistake,) = [text for text in checked.mistakes if wanted in text]
    assert checked.mistakes[mistake] == ["bad"]


def test_a_control_node_without_the_ssm_plugin_is_named_before_any_node_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AWS_SESSION_MANAGER_PLUGIN", raising=False)
    monkeypatch.setattr(validation, "SSM_PLUGIN", str(tmp_path / "bin" / "session-manager-plugin"))
    over_ssm = {"ansible_connection": "amazon.aws.aws_ssm"}
    (mistake,) = check(a=over_ssm, b=over_ssm, c={"ansible_connection": "local"}, d={}).mistakes.items()
    assert "no session-manager-plugin on the PATH of this machine; install AWS's Session Manager plugin" in mistake[0]
    assert mistake[1] == ["a", "b"]
    gone = {**over_ssm, "ansible_aws_ssm_plugin": str(tmp_path / "gone")}
    assert any("gone is not there" in text for text in check(a=gone).mistakes)
    (tmp_path / "session-manager-plugin").touch(mode=0o755)
    assert not check(a=over_ssm).mistakes


def test_all_mistakes_of_all_hosts_come_at_once_and_the_same_one_is_listed_once():
    bad = {"flightline_level": "fast", "flightline_thresholds": {"memory.nope": 1}}
    checked = check(
        **{f"n{number}": {**bad, "instance_type": "p99"} for number in range(20)}, last={"flightline_level": "x"}
    )
    text = explain(checked.mistakes, 21)
    assert len(checked.mistakes) == 4
    assert "n0, n1, n2, n3, n4, n5, n6, n7 and 12 more: saw unknown instance type 'p99'" in text
    assert "- last: unknown level 'x'" in text and "no node was touched" in text
    assert "all 2 hosts: x" in explain({"x": ["a", "b"]}, 2)


def test_a_template_that_cannot_be_evaluated_is_a_mistake_of_that_host():
    class Broken(dict):
        def __getitem__(self, key):
            if key == "instance_type":
                raise ValueError("'region' is\nundefined")
            return super().__getitem__(key)

    variables: Mapping = Broken(instance_type="{{ region }}")
    checked = validate({"a": HostVars(variables)})
    assert checked.mistakes == {"instance_type: 'region' is undefined": ["a"]}


def test_other_variables_are_the_site_s_own():
    assert check(a={"flightline_owner_team": "x", "region": "y", "my_flightline_level": 3}).mistakes == {}


def test_demo_hosts_are_handed_over_with_their_variables():
    checked = check(a={"demo_dir": "/d/a", "demo_faults": ["gpu_missing"]}, b={})
    assert checked.demo == {"a": {"demo_dir": "/d/a", "instance_type": "p5.48xlarge", "demo_faults": ["gpu_missing"]}}


def test_ten_thousand_alike_hosts_are_checked_once_each_kind(monkeypatch):
    calls = []
    monkeypatch.setattr("flightline.run.validation.resolve_settings", lambda *given: calls.append(given))
    check(**{f"n{number}": {} for number in range(10_000)})
    assert len(calls) == 1


def test_every_variable_is_explained():
    assert all(VARIABLES.values())


def of_a_stack(role="gpu-node", **outputs):
    known = {"cluster_name": "lab", "instance_type": "p5.48xlarge", "node_count": "3", **outputs}
    return {"flightline_stack": known, "ec2_tags": {"flightline:role": role}}


def test_a_node_of_the_stack_that_is_not_listed_has_a_name_and_a_reason():
    found = stack.absent([of_a_stack(), of_a_stack("head-node"), {"flightline_stack": None, "ec2_tags": None}])
    assert [entry["host"] for entry in found] == ["lab-absent-1", "lab-absent-2"]
    assert found[0]["instance_type"] == "p5.48xlarge"
    assert found[0]["message"] == "the stack has 3 GPU nodes (flightline_stack.node_count), 1 are listed"


@pytest.mark.parametrize("count", ["2", "1", "many", None])
def test_a_stack_with_all_its_nodes_lacks_none(count):
    assert stack.absent([of_a_stack(node_count=count), of_a_stack(node_count=count)]) == []


@pytest.mark.parametrize(("role", "mistakes"), [("head-node", 0), ("gpu-node", 1)])
def test_only_a_gpu_node_is_held_against_its_declared_type(role, mistakes):
    tags = dict.fromkeys(contract.INSTANCE_TAGS, "x") | {contract.TAG_ROLE: role}
    given = {"ec2_tags": tags, "instance_type": "none", "ec2_instance_type": "m7i.xlarge", "ec2_placement": {}}
    found = [text for text in stack.host_mistakes({}, given) if text.startswith("instance_type")]
    assert len(found) == mistakes


@pytest.mark.parametrize(
    ("role", "real", "declared", "wanted"),
    [
        ("head-node", "m7i.xlarge", "m7i.xlarge", "none"),
        ("gpu-node", "p5.48xlarge", "p5.48xlarge p5e.48xlarge", "p5.48xlarge"),
        ("gpu-node", "p5e.48xlarge", "p5.48xlarge p5e.48xlarge", "p5e.48xlarge"),
        ("gpu-node", "g5.xlarge", "p5.48xlarge", "p5.48xlarge"),
    ],
)
def test_the_stacks_inventory_says_a_type_that_validation_knows(role, real, declared, wanted):
    """A head node's type is in no hardware table: with it here every run of the roles would be refused."""
    expression = yaml.safe_load(INVENTORY.read_text())["compose"]["instance_type"]
    tags = {contract.TAG_ROLE: role, contract.TAG_INSTANCE_TYPE: declared}
    said = Environment().compile_expression(expression)(ec2_instance_type=real, ec2_tags=tags)
    assert said == wanted
    assert check(a={"instance_type": said}).mistakes == {}


def test_every_mistake_of_a_variable_is_a_line_of_its_own():
    checked = check(
        a={
            "instance_type": "p99.metal",
            "flightline_expected": {"gpus": 8, "gpu_count": "eight"},
            "flightline_waivers": [{**WAIVER, "expiry": "never"}, {"check": "memory"}, WAIVER],
            "flightline_thresholds": {"memory.nope": 1, "memory.min_available_percent": -1},
        }
    )
    wanted = (
        "'p99.metal'",
        "'gpus'",
        "'eight'",
        "'memory.nope'",
        "saw -1",
        "'never'",
        "waiver 2: saw that it lacks scope",
    )
    assert len(checked.mistakes) == len(wanted), list(checked.mistakes)
    for text, mistake in zip(wanted, checked.mistakes):
        assert text in mistake


def test_sound_options_are_taken():
    options = {
        "active_when_busy": True,
        "bug_report": "never",
        "evidence_dir": "",
        "fs_io_mounts": "/data, /scratch",
        "s3_endpoints": ["my-bucket"],
        "xid_policy": {54: {"status": "ignore"}, "79": "fail"},
    }
    assert not check(
        a={"flightline_options": options, "flightline_root": "~/n", "flightline_keep_bundles": "no"}
    ).mistakes


def test_names_may_have_spaces_after_the_comma():
    """Ansible's own conversion to a list keeps them, so that the node would not know ` xid`."""
    for given in ("gpu_count, xid", ["gpu_count", " xid"], ["gpu_count,xid"]):
        assert [item.id for item in build(select=given).checks] == ["gpu_count", "xid"]


def test_a_limit_that_matches_nothing_is_named_without_hosts():
    text = explain(validation.limit_mistakes(["nosuch"]), 4)
    assert text.splitlines()[1:] == [
        "- --limit 'nosuch': no such host or group in the inventory; correct --limit, or the inventory"
    ]


def test_one_launcher_asks_all_hosts_of_a_run():
    assert check(a={}).via == "ansible" and check(a={"flightline_via": "ssm"}, b={"flightline_via": "ssm"}).via == "ssm"
    assert validation.VIA_DIFFERS in check(a={"flightline_via": "slurm"}, b={}).mistakes
    (mistake,) = check(a={"flightline_via": "srun"}).mistakes
    assert mistake == f"flightline_via: saw 'srun', wanted one of {', '.join(launchers.names())}"
