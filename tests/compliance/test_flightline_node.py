"""Role flightline_node."""

from __future__ import annotations

import json


def test_package_is_there_and_roots(host, wanted):
    """The boot preflight runs it as root."""
    file = host.file(f"{wanted['flightline_node_directory']}/flightline-node.pyz")
    assert file.exists
    assert (file.user, file.mode & 0o022) == ("root", 0)


def test_node_knows_its_instance_type(host, wanted):
    """Expected values come from the inventory, never from the node under test."""
    settings = json.loads(host.file("/etc/flightline/node.json").content_string)
    assert settings["instance_type"] == wanted["flightline_node_instance_type"]


def test_preflight_runs_at_every_boot(host):
    """A node that was fine before a reboot need not be fine after it."""
    assert host.service("flightline-boot").is_enabled


def test_preflight_runs_before_the_scheduler(host):
    """A job that starts before the verdict runs on a node nobody has judged."""
    text = host.file("/etc/systemd/system/flightline-boot.service").content_string
    assert "Before=" in text
    assert "slurmd.service" in text


def test_logs_are_rotated(host):
    """A log that grows for ever fills the root disk of a node that nobody logs into."""
    assert host.run("logrotate --debug /etc/logrotate.d/flightline").rc == 0
    assert "/var/log/flightline" in host.file("/etc/logrotate.d/flightline").content_string


def test_check_program_belongs_to_root(host):
    """The scheduler runs it as root before every job."""
    file = host.file("/usr/local/sbin/flightline-check")
    assert (file.user, file.mode & 0o777) == ("root", 0o755)
