"""When the action plugin calls the kept library, and what it makes of the answer; the connection is a stand-in."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.made import loaded

PLUGIN = Path(__file__).parents[3] / "plugins/action/flightline_node.py"


@pytest.fixture(scope="module")
def plugin():
    return loaded("flightline_node_action", PLUGIN)


@pytest.fixture
def call(plugin):
    """Ask with a transport, parameters and the node's answer; returns (answer, key) and the command that was sent."""

    def ask(transport="ssh", rc=0, stdout="", stderr="", **params):
        sent = []
        action = plugin.ActionModule.__new__(plugin.ActionModule)
        action._connection, action._task = SimpleNamespace(transport=transport), SimpleNamespace(check_mode=False)
        action._templar = SimpleNamespace(template=lambda value: value)
        action._compute_environment_string = lambda: ""
        given = {name: entry.get("default") for name, entry in plugin.unexpanded().items()}
        given.update(instance_type="none", timeout_s=180, call_id="0123456789abcdef", **params)
        action._low_level_execute_command = lambda command: (
            sent.append(command) or {"rc": rc, "stdout": stdout, "stderr": stderr}
        )
        return *action._call_kept(given, {}), sent

    return ask


ANSWER = {"changed": False, "verdict": "go", "record": {}}


def test_the_answer_is_found_behind_what_a_login_shell_prints(call, plugin):
    line = plugin.MARK + json.dumps(ANSWER) + "}"
    answer, key, _ = call(stdout=f"Welcome to this node\n{line}\nlogout\n")
    assert (answer, key) == (ANSWER, plugin.KEY)


@pytest.mark.parametrize(("transport", "sends"), [("ssh", True), ("local", True), ("aws_ssm", False)])
def test_a_long_command_is_not_typed_into_a_terminal(call, plugin, transport, sends):
    waivers = [{"check": "memory", "scope": "x", "reason": "r" * 4000, "owner": "o", "expiry": "2027-01-01"}]
    answer, key, sent = call(transport=transport, stdout=plugin.MARK + json.dumps(ANSWER) + "}", waivers=waivers)
    assert bool(sent) is sends and key == plugin.KEY
    assert (answer is not None) is sends


@pytest.mark.parametrize(("transport", "most_mb"), [("ssh", 36), ("local", 36), ("aws_ssm", 76)])
def test_a_worker_may_grow_by_a_client_only_where_its_connection_loads_one(plugin, monkeypatch, transport, most_mb):
    """Twenty workers with endless answers at once stay within 1.1 GB."""
    seen = []
    monkeypatch.setattr(plugin, "process_limits", lambda _seconds, growth: seen.append(growth) or nullcontext())
    monkeypatch.setattr(plugin, "admitted", lambda *_: {})
    action = plugin.ActionModule.__new__(plugin.ActionModule)
    action._connection, action._ask = SimpleNamespace(transport=transport), lambda *_: {}
    action._held({"timeout_s": 5, "return_bundle": False}, None, {})
    assert seen == [most_mb << 20]


def test_a_usual_command_fits_a_terminal(call, plugin):
    *_, sent = call(transport="aws_ssm", host="i-0123456789abcdef0", instance_id="i-0123456789abcdef0", rc=97)
    assert sent and len(sent[0]) <= plugin.MAX_TYPED_BYTES


@pytest.mark.parametrize(("rc", "kept"), [(97, True), (96, False)])
def test_without_a_good_copy_the_module_is_sent_and_a_broken_copy_is_left_alone(call, plugin, rc, kept):
    answer, key, _ = call(rc=rc)
    assert answer is None and key == (plugin.KEY if kept else "")


@pytest.mark.parametrize(
    ("rc", "stdout", "stderr", "words"),
    [
        (137, "", "Killed\n", ["137", "Killed"]),
        (0, "", "", ["0", "nothing"]),
        (1, "line\nlast words", "", ["last words"]),
    ],
)
def test_a_call_that_ends_without_an_answer_is_a_failure_with_its_last_words(call, rc, stdout, stderr, words):
    answer, _, _ = call(rc=rc, stdout=stdout, stderr=stderr)
    assert answer["failed"] and all(word in answer["msg"] for word in words)
