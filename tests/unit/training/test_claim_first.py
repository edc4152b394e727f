"""A node whose hardware ended a start is claimed before the next one, in the one form that all of Flightline writes."""

import json
import os
import time

import pytest

from flightline.healing.plan.observe import from_marker
from flightline.record.reasons import RANK
from flightline.training.blame import FAILED
from flightline_node.watch import claim

from .test_launcher import Site, journal
from .test_obstacles import free_port
from .test_starts import ECC, WHERE, dies

SLURM = {"SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "gpu-02"}
NODE = """e=$(cat {root}/extra 2>/dev/null); s=IDLE; r=none; [ -e {root}/drained ] && s=IDLE+DRAIN && r=$(cat {root}/reason)
case $1 in -o) echo "NodeName=gpu-02 NodeHostName=gpu-02 NodeAddr=gpu-02 Gres=gpu:8 CPUTot=9 State=$s Reason=$r [root@2026-11-22T12:00:00] Extra=$e"
for n in 03 04; do echo "NodeName=gpu-$n NodeHostName=gpu-$n NodeAddr=gpu-$n Gres=gpu:8 CPUTot=9 {others}"; done;;
show) printf "   State=$s\\n   Reason=$r\\n";;
update) [ -e {root}/bin/refuse ] && exit 1; for w in "$@"; do case "$w" in Extra=*) echo "${{w#Extra=}}" > {root}/extra;;
Reason=*) echo "${{w#Reason=}}" > {root}/reason;; *=DRAIN) touch {root}/drained; wc -l < {root}/starts >> {root}/order;; esac; done;; esac"""
SERVES = "State=IDLE"
OUT = "State=IDLE+DRAIN Reason=flightline: training GPU 0: ECC by blame at standard for {reason} run r1 [root@{now}]"


def of_two_nodes(site):
    one = {"command": ["x.py"], "nodes": [2, 2], "rendezvous": f"127.0.0.1:{free_port()}"}
    (site.root / "jobs" / "demo.json").write_text(json.dumps(one))
    return site


def marker(site):
    path = site.root / "var/lib/flightline/quarantine.json"
    return json.loads(path.read_text()) if path.exists() else None


def asked(site):
    path = site.root / "scontrol"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def site(tmp_path):
    return of_two_nodes(Site(tmp_path, dies(ECC, "step: 9\\n")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes a node's marker")
def test_slurm_drains_the_node_by_a_claim_before_the_job_begins_again_without_it(site):
    status, said = site.run(**site.tool("scontrol", NODE.format(root=site.root, others=SERVES)), **SLURM)
    assert (status, site.count("starts")) == (77, 1), said
    drain = next(line for line in asked(site) if "State=DRAIN" in line)
    held = claim.read((site.root / "reason").read_text().strip())
    assert (held.check, held.by, held.reason) == ("training", claim.BLAME, RANK.of(FAILED).id)
    assert "uncorrectable ECC error" in held.what and "NodeName=gpu-02" in drain
    # First the node, then the job, which would come back to it.
    assert (site.root / "order").read_text().split() == ["1"]
    assert asked(site)[-1] == "requeue 17"
    found = marker(site)
    assert (found["by"], found["scheduler"]["state"]) == ("flightline-blame", "drained")
    (trouble,) = from_marker("gpu-02", "p5", found).troubles
    assert trouble.check == "training" and ECC in found["findings"][0]["message"]
    assert found["findings"][0]["device"] == {"index": 0}


def test_where_too_many_are_out_for_the_same_reason_the_node_stays_and_the_run_begins_again_here(site):
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    others = OUT.format(reason=RANK.of(FAILED).id, now=now)
    _, said = site.run(**site.tool("scontrol", NODE.format(root=site.root, others=others)), **SLURM)
    assert site.count("starts") > 1 and "it stays in service, a suspect" in said
    assert marker(site) is None and not any("State=DRAIN" in line for line in asked(site))


def test_a_spare_takes_the_place_and_the_job_goes_on(site):
    status, _ = site.run(
        **site.tool("scontrol", NODE.format(root=site.root, others=SERVES)), **{**SLURM, "SLURM_JOB_NUM_NODES": "3"}
    )
    assert status == 77 and not any("requeue" in line for line in asked(site))


def test_a_user_whom_slurm_lets_drain_nothing_leaves_the_node_out_of_the_job(site):
    tool = site.tool("scontrol", NODE.format(root=site.root, others=SERVES))
    (site.root / "bin" / "refuse").touch()
    (site.root / "var").write_text("no directory: the marker cannot be written")
    status, said = site.run(**tool, **SLURM)
    assert (status, site.count("starts")) == (77, 1)
    assert asked(site)[-2:] == ["requeue 17", "update JobId=17 ExcNodeList=gpu-02"]
    assert "do: flightline blame" in said and "--quarantine" in said


@pytest.mark.parametrize(
    "script",
    [
        dies("ValueError: bad sample", "step: 9\\n"),
        dies("RuntimeError: CUDA error: unspecified launch failure", "step: 9\\n"),
        dies("OSError: [Errno 5] Input/output error", "step: 9\\n"),
        dies("ConnectionError: Connection reset by peer", "step: 9\\n"),
    ],
    ids=["program", "launch failure", "file system", "another rank"],
)
def test_what_is_not_surely_the_nodes_hardware_claims_nothing(tmp_path, script):
    site = of_two_nodes(Site(tmp_path, script, pause_s=0.01))
    site.run(**site.tool("scontrol", NODE.format(root=site.root, others=SERVES)), **SLURM)
    assert marker(site) is None and not any("DRAIN" in line for line in asked(site))


def test_what_a_rank_of_another_node_wrote_into_the_shared_journal_claims_not_this_one(tmp_path):
    other = f"mkdir -p {tmp_path}/logs/demo; " + journal(tmp_path, "other-node", event="start").replace(
        '"type"', '"host":"other-node","type"'
    )
    site = of_two_nodes(
        Site(
            tmp_path,
            f"{WHERE} touch $d/x_1/attempt_0/0/stdout.log; {other}; {journal(tmp_path, ECC)}; exit 1",
            restarts=0,
        )
    )
    site.run(**site.tool("scontrol", NODE.format(root=site.root, others=SERVES)), **SLURM)
    assert marker(site) is None


def test_a_run_that_nobody_else_can_take_over_is_not_ended_by_its_own_claim(tmp_path):
    site = Site(tmp_path, "[ $start -lt 3 ] || exit 0; " + dies(ECC, "step: '$start'\\n"), pause_s=0.01)
    status, _ = site.run()
    assert (status, site.count("starts"), marker(site)) == (0, 3, None)
