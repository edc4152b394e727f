"""What people are told of an incident: all its messages have one subject, by which mail makes one thread of them.

A bot of Slack writes into a thread, whose id is kept in the incident. An incoming webhook answers no message id: there
the common heading is all that holds the messages together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ...cloud import slack
from ...cloud.clients import Clients, explain, is_aws_error
from ...cloud.messages import Digest, slack_message, sns_message
from ...cloud.publish_settings import Publish
from ...cloud.secret import SecretError, resolve
from .incident import Incident, Moment
from .machine import Happened

TOLD = frozenset(
    {Happened.QUARANTINED, Happened.REPAIRED, Happened.FAILED, Happened.VERIFIED, Happened.RETURNED, Happened.HELD}
)


@dataclass
class Notices:
    """Sends to the topic and the webhook of the publish settings. What cannot be sent is said and costs no step."""

    settings: Publish
    clients: Clients
    say: Callable[[str], None]
    slack_api: str = slack.API
    _told: set[tuple[str, int]] = field(default_factory=set)

    def incident(self, one: Incident, event: Moment) -> str:
        """Tell of an incident that moved on; returns the thread that it is told in, '' where there is none."""
        key = (one.id, len(one.events))
        if event.what not in TOLD or key in self._told:
            return one.thread
        self._told.add(key)
        return self.send(digest(one, event, self.settings.scope), one.id, one.thread) or one.thread

    def stop(self, group: str, why: str) -> None:
        """Page: a breaker fell."""
        self.send(Digest(f"Flightline STOP {self.settings.scope}: {group}", facts=(why,)), f"breaker-{group}")

    def send(self, made: Digest, about: str, thread: str = "") -> str:
        """Send one message; the id of Slack's thread that it is in, where a bot writes."""
        for channel in (self._mail, self._chat):
            thread = self._safely(channel, made, about, thread)
        return thread

    def _safely(self, channel: Callable[[Digest, str, str], str], made: Digest, about: str, thread: str) -> str:
        try:
            return channel(made, about, thread)
        except (slack.SlackError, SecretError) as error:
            self.say(f"warning: {about}: nobody was told: {error}")
        except Exception as error:
            if not is_aws_error(error):
                raise
            self.say(f"warning: {explain(error, f'{about}: nobody was told')}")
        return thread

    def _mail(self, made: Digest, about: str, thread: str) -> str:
        if self.settings.topic:
            message = sns_message(made, self.settings.topic)
            if "MessageGroupId" in message:
                # The digest's own key is its title, which all messages of an incident share.
                once = hashlib.sha256("|".join((about, *made.facts)).encode()).hexdigest()
                message |= {"MessageGroupId": about[:128], "MessageDeduplicationId": once}
            self.clients.get("sns").publish(**message)
        return thread

    def _chat(self, made: Digest, about: str, thread: str) -> str:
        wanted = self.settings
        if wanted.slack_bot:
            token = resolve(wanted.slack_bot, self._secret)
            message = slack_message(made)
            sent = slack.say(token.reveal(), wanted.slack_channel, message, thread, self.slack_api, wanted.slack_ca)
            return thread or sent
        if wanted.slack:
            webhook = resolve(wanted.slack, self._secret)
            slack.post(webhook.reveal(), slack_message(made), wanted.slack_hosts, wanted.slack_ca)
        return thread

    def _secret(self, name: str) -> str:
        found = self.clients.get("secretsmanager").get_secret_value(SecretId=name)
        return str(found.get("SecretString") or "")


def digest(one: Incident, event: Moment, scope: str) -> Digest:
    """The message of one moment; the title is the incident's, whatever happened."""
    jobs = f"jobs {', '.join(event.jobs)}" if event.jobs else ""
    trouble = one.troubles[0].said if one.troubles else ""
    facts = (f"{event.what}: {event.why}", jobs, f"by {event.actor}", event.at, trouble)
    where = f"{one.host} ({one.instance_id})" if one.instance_id else one.host
    return Digest(f"Flightline incident {scope} {where} {one.id}", facts=tuple(fact for fact in facts if fact))
