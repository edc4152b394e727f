"""Root on one node of a real Slurm says what it likes in its task: a sick neighbour is never go for it.

Every task prints an answer made up by the test; which node runs which task is Slurm's.
"""

import json
import shlex
import time
from pathlib import Path

import pytest

from flightline.record.answers import asked_of
from flightline.record.outputs import BEGUN, ENDED, HostReply
from flightline.run.calls import Call
from flightline.run.launchers import slurm as launcher
from flightline.store.replies import record_of
from flightline.store.sqlite import ExpectedHost
from flightline_node.inputs import defaults
from flightline_node.nonce import call_id
from flightline_node.tell.frames import frames
from tests.unit.made import finding, record

SICK, WELL, ROOT = "n1", "n2", "n3"
"""ROOT is the node whose root forges."""
NAMES = (SICK, WELL, ROOT)
KEY, EARLIER = "k" * 64, "e" * 64


def call(name: str, key: str = KEY) -> Call:
    own = {"host": f"gpu-{name}", "instance_id": f"i-{name}", "call_id": call_id(key, f"gpu-{name}")}
    return Call(own["host"], name, {**defaults(), **own, "timeout_s": 60})


def answer(name: str, *bad: dict, key: str = KEY) -> list[str]:
    """The lines of a node's whole answer, healthy but for what is bad."""
    one = call(name, key)
    found = {one["check"]: one for one in bad}
    checks = sorted(asked_of(one.params).checks)
    made = {**record(one.host, *(found.get(check) or finding(check) for check in checks)), "flightline": "1"}
    made |= {"instance_id": one.params["instance_id"], "call_id": one.params["call_id"], "probes": []}
    del made["admitted"]
    return [f"{BEGUN} {name}", *frames(json.dumps({"record": made})), f"{ENDED} 0"]


FAULT = finding("row_remap", "FAIL", remedy="RESET_GPU")
HEALTHY = answer(SICK)
"""What ROOT can say in the name of SICK: it reads the call id in the input that all tasks share."""

SAYS = {
    "before it begins": (["sleep 3", answer(SICK, FAULT)], [HEALTHY]),
    "and as itself": (["sleep 3", answer(SICK, FAULT)], [HEALTHY, answer(ROOT)]),
    "as itself first": ([answer(SICK, FAULT)], [answer(ROOT), HEALTHY]),
    "after it": ([answer(SICK, FAULT)], ["sleep 3", HEALTHY]),
    "while it hangs": (["sleep 60"], [HEALTHY]),
    "while it is torn": ([answer(SICK, FAULT)[:1], "sleep 60"], [HEALTHY]),
    "and the end alone": ([answer(SICK, FAULT)[:1], "sleep 60"], [answer(ROOT)[:1], HEALTHY[1:]]),
    "twice": (["sleep 3", answer(SICK, FAULT)], [HEALTHY, HEALTHY]),
    "an earlier run's": (["sleep 3", answer(SICK, FAULT)], [answer(SICK, key=EARLIER)]),
    "its label in a line": (["sleep 60"], [[f"{rank}: {line}" for rank in range(3) for line in HEALTHY]]),
    "its label after a line that does not end": (
        ["sleep 60"],
        [f"printf {'x' * 5000}", [f"{rank}: {line}" for rank in range(3) for line in HEALTHY]],
    ),
    "its label after a carriage return": (
        ["sleep 60"],
        [[f"x\r{rank}: {line}" for rank in range(3) for line in HEALTHY]],
    ),
    "a name with its label": (["sleep 60"], [[f"{BEGUN} {SICK} {ROOT}", *HEALTHY[1:]]]),
}


def script(place: Path, name: str, said: list) -> str:
    """Shell words: lists of lines are printed, everything else is run."""
    steps = []
    for number, step in enumerate(said):
        path = place / f"{name}-{number}"
        if isinstance(step, list):
            path.write_text("".join(f"{line}\n" for line in step))
            step = f"cat {shlex.quote(str(path))}"
        steps.append(step)
    return "; ".join(steps)


def asked(place: Path, slurm, monkeypatch, said: dict[str, list], seconds: float = 15) -> dict[str, HostReply]:
    """Ask three nodes that say so; what came of each host."""
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    cases = "".join(f"{name}) {script(place, name, steps)};;\n" for name, steps in said.items())
    monkeypatch.setattr(launcher, "_script", lambda calls: f'case "$SLURMD_NODENAME" in\n{cases}esac')
    told: list[HostReply] = []
    asking = launcher.SlurmLauncher()
    asking.ask([call(name) for name in said], f"{place.name[-20:]}", time.monotonic() + seconds, told.append)
    asking.stop()
    assert sorted(one.host for one in told) == sorted(f"gpu-{name}" for name in said), "each is told of once"
    return {one.host: one for one in told}


def row(reply: HostReply) -> dict:
    name = reply.host.removeprefix("gpu-")
    return record_of(ExpectedHost(reply.host, "", f"i-{name}"), call(name).params, reply)


@pytest.fixture
def idle(slurm):
    yield slurm
    from tests.healing import slurmbed

    slurm.run("scancel", "--user=root", check=False)
    slurmbed._until(lambda: set(slurm.states()) == {"IDLE"}, "all nodes idle again", slurm.states)


@pytest.mark.parametrize(("sick", "root"), SAYS.values(), ids=list(SAYS))
def test_root_on_a_node_answers_go_for_no_other(tmp_path, idle, monkeypatch, sick, root):
    found = asked(tmp_path, idle, monkeypatch, {SICK: sick, WELL: [answer(WELL)], ROOT: root})
    assert row(found[f"gpu-{SICK}"])["verdict"] == "no-go", found
    assert row(found[f"gpu-{WELL}"])["verdict"] == "go", found[f"gpu-{WELL}"].trouble


def test_who_answers_as_another_is_named_and_the_other_judged_by_its_own_task(tmp_path, idle, monkeypatch):
    said: dict[str, list] = {SICK: ["sleep 3", answer(SICK, FAULT)], WELL: [answer(WELL)], ROOT: [answer(WELL)]}
    found = asked(tmp_path, idle, monkeypatch, said)
    rows = {host: row(reply) for host, reply in found.items()}
    assert {host: one["verdict"] for host, one in rows.items()} == {
        f"gpu-{SICK}": "no-go", f"gpu-{WELL}": "go", f"gpu-{ROOT}": "no-go",
    }  # fmt: skip
    assert f"runs on {ROOT} and answered as '{WELL}'" in rows[f"gpu-{ROOT}"]["findings"][0]["message"]
    assert rows[f"gpu-{ROOT}"]["findings"][0]["status"] == "UNKNOWN"
    assert "row_remap" in {one["check"] for one in rows[f"gpu-{SICK}"]["findings"] if one["status"] == "FAIL"}


def test_the_tasks_are_where_the_list_says_in_any_order(tmp_path, idle, monkeypatch):
    said = {name: [answer(name)] for name in ("n5", "n1", "n8", "n2", "n7")}
    found = asked(tmp_path, idle, monkeypatch, said)
    assert {host: row(reply)["verdict"] for host, reply in found.items()} == {f"gpu-{name}": "go" for name in said}
