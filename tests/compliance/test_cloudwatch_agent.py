"""Role cloudwatch_agent."""

import pytest

from .looking import installed, say, units

HOME = "/opt/aws/amazon-cloudwatch-agent"
AGENT = "amazon-cloudwatch-agent.service"


@pytest.fixture
def config(ask):
    return ask.json(f"{HOME}/etc/flightline.json")


@pytest.fixture
def sends(wanted):
    started = wanted["cloudwatch_agent_state"] == "started"
    say.needs(started, "cloudwatch_agent_state is valid: nothing is sent from here")


def test_agent_runs(ask, strangers, sends):
    """A node that sends nothing looks healthy to every alarm that is not about missing data."""
    units.runs(ask, strangers, AGENT)


def test_agent_starts_at_boot(ask, strangers, sends):
    """The first minutes after a boot are when most faults show."""
    units.enabled(units.effective(ask, strangers, AGENT), AGENT)


def test_agent_is_its_package(ask, sends):
    """It runs as root and its output is what alarms look at."""
    found = [path for path in ask.altered(("amazon-cloudwatch-agent",)) if f"{HOME}/etc" not in path]
    say.none(
        "not as the agent's package brought them",
        found,
        "unchanged files",
        "dpkg -i /var/cache/flightline/amazon-cloudwatch-agent.deb (rpm -U)",
    )


def test_agent_has_loaded_the_configuration(ask, sends, config):
    """What is in the file and what runs are two things until it is loaded."""
    loaded = ask.json(f"{HOME}/etc/amazon-cloudwatch-agent.d/file_flightline.json")
    say.none("the agent has loaded", installed.differences(loaded, config), "flightline.json", say.CONFIGURE)


def test_agent_has_loaded_nothing_else(ask, sends):
    """The agent merges all files of this directory: another one can take metrics out, or send them elsewhere."""
    found = ask.found(f"find {HOME}/etc/amazon-cloudwatch-agent.d -type f ! -name file_flightline.json ! -name default")
    say.none("the agent also reads", found, "file_flightline.json alone", "remove it")


def test_configuration_is_the_inventorys(ask, site, name, wanted, sends, config):
    """Metrics, logs, namespace and retention: what alarms and bills are made of."""
    plan = (
        wanted["cloudwatch_agent_config"]
        or site.of_role(name, "cloudwatch_agent", ask.facts())["_cloudwatch_agent_rendered"]
    )
    installed.agrees(config, plan, "flightline.json", "the role's configuration")


def test_metrics_go_to_the_clusters_namespace(wanted, sends, config):
    """Alarms and dashboards look in this namespace only."""
    say.needs(not wanted["cloudwatch_agent_config"], "the site brings its own configuration")
    say.same("metrics go to", config["metrics"]["namespace"], wanted["cloudwatch_agent_namespace"])


def test_logs_have_a_retention(wanted, sends, config):
    """Logs without an end are kept, and billed, for ever."""
    say.needs(not wanted["cloudwatch_agent_config"], "the site brings its own configuration")
    files = config["logs"]["logs_collected"]["files"]["collect_list"]
    days = {entry.get("retention_in_days", 0) for entry in files}
    own = wanted["cloudwatch_agent_log_retention_days"] if wanted["cloudwatch_agent_sets_retention"] else 0
    say.same("logs are kept for days", days, {own})


def test_configuration_belongs_to_root(ask, sends):
    """Whoever writes it decides what leaves the node."""
    installed.roots_alone(ask, f"{HOME}/etc/flightline.json")
