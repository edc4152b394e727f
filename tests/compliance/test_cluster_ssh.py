"""Role cluster_ssh."""

from __future__ import annotations


def home(host, wanted):
    return host.user(wanted["cluster_ssh_user"]).home


def test_key_is_readable_by_its_user_only(host, wanted):
    """sshd refuses a key that others can read, and others could use it."""
    file = host.file(f"{home(host, wanted)}/.ssh/id_flightline_mpi")
    assert (file.user, file.mode & 0o077) == (wanted["cluster_ssh_user"], 0)


def test_key_can_only_launch_mpi(host, wanted):
    """The key lies on every node without a passphrase; it must not open a shell on the others."""
    public = host.file(f"{home(host, wanted)}/.ssh/id_flightline_mpi.pub").content_string.split()[1]
    lines = host.file(f"{home(host, wanted)}/.ssh/authorized_keys").content_string.splitlines()
    mine = [line for line in lines if public in line]
    assert mine
    assert all(
        line.startswith("restrict,") and 'command="/usr/local/libexec/flightline-mpi-launch"' in line for line in mine
    )


def test_launch_program_belongs_to_root(host):
    """It decides what the key may start."""
    file = host.file("/usr/local/libexec/flightline-mpi-launch")
    assert (file.user, file.mode & 0o777) == ("root", 0o755)


def test_host_keys_of_the_cluster_are_known(host, wanted):
    """Otherwise mpirun asks a question that nobody answers, or somebody turns the checking off."""
    known = host.file("/etc/ssh/ssh_known_hosts").content_string
    assert [name for name in wanted["cluster_ssh_hosts"] if name not in known] == []


def test_host_key_checking_stays_on(host):
    """Turned off, any machine on the network can be the other node."""
    text = host.file("/etc/ssh/ssh_config.d/10-flightline-cluster.conf").content_string
    assert "StrictHostKeyChecking no" not in text
