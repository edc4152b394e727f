"""Clusters that this project did not configure: adopted by one command, gated and watched, and given back to the byte."""

import re

import pytest

from tests.beds import ROOT, until
from tests.healing import adoptbed, slurmbed
from tools import nodepackage

pytestmark = [pytest.mark.root, pytest.mark.slow, slurmbed.NEEDED]
SCRIPT = ROOT / "scripts" / "flightline-start"
STYLES = (adoptbed.ParallelCluster, adoptbed.DeepOps, adoptbed.University, adoptbed.Configless)


def digests(site):
    return {name: one.digest() for name, one in site.machines.items()}


def differing(site, then):
    return {name: sorted(now ^ then[name])[:6] for name, now in digests(site).items() if now != then[name]}


def job(site, name):
    """Whether a job on a node ran to its end."""
    done = site.run("sbatch", "--parsable", "-w", name, "--no-requeue", "-o", "/dev/null", input="#!/bin/sh\ntrue\n")
    number = done.stdout.strip()
    shown = lambda: site.run("scontrol", "show", "job", number, check=False).stdout  # noqa: E731
    ended = ("JobState=COMPLETED", "JobState=FAILED", "JobState=CANCELLED", "JobState=NODE_FAIL", "launch_failed")
    until(lambda: any(one in shown() for one in ended) or site.node(name)[0].startswith("drain"), 120)
    return "JobState=COMPLETED" in shown()


def gated(site):
    """A sick node refuses a job and leaves, a healthy one runs it, and a mended one comes back."""
    before = len(site.ran_on("prolog"))
    assert job(site, "n1") and site.ran_on("prolog")[before:] == ["n1"], "the site's own prolog runs as before"
    site.sicken("n2")
    assert not job(site, "n2")
    state, reason = site.node("n2")
    assert state.startswith("drain") and reason.startswith("flightline: sysctl"), (state, reason)
    assert site.ran_on("prolog")[-1] == "n2" and job(site, "n1")
    site.sicken("n2", "Linux")
    until(lambda: site.health("n2") and site.node("n2") == ("idle", ""), 90, "the health program returns it", 1)
    assert job(site, "n2")


def counted(site):
    """The site's own prolog fails: that drains the node as it did, in Slurm's words."""
    fails = site.place / "prolog-fails-n1"
    fails.touch()
    assert not job(site, "n1")
    state, reason = site.node("n1")
    assert state.startswith("drain") and "flightline" not in reason, (state, reason)
    fails.unlink()
    site.run("scontrol", "update", "NodeName=n1", "State=RESUME")


def called_by_slurm(site):
    """NHC first, then ours, at Slurm's interval."""
    seen = len(site.ran_on("nhc"))
    until(lambda: {"n1", "n2"} <= set(site.ran_on("nhc")[seen:]), 60, "NHC still runs on both")
    site.sicken("n1")
    until(lambda: " by health at quick " in site.node("n1")[1], 120, "an idle node that falls sick is drained")
    site.sicken("n1", "Linux")
    until(lambda: site.node("n1") == ("idle", ""), 120, "and comes back when it is fit")


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
def test_a_cluster_of_somebody_else_from_the_first_look_to_removal(style, tmp_path):
    with slurmbed.bed(tmp_path / "site", 2, style) as site:
        first, settings = digests(site), site.settings()
        looked = site.adopt("--check")
        assert looked.returncode == 0, looked.stdout + looked.stderr
        for said in ("found: Slurm 22.05", "prolog: ", "flightline-check", "/etc/flightline/node.json", site.conf):
            assert said in looked.stdout, looked.stdout
        assert not differing(site, first) and site.settings() == settings and not (site.place / "adopted.yml").exists()

        done = site.adopt()
        assert done.returncode == 0 and re.search(r" GO +2 of 2 nodes go", done.stdout), done.stdout + done.stderr
        ours = "HealthCheckProgram      = /usr/local/libexec/flightline-adopt-health"
        assert until(lambda: ours in site.settings(), 60)
        adopted = digests(site)
        gated(site)
        counted(site)
        if issubclass(style, adoptbed.University):
            called_by_slurm(site)
        again = site.adopt("--no-preflight")
        assert again.returncode == 0 and "n2: wrote 1 files" in again.stdout, (
            "what the test wrote is as the inventory says"
        )
        grown = ("/var/lib/flightline", "/etc/flightline/node.json")
        for name, now in digests(site).items():
            assert not {line for line in now ^ adopted[name] if not line.startswith(grown)}

        removed = site.adopt("--remove")
        assert removed.returncode == 0, removed.stdout + removed.stderr
        until(lambda: site.settings() == settings, 60)
        assert site.settings() == settings and not differing(site, first)
        assert job(site, "n1"), site.run("scontrol", "show", "node", "n1").stdout
        assert site.adopt("--remove").returncode == 0 and not differing(site, first)


