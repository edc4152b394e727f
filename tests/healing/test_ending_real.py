"""A node of a real Slurm that its group ends: drained, its job told through the batch script, let go when it is done.

The metadata service is a stand-in; aws and systemctl are scripts that write down what they are asked.
"""

import subprocess
import time

import pytest

from flightline_node.act import ending, notice
from flightline_node.ask.metadata import LIFECYCLE, MetadataSession
from tests.beds import program, until
from tests.healing import slurmbed
from tests.imds import serving

pytestmark = [pytest.mark.root, pytest.mark.slow, slurmbed.NEEDED]
JOB = "#!/bin/sh\ntrap 'echo saved >>{place}/saved' USR1\nwhile [ ! -e {place}/over ]; do sleep 0.2; done\n"
TOOL = '#!/bin/sh\necho "${{0##*/}} $*" >>{place}/calls\n'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), 2) as made:
        yield made


def test_a_node_is_drained_its_job_saves_and_the_group_waits_for_it(cluster, tmp_path, monkeypatch):
    for name in ("aws", "systemctl"):
        program(tmp_path / name, TOOL.format(place=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    (tmp_path / "boot.env").write_text("RESULTS_URL='s3://demo/bundles/boot/arn:aws:ec2:eu-west-1:1:instance'\n")
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    said = []

    def submit(name):
        argv = ["sbatch", "--parsable", "-w", "n1", "-o", "/dev/null", "-J", name]
        return cluster.run(*argv, input=JOB.format(place=tmp_path)).stdout.strip()

    job = submit("flightline-train")
    until(lambda: cluster.job_state(job) == "RUNNING", 30)
    with serving({"meta-data/instance-id": "i-1", "meta-data/placement/region": "eu-west-1"}) as service:
        metadata = MetadataSession(service.url, 60, 2.0)
        names = ("n1", "flightline-train", "demo-gpu", "demo-drain")
        made = ending.Ending(
            ending.EndingPlan("flightline-train@*.service", "SIGUSR1", *names, 600.0, str(tmp_path / "boot.env")),
            metadata,
            said.append,
        )
        watch = notice.NoticeWatch(metadata, notice.teller(made), said.append, made.hold)
        service.values[LIFECYCLE] = "Terminated"
        now = time.time()
        watch.look(now)
        shown = cluster.run("scontrol", "-o", "show", "node", "n1").stdout
        assert "DRAIN" in shown and "Reason=this instance ends: group notice" in shown
        until(lambda: (tmp_path / "saved").exists(), 30)
        waits = submit("other")
        watch.look(now + 100)
        asked = (tmp_path / "calls").read_text()
        assert "aws " not in asked
        (tmp_path / "over").touch()
        until(lambda: cluster.job_state(job) in ("GONE", "COMPLETED"), 30)
        assert cluster.job_state(waits) == "PENDING", "a drained node gets no new job"
        watch.look(now + 200)
    assert (tmp_path / "calls").read_text().count("/outcome.json") == 1, said
    assert (tmp_path / "saved").read_text() == "saved\n"
    subprocess.run(["scancel", waits], env=cluster.whole_env, check=True)
