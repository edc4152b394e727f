"""Role cloudwatch_agent."""

from __future__ import annotations

import json

import pytest

HOME = "/opt/aws/amazon-cloudwatch-agent"


@pytest.fixture
def config(host):
    return json.loads(host.file(f"{HOME}/etc/flightline.json").content_string)


@pytest.fixture
def sends(wanted):
    if wanted["cloudwatch_agent_state"] != "started":
        pytest.skip("cloudwatch_agent_state is valid: nothing is sent from here")


def test_agent_runs(host, sends):
    """A node that sends nothing looks healthy to every alarm that is not about missing data."""
    assert host.service("amazon-cloudwatch-agent").is_running


def test_agent_starts_at_boot(host, sends):
    """The first minutes after a boot are when most faults show."""
    assert host.service("amazon-cloudwatch-agent").is_enabled


def test_agent_has_loaded_the_configuration(host, sends, config):
    """What is in the file and what runs are two things until it is loaded."""
    loaded = host.file(f"{HOME}/etc/amazon-cloudwatch-agent.d/file_flightline.json").content_string
    assert json.loads(loaded) == config


def test_metrics_go_to_the_clusters_namespace(wanted, sends, config):
    """Alarms and dashboards look in this namespace only."""
    if wanted["cloudwatch_agent_config"]:
        pytest.skip("the site brings its own configuration")
    assert config["metrics"]["namespace"] == wanted["cloudwatch_agent_namespace"]


def test_logs_have_a_retention(wanted, sends, config):
    """Logs without an end are kept, and billed, for ever."""
    if wanted["cloudwatch_agent_config"]:
        pytest.skip("the site brings its own configuration")
    files = config["logs"]["logs_collected"]["files"]["collect_list"]
    assert {entry["retention_in_days"] for entry in files} == {wanted["cloudwatch_agent_log_retention_days"]}


def test_configuration_belongs_to_root(host, sends):
    """Whoever writes it decides what leaves the node."""
    file = host.file(f"{HOME}/etc/flightline.json")
    assert (file.user, file.mode & 0o022) == ("root", 0)
