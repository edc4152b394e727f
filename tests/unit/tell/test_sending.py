"""The webhook: only to its host, retried when that may help, and its path in no text whatever happens."""

import json
import logging
import socket
import traceback

import pytest

from flightline.tell import secret
from flightline.tell.channel import DeliveryError, Means
from flightline.tell.channels import slack
from flightline.tell.digest import Digest
from flightline.tell.sending import post

from .receiver import PATH, TOKEN, Receiver

HERE = ("127.0.0.1",)
MESSAGE = {"text": "hello", "blocks": []}
BODY = json.dumps(MESSAGE).encode()


@pytest.fixture
def receive(tmp_path):
    made = []

    def start(*script):
        made.append(Receiver(tmp_path, *script))
        return made[-1]

    yield start
    for receiver in made:
        receiver.close()


def send(receiver, url=None, hosts=HERE, ca=True):
    waits = []
    try:
        ca_file = str(receiver.ca) if ca else ""
        return post("Slack", url or receiver.url, BODY, {}, (), hosts, ca_file, waits.append).attempts, waits, None
    except DeliveryError as error:
        said = "".join(traceback.format_exception(error))
        assert PATH not in said and "very-secret" not in said, "nothing that is printed may have the secret"
        return 0, waits, error


def test_a_message_arrives(receive):
    receiver = receive()
    assert send(receiver) == (1, [], None)
    assert receiver.got == [MESSAGE]


def test_a_rate_limit_is_waited_for_as_long_as_it_says(receive):
    receiver = receive((429, {"Retry-After": "7"}), (429, {"Retry-After": "3"}))
    assert send(receiver) == (3, [7.0, 3.0], None)
    assert receiver.got == [MESSAGE]


