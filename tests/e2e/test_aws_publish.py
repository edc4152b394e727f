"""A preflight of the demo fleet publishes to emulated AWS and to a receiver in Slack's place; people are told once.

The nodes are simulated and AWS is moto's server on this machine: this proves what is sent, in which order and how
often, not what the real services do with it.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from flightline.cloud import items
from flightline.demo import write_inventory
from tests.unit.tell.receiver import Receiver

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PLAYBOOK = (str(BIN / "ansible-playbook"), "playbooks/preflight.yml", "-i")
COMMAND = (str(BIN / "flightline"), "preflight", "-i")
FAULTY, FAULT, CHECK = "gpu-02", "remap_failure", "row_remap"


class Site:
    """A fleet of three with a bad GPU, its AWS and its Slack."""

    def __init__(self, path, cloud):
        cloud.reset()
        self.path, self.cloud, self.slack = path, cloud, Receiver(path)
        self.topic, self.queue = cloud.topic()
        self.publish = {
            "table": cloud.table(),
            "bucket": cloud.bucket(),
            "topic": self.topic,
            "slack": "env:FLEET_WEBHOOK",
            "slack_hosts": ["127.0.0.1"],
            "slack_ca": str(self.slack.ca),
            "link": "https://reports.example/{run}",
        }
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE", "AWS", "FLIGHTLINE"))
        }
        self.env = {
            **clean,
            **cloud.env,
            "ANSIBLE_LOCAL_TEMP": str(path / "local"),
            "FLEET_WEBHOOK": self.slack.url,
            "FLIGHTLINE_STORE": str(path / "store" / "runs.sqlite"),
            "PATH": f"{BIN}:{clean['PATH']}",
        }
        write_inventory(path / "fleet", 3, "p4d.24xlarge", [(FAULT, FAULTY)])
        (path / "fleet" / "group_vars").mkdir()
        self.write_settings()

    def write_settings(self):
        (self.path / "fleet" / "group_vars" / "all.yml").write_text(
            yaml.safe_dump({"flightline_publish": self.publish})
        )

    def replace_instance(self, host, instance_id):
        """The host's instance is another one; its GPUs are, by bad luck, the same."""
        path = self.path / "fleet" / "hosts.yml"
        head, _, tail = path.read_text().partition(f"    {host}:\n")
        lines = tail.splitlines(keepends=True)
        assert "instance_id" in lines[0]
        path.write_text(f"{head}    {host}:\n      instance_id: {instance_id}\n" + "".join(lines[1:]))

    def run(self, command, *arguments, **env):
        fleet = [str(self.path / "fleet")] if command in (PLAYBOOK, COMMAND) else []
        done = subprocess.run(
            [*command, *fleet, *arguments], cwd=ROOT, env={**self.env, **env}, capture_output=True, text=True, timeout=300, check=False
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def told(self):
        return self.cloud.told(self.queue)


@pytest.fixture
def site(tmp_path, server):
    made = Site(tmp_path, server)
    yield made
    made.slack.close()


def preflight(site, command):
    """Run it, see that everything of it is stored and told, and return the bad node's record."""
    before = set(site.cloud.items())
    status, out = site.run(command)
    assert status == 1 and "published" in out and "warning" not in out.lower(), out
    objects = site.cloud.objects()
    there = {key: item for key, item in site.cloud.items().items() if key not in before}
    run_id = next(item["run_id"] for key, item in there.items() if key[1] == "META")

    assert there[(f"RUN#{run_id}", "META")]["verdict"] == "no-go"
    assert {key[1] for key in there if key[1].startswith("RECORD#")} == {
        "RECORD#gpu-01",
        "RECORD#gpu-02",
        "RECORD#gpu-03",
    }
    good, bad = (there[(f"RUN#{run_id}", f"RECORD#{host}")] for host in ("gpu-01", FAULTY))
    assert (good["verdict"], bad["verdict"]) == ("go", "no-go") and bad["wrong"][CHECK] == "FAIL"
    assert there[(f"RUN#{run_id}", f"NODE#{bad['instance_id']}#{CHECK}")]["status"] == "FAIL"

    assert "bundle" not in good and bad["bundle"].endswith(f"runs/{run_id}/bundles/{FAULTY}.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(objects[f"runs/{run_id}/bundles/{FAULTY}.tar.gz"])) as bundle:
        assert {"manifest.json", "nvidia-smi.xml", "kernel.log"} <= set(bundle.getnames())
    assert json.loads(objects[f"runs/{run_id}/report.json"])["run"]["id"] == run_id

    serial = next(gpu["serial"] for gpu in items.unpack(bad["body"])["gpus"] if blames(bad, gpu))
    (told,), (message,) = site.told(), site.slack.got
    site.slack.got.clear()
    for wanted in (
        FAULTY,
        bad["instance_id"],
        "GPU ",
        serial,
        CHECK,
        "measured",
        "expected",
        "REPLACE",
        f"https://reports.example/{run_id}",
    ):
        assert wanted in told["Message"], wanted
    assert "gpu-01" not in told["Message"] and told["Subject"].isascii()
    assert message["blocks"][0]["type"] == "header"
    assert serial in json.dumps(message) and f"<https://reports.example/{run_id}|Report>" in json.dumps(message)

    assert "very-secret" not in out, "the webhook is in nothing that is printed"
    kept = [path for path in site.path.rglob("*") if path.is_file() and path != site.slack.ca]
    assert kept and not [path for path in kept if b"very-secret" in path.read_bytes()], "nor in any file"
    return bad


def blames(item, gpu):
    """Does a node's record name this GPU as the one at fault?"""
    findings = [finding for finding in items.unpack(item["body"])["findings"] if finding["check"] == CHECK]
    return any(finding["status"] == "FAIL" and finding["device"]["index"] == gpu["index"] for finding in findings)


def test_a_gpu_that_comes_back_with_a_new_instance_is_stored_told_and_named_by_its_serial(site):
    """First by the playbook, then by the command."""
    old = preflight(site, PLAYBOOK)
    site.replace_instance(FAULTY, "i-0replacement00001")
    new = preflight(site, COMMAND)
    assert new["instance_id"] == "i-0replacement00001" != old["instance_id"]
    serial = next(gpu["serial"] for gpu in items.unpack(new["body"])["gpus"] if blames(new, gpu))
    offender = f"repeat offender: GPU {serial} was blamed in 2 of 2 runs ({CHECK}) on "
    places = f"{old['instance_id']} ({FAULTY}), {new['instance_id']} ({FAULTY}) (it came back on another node)"
    for name, store in ((new["instance_id"], "aws"), (serial, site.env["FLIGHTLINE_STORE"])):
        status, out = site.run((str(BIN / "flightline"), "history", name, "--store", store), COLUMNS="300")
        assert status == 0 and offender + places in out, out


def test_without_a_network_the_verdict_stands_and_everything_is_sent_later(site):
    status, out = site.run(COMMAND, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert status == 1 and "waits to be published" in out and "no answer from AWS" in out and "Traceback" not in out, (
        out
    )
    assert "NO-GO" in out and site.told() == [] and site.slack.got == []
    assert site.run((str(BIN / "flightline"), "report", "latest"))[0] == 1, "the run itself is here"
    status, out = site.run((str(BIN / "flightline"), "publish"))
    assert status == 0 and "published" in out, out
    assert len(site.told()) == len(site.slack.got) == 1


def test_an_inventory_that_publishes_nowhere_sends_nothing(site):
    site.publish = None
    site.write_settings()
    status, out = site.run(PLAYBOOK)
    assert status == 1 and "run " in out and " published: " not in out and "waits to be published" not in out, out
    assert site.cloud.items() == {} and site.told() == site.slack.got == []
