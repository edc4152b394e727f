"""Settings: every mistake is named, and a webhook given in the open is refused without being repeated."""

import pytest

from flightline.cloud import publish_settings
from flightline_node.model import SettingsError

TOPIC = "arn:aws:sns:eu-west-1:123456789012:flightline"


def test_true_is_the_default_table():
    assert (
        publish_settings.publish(True)
        == publish_settings.publish("aws")
        == publish_settings.Publish(table="flightline-results")
    )
    assert publish_settings.publish({"table": True}) == publish_settings.Publish(table="flightline-results")
    assert publish_settings.publish(None) is publish_settings.publish({}) is publish_settings.publish(False) is None


def test_settings_survive_the_outbox():
    given = publish_settings.publish(
        {"topic": TOPIC, "slack": "env:HOOK", "ttl_days": "7", "slack_hosts": ["127.0.0.1"]}
    )
    assert publish_settings.publish(given.to_dict()) == given and given.ttl_days == 7.0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"tabel": "x"}, "tabel: no such setting: saw 'tabel', wanted one of table"),
        ({"scope": "x"}, "nothing to publish to"),
        ({"topic": "flightline"}, "wanted an SNS topic's ARN"),
        ({"table": "a b"}, "DynamoDB table's name"),
        ({"bucket": "Not_A_Bucket"}, "S3 bucket's name"),
        ({"table": "abc", "ttl_days": "soon"}, "ttl_days: saw 'soon', wanted a number"),
        ({"table": "abc", "renotify_hours": -1}, "renotify_hours: saw -1"),
        ({"table": "abc", "ttl_days": "inf"}, "ttl_days: saw 'inf', wanted a number from 0 to 36,500"),
        ({"table": "abc", "renotify_hours": "nan"}, "renotify_hours: saw 'nan'"),
        ({"table": "abc", "slack_hosts": 5}, "slack_hosts: saw 5, wanted a list of host names"),
        ({"table": "abc", "slack_hosts": [None]}, "wanted a list of host names"),
        ({"table": "abc", "region": {"a": 1}}, "region: saw {'a': 1}, wanted text: AWS region"),
        ({"slack": "HOOK"}, "slack: saw 'HOOK', wanted where the incoming webhook is kept"),
        (7, "saw 7, wanted true or a mapping"),
    ],
)
def test_mistakes_say_what_was_wanted(given, wanted):
    with pytest.raises(SettingsError) as caught:
        publish_settings.publish(given)
    assert wanted in str(caught.value)


WEBHOOK = "https://hooks.slack.com/services/T0/B0/verysecret"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({"slack": WEBHOOK}, "env:NAME"), ({"topic": WEBHOOK}, "an SNS topic's ARN"), (WEBHOOK, "true or a mapping")],
)
def test_a_webhook_in_the_open_is_refused_and_not_repeated(given, wanted):
    with pytest.raises(SettingsError) as caught:
        publish_settings.publish(given)
    assert "verysecret" not in str(caught.value) and wanted in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["table=abc,topic=" + TOPIC, f"table=abc topic={TOPIC}", f'{{"table": "abc", "topic": "{TOPIC}"}}'],
)
def test_the_environment_in_words_or_json(text, monkeypatch):
    monkeypatch.setenv(publish_settings.PUBLISH_ENV, text)
    assert publish_settings.publish(publish_settings.from_environment()) == publish_settings.Publish(
        table="abc", channels={"topic": TOPIC}
    )


def test_the_link_of_a_run():
    assert publish_settings.Publish(bucket="b").link_of("r1") == "s3://b/runs/r1/report.html"
    assert (
        publish_settings.Publish(bucket="b", link="https://x.example/{run}/").link_of("r1") == "https://x.example/r1/"
    )
    assert publish_settings.Publish(table="t").link_of("r1") == ""
