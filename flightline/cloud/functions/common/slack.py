"""The channel into Slack. The webhook is a secret: it is in no log, no error and no environment variable."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flightline.cloud import slack
from flightline.cloud.messages import Digest, slack_message

from .errors import TryAgain
from .log import say

CACHE_S = 300.0
LONGEST_WAIT_S = 40.0
"""All waits for Slack's rate limit together: a function's time is short, and the event comes again."""


class Slack:
    """secrets: a Secrets Manager client. secret: the secret's name or ARN. lost: counts a message nobody will get."""

    def __init__(
        self, secrets: Any, secret: str, lost: Callable[[], object], post: Callable[..., int] = slack.post
    ) -> None:
        self._secrets, self._secret, self._lost, self._post = secrets, secret, lost, post
        self._webhook, self._read_at = "", 0.0

    def __call__(self, digest: Digest) -> None:
        """Send a digest. Raises TryAgain when Slack may take it later; what it refuses for good is logged, counted."""
        refused, why = "", "the Slack secret is empty"
        while (webhook := self._address()) != refused:
            try:
                self._post(webhook, slack_message(digest), sleep=_Waits())
            except slack.SlackError as error:
                if error.later:
                    raise TryAgain(str(error)) from None
                # It may have been replaced in the secret: read it again.
                self._webhook, refused, why = "", webhook, str(error)
            else:
                return
        say("not told in Slack", why=why)
        self._lost()

    def _address(self) -> str:
        if not self._webhook or time.monotonic() - self._read_at > CACHE_S:
            answer = self._secrets.get_secret_value(SecretId=self._secret)
            self._webhook, self._read_at = str(answer.get("SecretString") or "").strip(), time.monotonic()
        return self._webhook


class _Waits:
    """Sleeps, up to LONGEST_WAIT_S in all."""

    def __init__(self) -> None:
        self._left = LONGEST_WAIT_S

    def __call__(self, seconds: float) -> None:
        self._left -= seconds
        if self._left < 0:
            raise slack.SlackError("Slack asks to wait too long", later=True)
        time.sleep(seconds)
