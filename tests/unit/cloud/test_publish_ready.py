"""What publishing needs of this machine."""

import pytest

from flightline.cloud.publish_ready import lacking
from flightline.cloud.publish_settings import Publish


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No AWS settings but those of a test."""
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (Publish(channels={"slack": "env:FLIGHTLINE_NO_HOOK"}), "flightline_publish.slack: saw no secret there"),
        (Publish(channels={"slack_bot": "file:/no/such", "slack_channel": "C1"}),
         "flightline_publish.slack_bot: saw FileNotFoundError"),
        (Publish(channels={"slack": "secretsmanager:x"}), "flightline_publish.region: saw no AWS region"),
        (Publish(table="abc"), "flightline_publish.region: saw no AWS region"),
        (Publish(table="abc", region="eu-west-1", channels={"slack_ca": "/no/ca.pem"}),
         "slack_ca: saw No such file or directory"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named_with_what_was_wanted(settings, wanted):
    (said,) = lacking(settings)
    assert wanted in said and "wanted" in said


def test_a_profile_that_there_is_not(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    (said,) = lacking(Publish(table="abc"))
    assert "nobody" in said and "do: look at AWS_PROFILE" in said


def test_what_is_there_is_no_mistake(monkeypatch, tmp_path):
    monkeypatch.setenv("HOOK", "https://hooks.slack.com/x")
    (tmp_path / "token").write_text("xoxb-1")
    slack = Publish(channels={"slack": "env:HOOK", "slack_bot": f"file:{tmp_path}/token", "slack_channel": "C1"})
    assert list(lacking(slack)) == [] == list(lacking(Publish(table="abc", bucket="def", region="eu-west-1")))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert list(lacking(Publish(channels={"topic": "t"}))) == []
