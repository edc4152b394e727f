"""One thread per incident, on moto's SNS; what cannot be sent costs no step."""

from dataclasses import replace

import pytest

from flightline.cloud.clients import Clients
from flightline.cloud.publish_settings import Publish, publish
from flightline.cloud.telling import voice_of
from flightline.healing.journal.incident import from_dict
from flightline.healing.journal.notice import Notices
from flightline_node.model import SettingsError
from tests.emulated import REGION, lead_to
from tests.unit.healing.made import H, incident, through
from tests.unit.tell.receiver import TOKEN, Receiver


def noticing(wanted, say):
    return Notices(voice_of(wanted, Clients(REGION)), wanted.scope, say)


@pytest.fixture
def cloud(server, monkeypatch):
    return lead_to(server, monkeypatch)


def test_every_message_of_an_incident_has_its_subject(cloud):
    arn, queue = cloud.topic()
    said = []
    notices = noticing(Publish(channels={"topic": arn}), said.append)
    one = incident("gpu-07")
    one = notices.incident(one)
    for kind in (H.QUARANTINED, H.DRAINED, H.STARTED, H.REPAIRED, H.VERIFIED, H.RETURNED):
        one = notices.incident(through(one, kind))
        assert notices.incident(one) is one
    notices.stop("p5", "xid on 5 of 12")
    told = cloud.told(queue)
    assert said == []
    assert len(told) == 5
    assert {message["Subject"] for message in told[:4]} == {f"Flightline incident fleet gpu-07 (i-gpu-07) {one.id}"}
    assert "returned" in told[3]["Message"]
    assert "STOP" in told[4]["Subject"]


def test_what_cannot_be_sent_is_said(cloud):
    said = []
    arn = f"arn:aws:sns:{REGION}:123456789012:nowhere"
    notices = noticing(Publish(channels={"topic": arn}), said.append)
    one = through(incident(), H.QUARANTINED)
    assert notices.incident(one) is one, "people do not know it"
    assert "nobody was told" in said[0]
    told = noticing(Publish(channels={"topic": cloud.topic()[0]}), pytest.fail).incident(one)
    assert told.told == {"sns": f"{one.events[-1].at} quarantined"}, "the next round tells it"


def test_on_a_fifo_topic_no_message_of_an_incident_is_dropped_as_a_double():
    sent = []

    class Sns(Clients):
        def get(self, _):
            return self

        def publish(self, **message):
            sent.append(message)

    wanted = Publish(channels={"topic": f"arn:aws:sns:{REGION}:123456789012:told.fifo"})
    notices = Notices(voice_of(wanted, Sns()), "fleet", pytest.fail)
    one = notices.incident(through(incident(), H.QUARANTINED))
    notices.incident(through(one, H.HELD))
    assert {message["MessageGroupId"] for message in sent} == {one.id}
    assert len({message["MessageDeduplicationId"] for message in sent}) == 2


@pytest.fixture
def hook(tmp_path, monkeypatch):
    """A local stand-in of Slack."""
    made = Receiver(tmp_path)
    monkeypatch.setenv("BOT", TOKEN)
    yield made
    made.close()


def bot(hook, said, channel="C1"):
    given = {"slack_bot": "env:BOT", "slack_channel": channel, "slack_api": hook.api, "slack_ca": str(hook.ca)}
    return noticing(publish(given), said)


def test_a_bot_tells_an_incident_in_one_thread(hook):
    one = through(incident("gpu-07"), H.QUARANTINED)
    notices = bot(hook, pytest.fail)
    one = notices.incident(one)
    for kind in (H.DRAINED, H.STARTED, H.REPAIRED, H.VERIFIED, H.RETURNED):
        thread = one.thread
        one = bot(hook, pytest.fail).incident(through(one, kind))
        assert one.thread == thread, "another process goes on with it"
    assert [message.get("thread_ts") for message in hook.got] == [None, one.thread, one.thread, one.thread]
    assert one.id in hook.got[0]["text"]
    other = through(incident("gpu-08"), H.QUARANTINED)
    assert notices.incident(other).thread != one.thread


def test_the_thread_is_kept_with_the_incident(hook):
    one = replace(through(incident("gpu-07"), H.QUARANTINED), thread="17.1")
    assert from_dict(one.to_dict()).thread == "17.1"
    raw = one.to_dict()
    del raw["thread"]
    assert from_dict(raw).thread == "", "an incident that an older flightline has stored"


def test_a_token_shows_nowhere(hook, monkeypatch, caplog):
    said = []
    monkeypatch.setenv("BOT", "xoxb-very-secret-other")
    one = through(incident("gpu-07"), H.QUARANTINED)
    assert bot(hook, said.append).incident(one).thread == ""
    assert "invalid_auth" in said[0] and "very-secret" not in said[0] + caplog.text
    with pytest.raises(SettingsError) as error:
        publish({"slack_bot": "xoxb-very-secret", "slack_channel": "C1"})
    assert "very-secret" not in str(error.value)
    with pytest.raises(SettingsError, match="slack_channel"):
        publish({"slack_bot": "env:BOT"})
