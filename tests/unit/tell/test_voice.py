"""One voice: each channel once, one that fails costs no other, and a secret that was replaced is used."""

import pytest

from flightline.tell.channel import KEPT_S, SECRET, Channel, ChannelSetting, DeliveryError, Means
from flightline.tell.digest import Digest
from flightline.tell.voice import Destination, Voice

SAID = Digest("hello")


class Kept:
    """A memory that stays."""

    def __init__(self):
        self.over, self.threads = [], []

    def begin(self, channel):
        return channel not in self.over

    def sent(self, channel, thread):
        self.over.append(channel)
        self.threads.append(thread)

    def not_sent(self, channel):
        assert channel not in self.over


def destination(name, send, manager=lambda _: "s"):
    channel = Channel(name, (ChannelSetting("place", "where", SECRET, switches=True),), send)
    return Destination(name, channel, Means({"place": "secretsmanager:x"}, pytest.fail, manager))


def refuse(later):
    def send(*_):
        raise DeliveryError("no", later=later)

    return send


def test_one_that_fails_costs_no_other_its_message_and_is_told_alone_later():
    told, memory = [], Kept()
    good = destination("good", lambda digest, means: told.append(digest) or "17")
    waits = [destination("waits", refuse(later=True)), destination("refuses", refuse(later=False)), good]
    outcome = Voice(waits).tell(SAID, memory)
    assert (outcome.delivered, list(outcome.refused), list(outcome.waits)) == (["good"], ["refuses"], ["waits"])
    assert memory.over == ["refuses", "good"] and memory.threads[-1] == "17"
    waits[0] = destination("waits", lambda *_: "")
    assert Voice(waits).tell(SAID, memory).delivered == ["waits"] and told == [SAID]


def test_what_is_a_bug_is_no_message_that_waits():
    def broken(*_):
        raise ZeroDivisionError

    memory = Kept()
    with pytest.raises(ZeroDivisionError):
        Voice([destination("broken", broken)]).tell(SAID, memory)
    assert memory.over == []


def test_a_secret_is_read_once_and_again_when_it_is_refused(monkeypatch):
    secrets, used = ["old"], []

    def send(_, means):
        used.append(means.secret("place"))
        if used[-1] == "old" and secrets[-1] != "old":
            raise DeliveryError("HTTP 404", later=False)
        return ""

    reads = []
    voice = Voice([destination("c", send, lambda name: reads.append(name) or secrets[-1])])
    voice.tell(SAID, Kept())
    voice.tell(SAID, Kept())
    assert used == ["old", "old"] and len(reads) == 1
    secrets.append("new")
    assert voice.tell(SAID, Kept()).delivered == ["c"] and used == ["old", "old", "old", "new"]
    monkeypatch.setattr("flightline.tell.channel.KEPT_S", -KEPT_S)
    voice.tell(SAID, Kept())
    assert len(reads) > 2


def test_a_secret_that_is_the_same_is_not_tried_twice():
    tried = []

    def send(_, means):
        tried.append(means.secret("place"))
        raise DeliveryError("HTTP 404", later=False)

    assert Voice([destination("c", send)]).tell(SAID, Kept()).refused == {"c": "HTTP 404"} and len(tried) == 1


def test_an_empty_secret_waits_and_names_its_place():
    outcome = Voice([destination("c", lambda _, means: means.secret("place"), lambda _: "")]).tell(SAID, Kept())
    assert "secretsmanager:x" in outcome.waits["c"]


def test_waits_of_one_digest_are_counted_together(monkeypatch):
    slept = []
    monkeypatch.setattr("flightline.tell.channel.time.sleep", slept.append)

    def send(_, means):
        means.sleep(30)
        means.sleep(30)
        return ""

    one = destination("c", send)
    one.means.wait_limit_s = 40
    for _ in range(2):
        assert "too long" in Voice([one]).tell(SAID, Kept()).waits["c"]
    assert slept == [30, 30]
