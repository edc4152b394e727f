"""A node that its group ends: drained, its jobs told, held until they are done or for the limit, then let go.

The metadata service is a local stand-in (EC2 Auto Scaling user guide, "Retrieve the target lifecycle state through instance
metadata"); aws, scontrol, squeue, scancel and systemctl are scripts that answer from files and write down what they are asked.
No AWS and no Slurm is involved.
"""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flightline.cloud.functions.alert_router import boots
from flightline_node.act import ending, notice
from flightline_node.ask.metadata import LIFECYCLE, SPOT, MetadataSession
from tests.imds import MetadataStandIn, serving
from tests.node_programs import NOTICE

NODE = "i-0123456789abcdef0"
BOOTS = "s3://demo-results/bundles/boot/arn:aws:ec2:eu-west-1:123456789012:instance"
WORD = f"{BOOTS}/{NODE}/"
SHOWN = "NodeName=gpu-07 NodeHostName={host} NodeAddr=10.0.0.7 State=IDLE Partitions=gpu Reason= Extra= \n"
TOOL = """#!/bin/sh
name=${0##*/}
echo "$name $*" >>"$PLACE/calls"
[ ! -e "$PLACE/$name.fails" ] || exit 1
case "$name $*" in
    "squeue"*"--name"*) cat "$PLACE/ours" 2>/dev/null ;;
    "scontrol -o show node") cat "$PLACE/nodes" ;;
    "scontrol show node"*) echo "NodeName=gpu-07 State=IDLE+DRAIN" ;;
    "aws --region eu-west-1 s3 cp"*) cp "$6" "$PLACE/word.json" ;;
    *) cat "$PLACE/$name.says" 2>/dev/null ;;
esac
exit 0
"""


@dataclass
class Bed:
    """A node with a service and tools."""

    place: Path
    service: MetadataStandIn
    said: list[str] = field(default_factory=list)
    now: float = 1_000.0

    def __post_init__(self) -> None:
        self.service.values = {"meta-data/instance-id": NODE, "meta-data/placement/region": "eu-west-1"}
        self.put("boot.env", f"REGION='eu-west-1'\nRESULTS_URL='{BOOTS}'\n")
        for name in ("aws", "systemctl", "scontrol", "squeue", "scancel"):
            (self.place / name).write_text(TOOL)
            (self.place / name).chmod(0o755)
        self.put("nodes", SHOWN.format(host=os.uname().nodename))

    def put(self, name: str, text: str = "") -> None:
        (self.place / name).write_text(text)

    def watch(self, limit_s: float = 600.0, hook: str = "demo-drain") -> None:
        metadata = MetadataSession(self.service.url, 60, 2.0)
        wanted = ending.EndingPlan(
            "flightline-train@*.service",
            "SIGUSR1",
            "",
            "flightline-train",
            "demo-gpu",
            hook,
            limit_s,
            str(self.place / "boot.env"),
        )
        made = ending.Ending(wanted, metadata, self.said.append)
        self._watch = notice.NoticeWatch(metadata, notice.teller(made), self.said.append, made.hold)

    def look(self, seconds: float = 0.0) -> list[str]:
        """Look after some time; returns what was asked of the tools since."""
        self.now += seconds
        self.put("calls")
        self._watch.look(self.now)
        return (self.place / "calls").read_text().splitlines()

    def ends(self) -> None:
        self.service.values[LIFECYCLE] = "Terminated"


@pytest.fixture
def bed(tmp_path, monkeypatch):
    with serving() as service:
        made = Bed(tmp_path, service)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setenv("PLACE", str(tmp_path))
        monkeypatch.setenv("SLURM_CONF", "/nowhere")
        made.watch()
        yield made


def asked(calls: list[str], word: str) -> list[str]:
    return [call for call in calls if word in call]


@pytest.mark.parametrize("state", ["InService", "Detached", "Standby", ""])
def test_a_node_that_stays_is_left_alone(bed, state):
    bed.service.values[LIFECYCLE] = state
    assert bed.look() == []


def test_an_idle_node_is_drained_and_let_go_at_once(bed):
    bed.ends()
    calls = bed.look()
    order = [
        "scontrol update NodeName=gpu-07 State=DRAIN",
        "systemctl kill --kill-who=main --signal=SIGUSR1 flightline-train@*.service",
        "systemctl list-units",
        WORD,
    ]
    places = [next(n for n, call in enumerate(calls) if word in call) for word in order]
    assert places == sorted(places)
    (done,) = asked(calls, WORD)
    key = done.split("s3://demo-results/")[1]
    named = boots.KEY.fullmatch(key)
    assert named and named[1] == NODE
    word = json.loads((bed.place / "word.json").read_text())
    assert (word["schema"], word["instance_id"]) == (boots.ENDING, NODE)
    assert asked(bed.look(45), "aws ") == []
    # Nobody says that the word came: it is left again, under the same key, until the node is gone.
    assert [call.split()[-1] for call in asked(bed.look(15), WORD)] == [done.split()[-1]]


