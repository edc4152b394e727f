"""The embedded demo fleet, judged once: two broken nodes, and a plan that an operator would sign. Simulated tools, real Ansible."""

import json
import os

import pytest

from flightline.demo import FAULTS
from tests.beds import flightline
from tests.e2e.test_demo_fleet import bad


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """flightline with a store of its own."""
    store = tmp_path_factory.mktemp("demo") / "runs.sqlite"
    env = {**os.environ, "FLIGHTLINE_STORE": str(store), "COLUMNS": "80"}

    return lambda *words: flightline(*words, env=env, timeout=600)


@pytest.fixture(scope="module")
def judged(call):
    """A preflight of the inventory that the repository has."""
    return call("preflight", "--json", "-")


@pytest.fixture(scope="module")
def plan(call, judged):
    """What remediate says of it: as text and as JSON."""
    text, made = call("remediate"), call("remediate", "--json")
    return text, json.loads(made.stdout), call("incidents").stdout


def test_two_nodes_are_broken_and_nothing_else(judged):
    assert judged.returncode == 1, judged.stderr
    report = json.loads(judged.stdout)
    assert (report["verdict"], len(report["nodes"]), report["fleet"]) == ("no-go", 8, [])
    assert {row["host"] for row in report["nodes"] if row["verdict"] == "no-go"} == {"gpu-03", "gpu-06"}
    found = bad(report)
    assert set(found) == {"gpu-03", "gpu-06"}
    assert found["gpu-06"] == {"row_remap": {"RESET_GPU"}}
    lost = FAULTS["gpu_fallen_off_bus"]
    assert found["gpu-03"]["gpu_lost"] == {"REBOOT"}
    assert set(found["gpu-03"]) <= {lost.check, *lost.also}


def test_each_sick_node_has_a_step_and_no_other_has_one(plan):
    _, made, _ = plan
    assert {step["host"]: (step["do"], step["remedy"]) for step in made["steps"]} == {
        "gpu-03": ("quarantine", "REBOOT"),
        "gpu-06": ("wait", "RESET_GPU"),
    }


def test_it_says_what_was_seen_why_what_comes_and_what_becomes_of_jobs(plan):
    text, _, _ = plan
    assert text.returncode == 1 and not text.stderr
    assert text.stdout.startswith("1 step, 1 waiting or held; advise changes nothing\n")
    assert max(map(len, text.stdout.splitlines())) <= 80
    first, _, second = text.stdout.partition("2. gpu-06")
    for words in (
        "1. gpu-03 (i-0demo3bee58178015): take out of service",
        "a GPU is lost",
        "the finding asks for REBOOT",
        "back only when a quick preflight says go",
        "jobs  unknown: no scheduler was asked",
    ):
        assert words in first, words
    for words in ("a row remapping waits for a reset", "budget: 1 of 8 p5.48xlarge out with 1 of this plan, at most 1"):
        assert words in second, words


def test_advise_leaves_no_incident_behind(plan):
    assert plan[2] == "no incident\n"
