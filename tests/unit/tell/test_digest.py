"""What people are told: everything they need, once, within the limits of SNS and Slack."""

import json

import pytest

from flightline.tell import digest as messages
from flightline.tell.channels import slack, sns
from flightline.tell.digest import Alert, Digest

NOW, LATER, EARLIER = (f"2026-11-21T{hour}:00:00+00:00" for hour in ("10", "12", "08"))
DAY_S = 86_400.0


def alert(node="i-1", check="row_remap", device="GPU 3", **rest):
    base = {"status": "FAIL", "message": "GPU 3: a remapping failed", "host": "gpu-01", "instance_id": node}
    words = {
        "measured": "yes",
        "expected": "no",
        "remedy": "REPLACE",
        "remedy_text": "Replace the instance.",
        "at": NOW,
    }
    return Alert(node, check, device=device, **{**base, **words, **rest})


def digest(*alerts, **rest):
    return Digest("Flightline NO-GO fleet: 1 of 2 nodes no-go", tuple(alerts), run_id="r1", **rest)


def known(*alerts, now=NOW):
    return messages.plan({}, alerts, set(), now, DAY_S).put


def test_ten_thousand_duplicates_are_one():
    many = messages.collapse(alert(at=str(number)) for number in range(10_000))
    assert len(many) == 1 and many[0].seen == 10_000 and many[0].at == "0"
    assert "(10,000 times)" in messages.render(digest(*many))


def test_people_read_node_device_check_measured_expected_remedy_and_link():
    told = digest(alert(), link="https://x.example/r1")
    text, blocks = messages.render(told), json.dumps(slack.message(told))
    for wanted in ("gpu-01 (i-1)", "GPU 3", "row_remap", "measured yes", "REPLACE"):
        assert wanted in text and wanted in blocks, wanted
    for wanted in ("expected  no", "REPLACE: Replace the", "https://x.example/r1", "Look back: flightline report r1\n"):
        assert wanted in text, wanted
    assert "expected no" in blocks and "<https://x.example/r1|Report>" in blocks


def test_the_same_trouble_of_many_nodes_is_told_in_one_group():
    text = messages.render(digest(*(alert(f"i-{n}", host=f"gpu-{n}") for n in range(3)), alert(check="xid")))
    assert text.count("do        REPLACE") == 2 and "FAIL row_remap on 3 nodes" in text and text.count("where") == 4


def test_new_troubles_are_told_and_remembered():
    plan = messages.plan({}, [alert(), alert(check="xid")], set(), NOW, DAY_S)
    assert [item.check for item in plan.tell] == ["row_remap", "xid"] and not plan.quiet
    assert plan.put["i-1#row_remap#GPU 3"]["first_at"] == plan.put["i-1#row_remap#GPU 3"]["notified_at"] == NOW


def test_a_known_trouble_is_quiet_until_it_is_due():
    before = known(alert())
    assert messages.plan(before, [alert()], set(), LATER, DAY_S).quiet == [alert()]
    assert not messages.plan(before, [alert()], set(), LATER, DAY_S).put
    again = messages.plan(before, [alert()], set(), LATER, 3600.0)
    assert again.tell == [alert()]
    assert again.put[alert().key]["first_at"] == NOW and again.put[alert().key]["notified_at"] == LATER
    assert messages.plan(before, [alert()], set(), LATER, 0).quiet, "0 is never"


def test_another_status_is_news():
    before = known(alert(status="UNKNOWN"))
    assert messages.plan(before, [alert()], set(), LATER, DAY_S).tell == [alert()]


def test_only_a_good_measurement_is_a_recovery():
    before = known(alert(), alert(check="xid"))
    plan = messages.plan(before, [], {("i-1", "row_remap"), ("i-2", "xid")}, LATER, DAY_S)
    assert [item.check for item in plan.recovered] == ["row_remap"] and plan.drop == ["i-1#row_remap#GPU 3"]
    assert "row_remap on gpu-01 (i-1), GPU 3 (wrong since 2026-11-21T10" in messages.render(
        digest(recovered=tuple(plan.recovered))
    )
    assert messages.plan(before, [], set(), LATER, DAY_S).recovered == [], "silence is none"


def test_an_old_run_that_comes_late_recovers_nothing():
    assert messages.plan(known(alert()), [], {("i-1", "row_remap")}, EARLIER, DAY_S).recovered == []