def test_plain_hosts_get_a_check_a_watcher_and_a_verdict(tmp_path):
    with slurmbed.bed(tmp_path / "site", 2, adoptbed.Plain) as site:
        first = digests(site)
        done = site.adopt()
        assert done.returncode == 0 and re.search(r" GO +2 of 2 nodes go", done.stdout), done.stdout + done.stderr
        one = site.machines["n1"]
        assert one.run("/usr/local/sbin/flightline-check", "30").returncode == 0
        site.sicken("n1")
        assert one.run("/usr/local/sbin/flightline-check", "30").returncode == 1
        unit = one.read("/etc/systemd/system/flightline-watch.service")
        environment = re.findall(r"^Environment=(.*)$", unit, re.M)
        (starts,) = re.findall(r"^ExecStart=(.*)$", unit, re.M)
        assert one.run("env", *" ".join(environment).split(), "timeout", "3", *starts.split()).returncode in (0, 124)
        assert '"WatchBeat"' in one.read("/var/log/flightline/watch.jsonl")
        assert one.run("test", "-x", "/usr/local/sbin/flightline-boot").returncode == 0
        assert site.adopt("--remove").returncode == 0
        assert not differing(site, first)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from flightline_node.adopt import program, write
left, real = int(sys.argv[2]), write._replace
def replace(path, data, *rest):
    global left
    left -= 1
    if left < 0:
        open(path + write.DRAFT, "wb").write(data[:3])
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, data, *rest)
write._replace = replace
sys.exit(program.main(sys.argv[3:]))
"""


def test_an_adoption_that_is_killed_at_any_of_its_writes_can_be_removed_and_done_again(tmp_path):
    package = nodepackage.build(tmp_path / "flightline-node.pyz").path
    one = adoptbed.Machine("n1", tmp_path, tmp_path)
    try:
        one.write("/etc/logrotate.d/flightline", "# the site's own\n", "640")
        first, moment, statuses = one.digest(), 0, []
        while 0 not in statuses:
            died = one.run("/usr/bin/python3", "-c", KILLED, package, moment, "--instance-type", "none")
            statuses.append(died.returncode)
            assert one.run("/usr/bin/python3", package, "adopt", "--remove").returncode == 0
            assert one.digest() == first, (moment, sorted(one.digest() ^ first)[:5])
            moment += 1
        assert len(statuses) > 8 and set(statuses[:-1]) == {-9}, statuses
    finally:
        one.end()


STARTS = {
    "ParallelCluster, OnNodeConfigured with Args": "{script} {args}",
    "PCS, user data": "env -i sh -c '{script} {args}'",
    "HyperPod, from on_create.sh": "bash -c 'set -e; echo lifecycle; {script} {args}'",
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_node_that_no_control_node_reaches_adopts_itself_as_it_starts(tmp_path, kind):
    """As the services run it: as root, with arguments alone, by its exit status. None of the services was met."""
    built = nodepackage.build(tmp_path / "flightline-node.pyz")
    one = adoptbed.Machine("n1", tmp_path, tmp_path)
    start = lambda *words: one.run("sh", "-c", STARTS[kind].format(script=SCRIPT, args=" ".join(map(str, words))))  # noqa: E731
    try:
        first = one.digest()
        assert start(built.path, "0" * 64, "none").returncode == 2 and one.digest() == first
        done = start(built.path, built.sha256, "none")
        assert done.returncode == 0 and "n1: " in done.stdout, done.stdout + done.stderr
        assert one.run("test", "-x", "/usr/local/sbin/flightline-check").returncode == 0
        one.write("/etc/parallelcluster/x", "")
        assert one.run("env", "FLIGHTLINE_WAIT_S=0", SCRIPT, built.path, built.sha256).returncode == 2, "no Slurm yet"
        one.run("rm", "-r", "/etc/parallelcluster")
        assert one.run("/usr/bin/python3", built.path, "adopt", "--remove").returncode == 0 and one.digest() == first
    finally:
        one.end()