@pytest.mark.parametrize("said", ["soon", "nan", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_rate_limit_that_is_no_number_is_waited_for_as_an_error_is(receive, said):
    assert send(receive((429, {"Retry-After": said}))) == (2, [1.0], None)


def test_a_rate_limit_that_is_too_long_is_for_later(receive):
    receiver = receive((429, {"Retry-After": "3600"}))
    _, waits, error = send(receiver)
    assert error.later and waits == [] and receiver.requests == 1


def test_server_errors_are_tried_again_and_then_kept_for_later(receive):
    receiver = receive((500, {}), (503, {}))
    assert send(receiver)[:2] == (3, [1.0, 2.0])
    receiver = receive(*[(502, {})] * 9)
    _, waits, error = send(receiver)
    assert error.later and "after 5 attempts: HTTP 502" in str(error) and waits == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_a_refusal_is_not_repeated(receive, status):
    receiver = receive((status, {}))
    _, waits, error = send(receiver)
    assert not error.later and f"HTTP {status}" in str(error) and receiver.requests == 1 and waits == []


def test_a_redirect_is_not_followed(receive):
    receiver = receive((302, {"Location": "https://evil.example/"}))
    _, _, error = send(receiver)
    assert not error.later and "HTTP 302" in str(error) and receiver.requests == 1


@pytest.mark.parametrize(
    "url",
    [
        f"https://evil.example{PATH}",
        f"https://hooks.slack.com.evil.example{PATH}",
        f"https://hooks.slack.com@evil.example{PATH}",
        f"https://user:pass@hooks.slack.com{PATH}",
        f"http://hooks.slack.com{PATH}",
        f"file:///etc/passwd{PATH}",
        f"https://hooks.slack.com:notaport{PATH}",
        PATH,
    ],
)
def test_other_hosts_and_schemes_are_refused_before_anything_is_sent(url):
    with pytest.raises(DeliveryError) as caught:
        post("Slack", url, BODY, {}, (), ("hooks.slack.com",), sleep=lambda _: None)
    assert not caught.value.later and "very-secret" not in "".join(traceback.format_exception(caught.value))


def test_loopback_is_refused_unless_a_setting_allows_it(receive):
    receiver = receive()
    _, _, error = send(receiver, hosts=("hooks.slack.com",))
    assert "127.0.0.1" in str(error) and receiver.requests == 0


def test_a_certificate_that_nobody_vouches_for_is_refused(receive):
    receiver = receive()
    _, _, error = send(receiver, ca=False)
    assert "TLS" in str(error) and receiver.got == []


def test_a_missing_ca_file_is_named(receive):
    with pytest.raises(DeliveryError, match=r"nonexistent.*no certificates"):
        post("Slack", "https://hooks.slack.com/x", BODY, {}, (), ca_file="/nonexistent/ca.pem")


def test_nobody_answers(receive):
    receiver = receive()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    _, waits, error = send(receiver, url=f"https://127.0.0.1:{port}{PATH}")
    assert error.later and "no answer from 127.0.0.1" in str(error) and len(waits) == 4


def test_no_log_has_the_secret_even_at_debug(receive, caplog):
    with caplog.at_level(logging.DEBUG):
        send(receive())
        send(receive((404, {})))
    assert "very-secret" not in caplog.text


def test_secrets_come_by_reference_and_do_not_print(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", " s3cret\n")
    (tmp_path / "hook").write_text("s3cret\n")
    asked = {"one": "s3cret", "json": '{"url": "s3cret"}'}
    for place in ("env:HOOK", f"file:{tmp_path}/hook", "secretsmanager:one", "secretsmanager:json"):
        found = secret.resolve(place, asked.__getitem__)
        assert found.reveal() == "s3cret"
        assert "s3cret" not in f"{found} {found!r} {vars(type(found))}"


@pytest.mark.parametrize("place", ["env:NOT_SET", "file:/nonexistent/hook", "secretsmanager:empty", "plain"])
def test_a_missing_secret_names_its_place(place):
    with pytest.raises(secret.SecretError, match=place if ":" in place else "begins with env:"):
        secret.resolve(place, lambda _: "")


SAID = Digest("hello", about="one")


def speak(receiver, monkeypatch, token=TOKEN, thread=""):
    """A message of a bot; what is raised never has the token in it."""
    waits = []
    monkeypatch.setenv("BOT", token)
    monkeypatch.setattr("flightline.tell.channel.time.sleep", waits.append)
    given = {"slack": "", "slack_bot": "env:BOT", "slack_channel": "C1", "slack_api": receiver.api}
    means = Means({**given, "slack_ca": str(receiver.ca)}, pytest.fail, pytest.fail, thread=thread)
    try:
        return slack.send(SAID, means), waits, None
    except DeliveryError as error:
        assert "very-secret" not in "".join(traceback.format_exception(error))
        return "", waits, error


def test_a_bot_writes_into_a_thread(receive, monkeypatch):
    receiver = receive()
    first, _, _ = speak(receiver, monkeypatch)
    speak(receiver, monkeypatch, thread=first)
    assert first == "1700000000.000001"
    assert receiver.got == [
        {**slack.message(SAID), "channel": "C1"},
        {**slack.message(SAID), "channel": "C1", "thread_ts": first},
    ]


def test_a_bot_that_may_not_write_is_told_why(receive, monkeypatch):
    receiver = receive()
    _, waits, error = speak(receiver, monkeypatch, token="xoxb-very-secret-other")
    assert "invalid_auth" in str(error) and not error.later and waits == []


def test_a_bot_waits_as_long_as_slack_says(receive, monkeypatch):
    receiver = receive((429, {"Retry-After": "7"}))
    sent, waits, _ = speak(receiver, monkeypatch)
    assert sent and waits == [7.0]


@pytest.mark.parametrize("token", ["xoxb-very-secret\nX-Evil: 1", "xoxb-very-secret-\u00e9"])
def test_a_token_cannot_add_a_header(receive, monkeypatch, token):
    receiver = receive()
    _, _, error = speak(receiver, monkeypatch, token=token)
    assert "nothing was sent" in str(error) and receiver.requests == 0