@pytest.mark.parametrize("tool", ["systemctl", "squeue"])
def test_a_node_with_a_job_is_held_until_it_is_done(bed, tool):
    bed.put(f"{tool}.says", "flightline-train@a.service loaded active running\n" if tool == "systemctl" else "41\n")
    bed.ends()
    bed.look()
    assert not asked([call for _ in range(8) for call in bed.look(15)], "aws ")
    bed.put(f"{tool}.says")
    assert len(asked(bed.look(15), WORD)) == 1
    assert any("its jobs are done" in line for line in bed.said)


def test_jobs_of_the_shipped_script_are_told_once_and_others_are_not(bed):
    """SIGUSR1 ends a program that does not expect it; whose batch script hands it on says so by its name."""
    bed.put("squeue.says", "41\n42\n")
    bed.put("ours", "41\n")
    bed.ends()
    calls = bed.look() + bed.look(15)
    assert asked(calls, "scancel") == ["scancel --batch --signal=USR1 41"]


def test_at_the_limit_the_node_is_let_go_with_its_job(bed):
    bed.put("squeue.says", "41\n")
    bed.ends()
    for _ in range(39):
        assert not asked(bed.look(15), "aws ")
    assert asked(bed.look(30), WORD)
    assert any("41" in line and "limit" in line for line in bed.said)


def test_a_node_that_slurm_has_under_another_name_is_not_taken_for_idle(bed):
    bed.put("nodes", SHOWN.format(host="other"))
    bed.ends()
    assert not asked(bed.look() + bed.look(15), "aws ")


@pytest.mark.parametrize("tool", ["squeue", "systemctl"])
def test_an_answer_that_does_not_come_is_no_idle_node(bed, tool):
    bed.ends()
    bed.put(f"{tool}.fails")
    assert not asked(bed.look() + bed.look(15), "aws ")
    (bed.place / f"{tool}.fails").unlink()
    assert asked(bed.look(15), WORD)


def test_a_node_that_cannot_be_drained_may_get_a_job_and_is_held(bed):
    bed.ends()
    bed.put("scontrol.fails")
    assert not asked(bed.look() + bed.look(15), "aws ")
    (bed.place / "scontrol.fails").unlink()
    calls = bed.look(15) + bed.look(15)
    assert len(asked(calls, "State=DRAIN")) == 1 and asked(calls, WORD)
    assert not asked(calls, "systemctl kill"), "what was told is not told again"


def test_what_somebody_drained_keeps_its_reason(bed):
    shown = (
        SHOWN.format(host=os.uname().nodename)
        .replace("IDLE", "IDLE+DRAIN")
        .replace("Reason=", "Reason=disk [root@now]")
    )
    bed.put("nodes", shown)
    bed.ends()
    calls = bed.look()
    assert not asked(calls, "State=DRAIN") and asked(calls, WORD)


@pytest.mark.parametrize("broken", ["aws.fails", "boot.env"])
def test_a_word_that_cannot_be_left_is_left_again(bed, broken):
    bed.ends()
    kept = (bed.place / "boot.env").read_text()
    bed.put(broken)
    assert len(asked(bed.look() + bed.look(15), WORD)) == (2 if broken == "aws.fails" else 0)
    (bed.place / broken).unlink()
    bed.put("boot.env", kept)
    assert len(asked(bed.look(15), WORD)) == 1 and bed.look(15) == []
    assert len([line for line in bed.said if "could not be told" in line]) == 1


def test_a_spot_notice_goes_the_same_way_and_holds_nothing(bed):
    bed.service.values[SPOT] = '{"action": "terminate", "time": "2026-11-22T12:02:00Z"}'
    calls = bed.look() + bed.look(15)
    assert len(asked(calls, "State=DRAIN")) == 1 and len(asked(calls, "systemctl kill")) == 1
    assert asked(calls, "aws ") == []


def test_a_node_without_slurm_or_without_a_hook(bed, monkeypatch):
    monkeypatch.delenv("SLURM_CONF")
    bed.put("scontrol.fails")
    bed.watch(hook="")
    bed.ends()
    calls = bed.look()
    assert asked(calls, "systemctl kill") and not asked(calls, "aws ")
    bed.watch()
    assert asked(bed.look(), WORD)


def test_the_program_does_it(bed):
    options = [
        "--group=demo-gpu",
        "--hook=demo-drain",
        "--limit-s=600",
        f"--boot-env={bed.place}/boot.env",
        "--every-s=0.2",
        f"--endpoint={bed.service.url}",
    ]
    bed.put("calls")
    bed.ends()
    env = {**os.environ, "PYTHONPATH": str(Path(notice.__file__).parents[2])}
    running = subprocess.Popen([*NOTICE, *options], env=env, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while time.monotonic() < until and WORD not in (bed.place / "calls").read_text():
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    assert WORD in (bed.place / "calls").read_text()
