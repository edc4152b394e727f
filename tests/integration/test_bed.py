"""The real hosts themselves: fast, small, apart from each other, known by their keys, and gone without a trace."""

import subprocess
from pathlib import Path

import pytest

from tests.beds import ran, until

from .bed import bed as beds
from .bed import layout, machine, mounts, network, processes

GONE_WITHIN_S = 120
IDLE_MIB = 100
SPARE = 9


@pytest.fixture(scope="module")
def spare(bed):
    """One machine more, bare and idle."""
    one = layout.machine(SPARE)
    root = beds.image.build(beds.STATE)
    machine.clone(one, [one], (beds.STATE / "id_ed25519.pub").read_text(), beds.login_uid(root))
    yield one
    machine.stop(one)
    mounts.remove(one.directory)


def test_a_machine_boots_again_and_idles_small(spare):
    beds.restart(spare)
    assert 0 < beds.memory_mib(spare) < IDLE_MIB


def test_up_again_changes_nothing(bed):
    before = {name: bed.ssh(name, "cat /proc/sys/kernel/random/boot_id /etc/machine-id") for name in bed.hosts}
    holders = {name: bed.machine(name).pid_file.read_text() for name in bed.hosts}
    beds.up()
    assert holders == {name: bed.machine(name).pid_file.read_text() for name in bed.hosts}
    assert before == {name: bed.ssh(name, "cat /proc/sys/kernel/random/boot_id /etc/machine-id") for name in bed.hosts}


def test_every_machine_has_its_own_keys_name_and_systemd(bed):
    for fact in ("cat /etc/machine-id", "hostname", "cat /etc/ssh/ssh_host_ed25519_key.pub"):
        assert len({bed.ssh(name, fact) for name in bed.hosts}) == len(bed.hosts), fact
    for name in bed.hosts:
        assert bed.ssh(name, "ps -o comm= -p 1").strip() == "systemd"


def test_a_machine_with_another_host_key_is_refused(bed, tmp_path):
    known = (beds.STATE / "known_hosts").read_text().splitlines()
    first, second = (line.split(" ", 1) for line in known[:2])
    (tmp_path / "known_hosts").write_text(f"{first[0]} {second[1]}\n")
    argv = ["ssh", "-i", str(beds.STATE / "id_ed25519"), "-o", f"UserKnownHostsFile={tmp_path / 'known_hosts'}"]
    argv += ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ControlPath=none"]
    done = subprocess.run([*argv, f"{layout.USER}@{bed.machine(bed.hosts[0]).address}", "true"], capture_output=True)
    assert done.returncode != 0
    assert b"Host key verification failed" in done.stderr


def test_a_machine_reaches_the_bridge_and_nothing_else(bed):
    assert bed.ssh(bed.hosts[0], "ip route show default").strip() == ""
    fetch = "python3 -c 'import urllib.request as u; print(u.urlopen(\"{}\").status)'"
    assert bed.ssh(bed.hosts[0], fetch.format(f"{bed.url}/key.asc")).strip() == "200"


def test_the_proxy_asks_no_other_host(bed):
    answer = ran("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x", bed.url, "http://another.invalid/")
    assert answer.stdout == "403"


def test_a_killed_machine_leaves_no_process_and_no_mount(spare):
    beds.restart(spare)
    pid = processes.alive(spare.pid_file, str(spare.directory))
    processes.end(pid)
    assert not _left(spare)


def _left(one):
    """Processes and mounts of a machine; the kernel ends a name space a moment after its first process."""

    def found():
        rows = Path("/proc/self/mountinfo").read_text().splitlines()
        return [*processes.marked(str(one.directory)), *(row for row in rows if str(one.directory) in row)]

    until(lambda: not found(), GONE_WITHIN_S)
    return found()


def test_the_bridge_belongs_to_one_checkout(bed, tmp_path):
    with pytest.raises(layout.BedError, match=r"wanted: a free one; do: run `make hosts-down`"):
        network.up(tmp_path)