def test_keys_tell_nodes_checks_and_devices_apart():
    keys = {
        alert().key,
        alert("i-2").key,
        alert(check="xid").key,
        alert(device="GPU 4").key,
        alert("a#b", "c").key,
        alert("a", "b#c").key,
    }
    assert len(keys) == 6
    assert alert(message="other", measured="9").key == alert().key, "what changes from run to run is no new trouble"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Flightline NO-GO", "Flightline NO-GO"),
        ("a\nb\r\nBcc: x", "a b Bcc: x"),
        ("Zürich \N{BULLET} Fleet", "Zurich Fleet"),
        ("!!! now", "now"),
        ("", "Flightline"),
        ("\N{SNOWMAN}", "Flightline"),
    ],
)
def test_subjects_are_what_sns_takes(text, subject):
    assert messages.subject(text) == subject


def test_a_long_subject_is_below_100_characters():
    assert len(messages.subject("x" * 500)) == 99


@pytest.mark.parametrize("letter", ["x", "\N{GREEK SMALL LETTER ALPHA}", "\N{SNOWMAN}"])
def test_a_message_stays_below_256_kib_and_says_what_is_missing(letter):
    huge = [alert(f"i-{number}", message=letter * 5000, host=letter * 200) for number in range(3000)]
    made = sns.message(digest(*huge, link="https://x.example/r1"), "arn:aws:sns:eu-west-1:123456789012:t")
    attributes = json.dumps(made["MessageAttributes"])
    assert 200_000 < len(made["Message"].encode()) + len(attributes) + len(made["Subject"]) < 256 * 1024
    assert "more lines do not fit" in made["Message"] and made["Message"].rstrip().endswith("flightline report r1")
    assert "https://x.example/r1" in made["Message"]


def test_text_from_nodes_cannot_steer_a_terminal_or_travel_broken():
    text = messages.render(digest(alert(message="\x1b[2Jgone\u202e", host="\ud800")))
    assert "\x1b" not in text and "\u202e" not in text
    assert text.encode("utf-8")


def test_a_fifo_topic_gets_the_key_to_drop_what_comes_twice():
    made = sns.message(digest(alert()), "arn:aws:sns:eu-west-1:123456789012:t.fifo")
    assert made["MessageDeduplicationId"] == digest(alert()).key and len(digest(alert()).key) <= 128
    assert "MessageGroupId" not in sns.message(digest(alert()), "arn:aws:sns:eu-west-1:123456789012:t")


@pytest.mark.parametrize(
    ("made", "command"),
    [
        (digest(alert(), store="aws:t"), "flightline report r1 --store aws:t"),
        (Digest("burst", (alert(),), store="aws:t"), "flightline history i-1 --store aws:t"),
        (Digest("burst", recovered=(alert(),), store="aws:t"), "flightline history i-1 --store aws:t"),
        (Digest("test", store="aws:t"), ""),
    ],
)
def test_the_message_says_how_to_look_back_from_anywhere(made, command):
    assert made.again == command
    assert ("Look back: " in messages.render(made)) is bool(command)
    assert (f"Look back: {command}" in json.dumps(slack.message(made))) is bool(command)


def test_a_digest_survives_the_spool():
    whole = digest(alert(), recovered=(alert(check="xid"),), quiet=3, facts=("a", "b"), link="l")
    assert Digest.from_json(whole.to_json()) == whole and Digest.from_json(whole.to_json()).key == whole.key


def test_slack_blocks_stay_within_the_limits():
    huge = [alert(f"i-{n}", f"check{n % 60}", message="&" * 5000, remedy_text="<" * 3000) for n in range(3000)]
    made = slack.message(digest(*huge, recovered=tuple(huge), quiet=7, facts=("x" * 9000,), link="https://x.example"))
    assert len(made["blocks"]) <= 50
    for block in made["blocks"]:
        texts = [block["text"]] if "text" in block else block["elements"]
        assert all(0 < len(text["text"]) <= (150 if text["type"] == "plain_text" else 3000) for text in texts)


def test_slack_text_cannot_mention_or_link():
    made = json.dumps(slack.message(digest(alert(message="<!channel> <https://evil.example|click> & co"))))
    assert "<!channel>" not in made and "<https://evil" not in made and "&lt;!channel&gt;" in made


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(None, "C", ""), (True, "", "yes"), (1.5, "GB/s", "1.5 GB/s"), ({"a": [1]}, "", '{"a": [1]}')],
)
def test_values_are_short_text(value, unit, text):
    assert messages.shown(value, unit) == text
