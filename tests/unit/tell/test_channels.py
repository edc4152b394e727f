"""Every channel: what it sends by its vendor's documentation, on a local stand-in, and no secret in any text."""

import json
import traceback

import pytest

from flightline.tell.channel import SECRET, DeliveryError, Means
from flightline.tell.channels import CHANNELS, pagerduty, teams, webhook
from flightline.tell.digest import Alert, Digest

from .receiver import PATH, Receiver

KEY = "very-secret-part"
BAD = Alert("i-1", "row_remap", "FAIL", "GPU 3: row remapping failed", host="gpu-1", device="GPU 3", measured="yes",
            expected="no", remedy="REPLACE", remedy_text="Replace the instance.")  # fmt: skip
TOLD = Digest(
    "Flightline NO-GO fleet: 1 of 2 nodes no-go", (BAD,), run_id="r1", scope="fleet", link="https://x.example"
)


@pytest.fixture
def receiver(tmp_path):
    made = Receiver(tmp_path)
    yield made
    made.close()


def means(receiver, channel, monkeypatch, **given):
    """The settings of a channel that lead it to the stand-in."""
    own = {one.name: one.default for one in CHANNELS[channel].settings}
    own |= {name: str(receiver.ca) for name in own if name.endswith("_ca")}
    own |= {name: "127.0.0.1" for name in own if name.endswith("_hosts")}
    monkeypatch.setenv("ADDRESS", receiver.url)
    monkeypatch.setenv("KEY", KEY)
    return Means(own | {channel: "env:ADDRESS"} | given, pytest.fail, pytest.fail)


def to_pagerduty(receiver, monkeypatch):
    return means(receiver, "pagerduty", monkeypatch, pagerduty="env:KEY", pagerduty_host=receiver.api)


def sent(receiver):
    return [json.loads(body) for _, _, body in receiver.asked]


def test_pagerduty_has_an_event_for_a_trouble_and_resolves_it_by_its_key(receiver, monkeypatch):
    there = to_pagerduty(receiver, monkeypatch)
    pagerduty.send(TOLD, there)
    pagerduty.send(Digest("better", recovered=(BAD,), scope="fleet"), there)
    (raised, solved), paths = sent(receiver), {path for path, *_ in receiver.asked}
    assert paths == {"/v2/enqueue"} and raised["routing_key"] == solved["routing_key"] == KEY
    assert (raised["event_action"], solved["event_action"]) == ("trigger", "resolve")
    assert raised["dedup_key"] == solved["dedup_key"] == "fleet#i-1#row_remap#GPU 3"
    payload = raised["payload"]
    assert payload["summary"].startswith("FAIL row_remap on gpu-1 (i-1) GPU 3: GPU 3: row remapping")
    assert (payload["source"], payload["severity"], payload["class"]) == ("gpu-1", "critical", "row_remap")
    assert payload["custom_details"]["remedy"] == "REPLACE"
    assert raised["links"] == [{"href": "https://x.example", "text": "Report"}]


def test_a_whole_fleet_in_trouble_is_few_events(receiver, monkeypatch):
    many = tuple(Alert(f"i-{n}", "xid", "FAIL", "x" * 3000) for n in range(500))
    pagerduty.send(Digest("NO-GO", many, scope="fleet"), to_pagerduty(receiver, monkeypatch))
    made = sent(receiver)
    assert len(made) == pagerduty.MOST_EVENTS + 1 and "475 more troubles" in made[-1]["payload"]["summary"]
    assert all(len(one["payload"]["summary"]) <= 1024 and len(one["dedup_key"]) <= 255 for one in made)


def test_an_incident_is_one_page_until_it_is_over(receiver, monkeypatch):
    there = to_pagerduty(receiver, monkeypatch)
    for facts, over in ((("quarantined",), False), (("held",), False), (("returned",), True)):
        pagerduty.send(Digest("incident", facts=facts, about="i1", scope="fleet", over=over), there)
    made = sent(receiver)
    assert [one["event_action"] for one in made] == ["trigger", "trigger", "resolve"]
    assert {one["dedup_key"] for one in made} == {"fleet#i1"}


