"""The suite's site: two machines of the bed, one emulated account, a metadata service and AWS' names before the emulator."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import link, node_ansible, node_roles
from tests.integration import play as plays
from tests.integration import shelf_vendors
from tests.integration.bed import bed as beds
from tests.integration.bed import inventory, layout, machine
from tests.integration.conftest import SITE
from tests.integration.mirror import Mirror
from tests.integration.shelf import HOST_CHECKS

from . import machines
from .account import REGION, Account
from .front import Front, Hook

TYPE = "p5.4xlarge"
"""One GPU, one EFA interface and one disk: of these a machine of the bed has the disk."""
COUNT = 2
DECIDES_WITHIN_S = 3600
"""Far above what a quiet machine needs: a first boot installs all that a node needs, and shares its two cores."""
STEP_S = 0.5


@dataclass
class Site:
    """An account, its group's hook, and machines that become its instances."""

    account: Account
    hook: Hook
    front: Front
    metadata: machines.Metadata
    image: Path
    running: dict[str, layout.Machine] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def launch(self, one: layout.Machine, *, disk: Path | None = None, user_data: str = "") -> str:
        """The group launches an instance on a machine; returns its id. The rest is up to the node."""
        instance = self.account.launch()
        self.hook.launch(instance)
        self.running[instance] = one
        self.paths = self.account.metadata(instance, one.address, user_data or self.account.user_data())
        self.metadata.say(self.paths)
        machines.launch(one, disk or self.image)
        return instance

    def decided(self, instance: str) -> str:
        """Wait until the group knows: InService or Terminated."""
        deadline = time.monotonic() + DECIDES_WITHIN_S
        while self.hook.state[instance] == "Pending:Wait":
            assert time.monotonic() < deadline, self.journal(instance)
            self.account.route()
            for asked in self.account.hooked.completed:
                self.hook.completed(asked)
            self.account.hooked.completed.clear()
            self.hook.expire()
            time.sleep(STEP_S)
        return self.hook.state[instance]

    def boots(self, instance: str, more_than: int = 0) -> list[str]:
        """Outcomes in S3, one for each boot; waits until there are more than before."""
        s3, prefix = self.account.world.client("s3"), self.account.boots(instance)
        deadline = time.monotonic() + DECIDES_WITHIN_S
        while True:
            found = s3.list_objects_v2(Bucket=self.account.bucket, Prefix=prefix).get("Contents", [])
            keys = [one["Key"] for one in found if one["Key"].endswith("/outcome.json")]
            if len(keys) > more_than:
                return keys
            assert time.monotonic() < deadline, self.journal(instance)
            time.sleep(STEP_S)

    def push(self, instance: str, one: layout.Machine) -> plays.Played:
        """`make configure` over one running instance, with the inventory's own group variables."""
        place = _empty(machines.PLACE / "push")
        group = place / "group_vars" / "aws_ec2"
        group.mkdir(parents=True)
        for path in (machines.PLACE / "control" / "checkout" / node_roles.VARIABLES).glob("*.yml"):
            (group / path.name).write_text(path.read_text())
        (group / "stack.json").write_text(json.dumps({link.VARIABLE: self.account.outputs}))
        host = {
            "instance_id": instance,
            "instance_type": TYPE,
            **self.account.seen_by_ec2(),
            # Without SSM the node's own address: what the plugin would find out at EC2.
            "ansible_connection": "ssh",
            "ansible_host": one.address,
            "ansible_user": layout.USER,
            "ansible_ssh_private_key_file": str(layout.STATE / "id_ed25519"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={layout.STATE / 'known_hosts'}",
        }
        groups = {name: {"hosts": {instance: {}}} for name in ("aws_ec2", "gpu_nodes")}
        whole = {"all": {"hosts": {instance: host}, "children": groups}}
        (place / "hosts.yml").write_text(yaml.safe_dump(whole, sort_keys=False))
        return plays.play(place / "hosts.yml", SITE)

    def journal(self, instance: str) -> str:
        """What the boot said on the machine; of one that was given up and is gone, what it left in S3."""
        if self.hook.state[instance] == "Terminated":
            kept = self.account.objects(instance)
            found = json.loads(kept.get("record.json", b"{}")).get("findings", [])
            wrong = [one for one in found if one["status"] not in ("PASS", "INFO", "SKIP")]
            logs = [body.decode()[-4000:] for name, body in kept.items() if name.endswith("configure.log")]
            return "\n".join([kept.get("outcome.json", b"no outcome").decode(), *map(json.dumps, wrong), *logs])
        return machines.ssh(
            self.running[instance],
            "cloud-init status --long; journalctl --no-pager -u flightline-boot; tail -n 60 /var/log/flightline/configure.log",
            check=False,
        )


def site_variables(mirror: Mirror) -> dict[str, Any]:
    """What the site says beside the stack: where the bed differs from EC2, and the checks that it can pass."""
    exceptions = shelf_vendors.stock(mirror)
    swap = {} if inventory.no_swap() else {"base_swap_off": False}
    return {**exceptions, **swap, "flightline_checks": HOST_CHECKS_OF_A_TYPE}


HOST_CHECKS_OF_A_TYPE = [name for name in HOST_CHECKS if name != "memory"]
"""No machine of the bed has the type's 256 GiB."""


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Made once; the machines go afterwards unless the bed was up before."""
    reason = beds.why_not()
    if reason:
        pytest.skip(reason)
    was_up = bool(beds.existing())
    node_ansible.fetch(layout.ROOT)
    beds.up(COUNT)
    machines.PLACE.mkdir(exist_ok=True)
    metadata, stops = machines.Metadata(), []
    try:
        account = Account(_empty(machines.PLACE / "control"), SETTINGS, site_variables(Mirror(layout.STATE / "www")))
        stops.append(account.cloud.close)
        image = machines.make_image(layout.machine(1), machines.aws_names(REGION, account.bucket))
        metadata.start()
        stops.append(metadata.stop)
        running: dict[str, layout.Machine] = {}
        # EC2 ends an instance at once when its launch is given up: what is not in S3 by then is lost.
        hook = Hook(lambda instance: machine.stop(running[instance]))
        address(add=True)
        stops.append(lambda: address(add=False))
        front = Front(machines.AWS_ADDRESS, machines.certificate(REGION), hook, account.cloud.port)
        stops.append(front.close)
        yield Site(account, hook, front, metadata, image, running)
    finally:
        for stop in reversed(stops):
            stop()
        if not was_up:
            beds.down()


SETTINGS = {"gpuInstanceType": TYPE, "gpuNodeCount": 1}


def address(*, add: bool) -> None:
    """AWS' address on the bed's bridge."""
    words = ["ip", "address", "replace" if add else "delete", f"{machines.AWS_ADDRESS}/32", "dev", layout.BRIDGE]
    subprocess.run(words, check=False, capture_output=True)


def _empty(place: Path) -> Path:
    subprocess.run(["rm", "-rf", str(place)], check=True)
    place.mkdir(parents=True)
    return place
