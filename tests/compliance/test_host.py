"""What holds for every host, whatever its roles."""

from __future__ import annotations

import re

import pytest

SYSTEM_PATHS = ("/etc", "/usr", "/opt", "/var/lib", "/lib/systemd")
SECRET = r"(AKIA|ASIA)[A-Z0-9]{16}|aws_secret_access_key *[=:] *[^ ]|-----BEGIN [A-Z ]*PRIVATE KEY|xox[abp]-[0-9]|hooks[.]slack[.]com/services/T"


@pytest.mark.parametrize("path", SYSTEM_PATHS)
def test_nothing_is_world_writable(host, path):
    """A file that anybody may write lets any job on the node change what root runs. Sticky directories are shared on purpose."""
    found = host.check_output("find %s -xdev ! -type l -perm -0002 ! -perm -1000 2>/dev/null || true", path)
    assert found == ""


@pytest.mark.parametrize("path", ["/etc/systemd/system", "/etc/flightline", "/var/log/flightline", "/etc/default"])
def test_no_secret_is_written_down(host, path):
    """Unit files and logs are readable and shipped; keys belong to the instance role. Only the file's name is shown."""
    found = host.check_output("grep -rIlE -e %s %s 2>/dev/null || true", SECRET, path)
    assert found == ""


def test_root_has_no_password(host):
    """Root is reached by sudo, which is logged with the person's name; a password would be shared and guessed."""
    assert host.user("root").password[:1] in ("*", "!")


def test_nobody_has_an_empty_password(host):
    """An account without a password is open to whoever can start a session."""
    rows = [line.split(":") for line in host.file("/etc/shadow").content_string.splitlines()]
    assert [row[0] for row in rows if row[1] == ""] == []


def test_no_unit_has_failed(host):
    """A failed unit is something that a role promised and the node does not do."""
    failed = host.check_output("systemctl list-units --state=failed --plain --no-legend || true")
    assert [line.split()[0] for line in failed.splitlines()] == []


def test_only_expected_ports_are_open(host, wanted):
    """Every further listener is a way in. Loopback does not count."""
    allowed = {22, *map(int, wanted.get("compliance_open_ports") or [])}
    if "slurm_cluster_name" in wanted:
        allowed |= {6817, 6818, 6819}
    rows = host.check_output("ss -Hltn").splitlines()
    ports = {int(row.split()[3].rsplit(":", 1)[1]) for row in rows if not re.match(r"(127\.|\[::1\])", row.split()[3])}
    assert ports - allowed == set()


def test_instance_metadata_needs_a_token(host):
    """IMDSv1 hands the instance role's keys to any request that a program can be tricked into sending."""
    asked = host.run("python3 -c %s", PROBE)
    if asked.stdout.strip() == "none":
        pytest.skip("no instance metadata service answers: not an EC2 instance")
    assert asked.stdout.strip() == "401"


PROBE = """
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen('http://169.254.169.254/latest/meta-data/', timeout=2).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print('none')
"""


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/systemd/system", "/usr/local/sbin", "/opt"]
)
def test_ownership_of_the_system_is_left_alone(host, path):
    """A role that changes the owner of a system path opens it, or locks the system out."""
    assert host.file(path).user == "root"