def test_a_teams_card_has_no_markdown_and_is_small_enough(receiver, monkeypatch):
    evil = [Alert(f"i-{n}", f"check_{n}", "FAIL", "[click](https://evil.example) " * 50) for n in range(500)]
    teams.send(Digest("NO-GO", tuple(evil), link="https://x.example"), means(receiver, "teams", monkeypatch))
    ((path, _, body),) = receiver.asked
    assert path == PATH and len(body) <= 28 * 1024
    (attachment,) = json.loads(body)["attachments"]
    card = attachment["content"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive" and card["type"] == "AdaptiveCard"
    assert {one["type"] for one in card["body"]} == {"RichTextBlock"}, "TextBlock would read Markdown"
    assert "more kinds of trouble" in json.dumps(card["body"][-1]) + json.dumps(card["body"][-2])
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Report", "url": "https://x.example"}]


def test_a_small_teams_card_says_everything():
    text = json.dumps(teams.card(TOLD))
    for wanted in (
        "row_remap",
        "expected no",
        "gpu-1 (i-1), GPU 3: measured yes",
        "Do: REPLACE",
        "flightline report r1",
    ):
        assert wanted in text, wanted


@pytest.mark.parametrize(
    ("secret", "key", "at", "body", "wanted"),
    [
        # The examples of the specification's own libraries.
        ("whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", 1731705121,
         '{"event_type":"ping","data":{"success":true}}', "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
         '{"test": 2432232314}', "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ],
)  # fmt: skip
def test_a_webhook_is_signed_as_the_specification_says(secret, key, at, body, wanted):
    assert webhook.signed(key, at, body.encode(), secret)["webhook-signature"] == wanted


def test_a_webhook_has_every_field_and_its_key(receiver, monkeypatch):
    webhook.send(TOLD, means(receiver, "webhook", monkeypatch))
    ((_, headers, body),) = receiver.asked
    said = json.loads(body)
    assert headers["webhook-id"] == said["key"] == TOLD.key and "webhook-signature" not in headers
    assert said["alerts"][0]["check"] == "row_remap" and said["state"] == "alert" and said["run_id"] == "r1"


def test_a_template_says_what_a_webhook_gets(receiver, monkeypatch, tmp_path):
    path = tmp_path / "template.json"
    path.write_text('{"msg": "{title} ({quiet})", "list": ["{alerts}"], "n": 3}')
    there = means(receiver, "webhook", monkeypatch, webhook_template=str(path), webhook_key="env:KEY")
    webhook.send(TOLD, there)
    ((_, headers, body),) = receiver.asked
    said = json.loads(body)
    assert said["msg"] == f"{TOLD.title} (0)" and said["n"] == 3 and said["list"][0][0]["host"] == "gpu-1"
    assert headers["webhook-signature"].startswith("v1,") and KEY not in body.decode()


def test_a_template_that_names_what_there_is_not_is_a_mistake(tmp_path):
    path = tmp_path / "template.json"
    path.write_text('{"msg": "{titel}"}')
    (said,) = webhook.lacking({"webhook_template": str(path)})
    assert "{titel}" in said and "wanted one of" in said and "title" in said
    (said,) = webhook.lacking({"webhook_template": str(tmp_path / "none")})
    assert "wanted a JSON file" in said
    assert list(webhook.lacking({"webhook_template": ""})) == []


def test_a_template_that_was_taken_away_waits(receiver, monkeypatch):
    with pytest.raises(DeliveryError, match="/no/such") as caught:
        webhook.send(TOLD, means(receiver, "webhook", monkeypatch, webhook_template="/no/such"))
    assert caught.value.later


@pytest.mark.parametrize("name", [name for name in CHANNELS if name != "sns"])
@pytest.mark.parametrize(("status", "later"), [(400, False), (503, True)])
def test_a_refusal_has_no_secret_in_it(name, status, later, receiver, monkeypatch, caplog):
    monkeypatch.setattr("flightline.tell.channel.time.sleep", lambda _: None)
    receiver.script = [(status, {})] * 5
    there = to_pagerduty(receiver, monkeypatch) if name == "pagerduty" else means(receiver, name, monkeypatch)
    with pytest.raises(DeliveryError) as caught:
        CHANNELS[name].send(TOLD, there)
    said = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert caught.value.later is later and str(status) in said and KEY not in said


def test_every_channel_says_what_switches_it_on_and_where_its_secrets_are():
    names = [one.name for channel in CHANNELS.values() for one in channel.settings]
    assert len(names) == len(set(names)) and all(channel.title for channel in CHANNELS.values())
    for name, channel in CHANNELS.items():
        own = [one for one in channel.settings if one.switches]
        assert own and all(one.kind == SECRET or name == "sns" for one in own), name
        assert all(one.what for one in channel.settings)
