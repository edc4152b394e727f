"""Role base: operating system settings of a training node."""

from __future__ import annotations

import re

import pytest

OURS = (
    "/etc/sysctl.d/90-flightline.conf",
    "/etc/security/limits.d/90-flightline.conf",
    "/etc/systemd/system.conf.d/90-flightline.conf",
    "/etc/systemd/journald.conf.d/90-flightline.conf",
    "/etc/ssh/sshd_config.d/00-flightline.conf",
)


@pytest.mark.over("base_packages")
def test_package_is_installed(host, item, part):
    """The preflight's probes and the operators rely on these tools."""
    assert host.package(part("base_packages")).is_installed


@pytest.mark.over("base_sysctl")
def test_kernel_parameter(host, item, part):
    """A value that is only in a file, or only in the kernel, is lost at the next boot or not there yet."""
    assert str(host.sysctl(item)) == str(part("base_sysctl"))


@pytest.mark.over("base_sysctl")
def test_kernel_parameter_survives_a_boot(host, item, part):
    """What is only in the running kernel is gone after the next one."""
    lines = [line.replace(" ", "") for line in host.file(OURS[0]).content_string.splitlines()]
    assert f"{item}={part('base_sysctl')}" in lines


def test_huge_pages(host, wanted):
    """EFA's provider takes huge pages where there are any; memory reserved by mistake is lost to training."""
    assert host.sysctl("vm.nr_hugepages") == int(wanted["base_hugepages"])


@pytest.mark.over("base_limits")
def test_limit_of_services(host, item, part):
    """NCCL and EFA lock memory; with the default of 64 KiB the first job fails on registration."""
    value = str(part("base_limits")).replace("unlimited", "infinity")
    shown = host.check_output("systemctl show --property=DefaultLimit%s --value", item.upper())
    assert shown == value


@pytest.mark.over("base_limits")
def test_limit_of_login_sessions(host, item, part):
    """mpirun starts its daemons in login sessions, which do not inherit the services' limits."""
    lines = [line.split() for line in host.file(OURS[1]).content_string.splitlines() if not line.startswith("#")]
    assert any(line[2:] == [item, str(part("base_limits"))] for line in lines)


def test_swap_is_off(host, wanted):
    """A training process that swaps stalls its whole collective."""
    if not wanted["base_swap_off"]:
        pytest.skip("the site leaves swap on (base_swap_off)")
    assert host.check_output("swapon --show=NAME --noheadings") == ""


@pytest.mark.over("base_ssh_options")
def test_ssh_option(host, item, part):
    """What sshd itself says it runs with, not what a file says: the first of several values wins."""
    effective = dict(line.split(" ", 1) for line in host.check_output("/usr/sbin/sshd -T").splitlines() if " " in line)
    assert effective[item.lower()] == str(part("base_ssh_options")).lower()


def test_time_is_kept(host):
    """Logs of many nodes are compared by time, and tokens expire by it."""
    unit = host.service("chrony" if host.file("/etc/debian_version").exists else "chronyd")
    assert unit.is_running
    assert unit.is_enabled


@pytest.mark.over("base_time_servers")
def test_time_source(host, item, part):
    """Amazon's time source is reachable without a route to the internet, and the same for all nodes."""
    part("base_time_servers")
    path = "/etc/chrony/chrony.conf" if host.file("/etc/chrony/chrony.conf").exists else "/etc/chrony.conf"
    servers = [
        line.split()[1] for line in host.file(path).content_string.splitlines() if line.startswith(("server ", "pool "))
    ]
    assert item in servers


def test_no_other_time_source(host, wanted):
    """A public pool beside Amazon's clock pulls the node away from the others."""
    path = "/etc/chrony/chrony.conf" if host.file("/etc/chrony/chrony.conf").exists else "/etc/chrony.conf"
    lines = host.file(path).content_string.splitlines()
    servers = {line.split()[1] for line in lines if line.startswith(("server ", "pool "))}
    assert servers <= set(wanted["base_time_servers"])


def test_journal_is_kept_over_a_boot(host):
    """After a crash the kernel's last words are what tells a bad GPU from a bad job."""
    assert host.file("/var/log/journal").is_directory
    assert "Storage=persistent" in host.file(OURS[3]).content_string


def test_drivers_are_held_back_from_automatic_upgrades(host, wanted):
    """A driver that changes under a running job ends it, and Fabric Manager with it."""
    if not host.file("/etc/debian_version").exists:
        pytest.skip("apt only")
    text = host.file("/etc/apt/apt.conf.d/60flightline").content_string
    patterns = re.findall(r'"(\^[^"]+)";', text)
    assert [
        name for name in wanted["base_held_packages"] if not any(re.match(pattern, name) for pattern in patterns)
    ] == []


@pytest.mark.parametrize("path", OURS)
def test_file_belongs_to_root(host, path):
    """Whoever can write it decides how the system starts."""
    file = host.file(path)
    assert (file.user, file.group, file.mode & 0o022) == ("root", "root", 0)
