"""Machines of the bed as EC2 instances: an image of their own with cloud-init and the AWS CLI, and a launch from it.

The image is Debian's with what AWS' own images bring: cloud-init (its Ec2 data source), AWS CLI, curl. Nothing of Flightline
is on it. Of the machine only its address, its SSH keys, AWS' names in /etc/hosts and the bed's certificate authority are set.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.beds import ran
from tests.integration.bed import bed as beds
from tests.integration.bed import image, inventory, layout, machine, mounts, processes, vendors

from . import metadata

AWS_ADDRESS = f"{layout.SUBNET}.2"
NAMESPACE, LINK = f"flmeta{layout.BED}", f"flmeta{layout.BED}"
PLACE = layout.STATE / "machines" / "boot"
"""Not a machine's name; goes with the bed."""

CLOUD = """\
# Of the bed: where the instance's data is; the network, the login and the host keys are the bed's own.
datasource_list: [Ec2]
datasource: {Ec2: {strict_id: false, metadata_urls: ["http://169.254.169.254"], max_wait: 60}}
network: {config: disabled}
ssh_deletekeys: false
preserve_hostname: true
manage_etc_hosts: false
apt_preserve_sources_list: true
users: []
locale: C.UTF-8
"""
ROUTE = f"[Route]\nDestination={metadata.ADDRESS}/32\nScope=link\n"
BRING = "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && apt-get -qq -y install cloud-init awscli curl"


def aws_names(region: str, bucket: str) -> str:
    """Lines of /etc/hosts in place of AWS' DNS."""
    hosts = (f"s3.{region}.amazonaws.com", f"{bucket}.s3.{region}.amazonaws.com")
    return "".join(f"{AWS_ADDRESS} {name}\n" for name in (*hosts, f"{bucket}.s3.amazonaws.com"))


def certificate(region: str) -> Path:
    """Key and certificate for AWS' names, from the bed's authority."""
    place = layout.STATE / "tls"
    names = [f"s3.{region}.amazonaws.com", f"*.s3.{region}.amazonaws.com"]
    return vendors.issue(place, "aws", [*names, "*.s3.amazonaws.com"])


class Metadata:
    """The metadata service in a network namespace on the bed's bridge."""

    def __init__(self) -> None:
        self.file = PLACE / "metadata.json"
        self.pid = PLACE / "metadata.pid"

    def start(self) -> None:
        """Make the namespace and serve there."""
        self.stop()
        self.file.write_text("{}")
        for words in (
            f"netns add {NAMESPACE}",
            f"link add {LINK} type veth peer name eth0 netns {NAMESPACE}",
            f"link set {LINK} master {layout.BRIDGE} up",
            f"-n {NAMESPACE} link set lo up",
            f"-n {NAMESPACE} address add {metadata.ADDRESS}/32 dev eth0",
            f"-n {NAMESPACE} link set eth0 up",
            f"-n {NAMESPACE} route add {layout.SUBNET}.0/24 dev eth0",
        ):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
        argv = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-m", "tests.boot.metadata", str(self.file)]
        processes.start(argv, self.pid, PLACE / "metadata.log", layout.ROOT)

    def say(self, paths: dict[str, str]) -> None:
        """From now on the service says this."""
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(paths))
        draft.rename(self.file)

    def stop(self) -> None:
        """End it and remove its namespace, also those of a run that was killed."""
        if pid := processes.alive(self.pid, str(self.file)):
            processes.end(pid)
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False, capture_output=True)


def ssh(one: layout.Machine, command: str, *, check: bool = True) -> str:
    """Run a command as root; returns what it printed."""
    done = ran(*machine.ssh_words(one), "bash", "-s", input=command)
    assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def make_image(one: layout.Machine, hosts: str) -> Path:
    """Bring a bare machine what AWS' image has, and keep its disk. hosts: lines of /etc/hosts."""
    place = PLACE / "image"
    if place.is_dir():
        return place
    machine.stop(one)
    mounts.remove(one.directory)
    beds.up(int(one.name.rpartition("-")[2]))
    authority = (layout.STATE / "tls/ca.crt").read_text()
    ssh(one, vendors.introduce().replace("cat >", f"printf '%s' '{authority}' >"))
    ssh(one, BRING)
    (PLACE / "hosts").write_text(hosts + "".join(f"{layout.GATEWAY} {name}\n" for name in vendors.HOSTS))
    return keep(one, "image")


def keep(one: layout.Machine, name: str) -> Path:
    """Stop a machine and keep its disk as an image."""
    machine.stop(one)
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(["cp", "-a", str(one.upper), str(place)], check=True)
    return place


def launch(one: layout.Machine, disk: Path) -> None:
    """Start a machine from an image, as a new machine: keys, machine id, instance store."""
    machine.stop(one)
    mounts.remove(one.directory)
    one.directory.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(disk), str(one.upper)], check=True)
    for key in one.upper.glob("etc/ssh/ssh_host_*"):
        key.unlink()
    root = image.build(layout.STATE)
    fleet = beds.existing()
    machine.clone(one, fleet, (layout.STATE / "id_ed25519.pub").read_text(), beds.login_uid(root))
    with (one.upper / "etc/hosts").open("a") as rows:
        rows.write((PLACE / "hosts").read_text())
    own = one.upper / "etc/systemd/network/10-host0.network"
    own.write_text(own.read_text() + ROUTE)
    place = one.upper / "etc/cloud/cloud.cfg.d/99-bed.cfg"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(CLOUD)
    inventory.write(fleet, layout.STATE)
    machine.start(one, root)
    machine.wait(one)
