"""What a site wants before a step is taken under it: hours, rates, a person's approval or time to veto. Pure.

Each is one setting in words joined by `+`, for FLIGHTLINE_REMEDIATE splits at blanks and commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from flightline_node.know.remedies import PERSON
from flightline_node.model import Remedy
from flightline_node.suggest import meant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PERIODS: Mapping[str, int] = {"h": 3600, "d": 86_400}
_DAY = "|".join(DAYS)
_HOURS = re.compile(rf"(?P<first>{_DAY})(?:-(?P<last>{_DAY}))?(?:@(?P<from>\d\d:\d\d)-(?P<to>\d\d:\d\d))?\Z")
_RATE = re.compile(r"(?P<step>[A-Z_]+):(?P<most>\d{1,4})/(?P<period>[hd])\Z")
_ASK = re.compile(r"(?P<step>[A-Z_]+)(?:/(?P<group>[\w.-]+))?(?::(?P<minutes>\d{1,5}))?\Z")


@dataclass(frozen=True)
class Window:
    """Days of the week (0: Monday) and minutes of the day in UTC; one that ends before it begins ends the next day."""

    days: frozenset[int]
    begin: int = 0
    end: int = 24 * 60

    def has(self, moment: datetime) -> bool:
        """Is a moment in it?"""
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if self.begin < self.end:
            return day in self.days and self.begin <= minute < self.end
        return (day in self.days and minute >= self.begin) or ((day - 1) % 7 in self.days and minute < self.end)


@dataclass(frozen=True)
class Rate:
    """At most so many of a step in a period, over all groups."""

    step: str
    most: int
    period: str


@dataclass(frozen=True)
class Ask:
    """A step that people are told of before. minutes: after which it is taken all the same; None: never."""

    step: str
    group: str = ""
    minutes: int | None = None


def windows(text: str) -> tuple[Window, ...]:
    """`mon-fri@20:00-06:00+sat-sun`. Raises ValueError that says what was seen."""
    wanted = "days and hours in UTC, such as mon-fri@20:00-06:00 or sat-sun"
    return tuple(_window(found) for found in _words(text, _HOURS, wanted))


def _window(found: re.Match[str]) -> Window:
    first, last = (DAYS.index(day) for day in (found["first"], found["last"] or found["first"]))
    listed = frozenset((first + number) % 7 for number in range((last - first) % 7 + 1))
    return Window(listed, _minute(found["from"] or "00:00"), _minute(found["to"] or "24:00"))


def _minute(text: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if not (hours * 60 + minutes <= 24 * 60 and minutes < 60):
        raise ValueError(f"saw {text!r}, wanted a time of the day from 00:00 to 24:00")
    return hours * 60 + minutes


def rates(text: str) -> tuple[Rate, ...]:
    """`REBOOT:4/h+REPLACE:10/d`. Raises ValueError that says what was seen."""
    wanted = "STEP:COUNT/h or STEP:COUNT/d, such as REBOOT:4/h"
    return tuple(Rate(_step(one["step"]), int(one["most"]), one["period"]) for one in _words(text, _RATE, wanted))


def asks(text: str) -> tuple[Ask, ...]:
    """`REPLACE+REBOOT/p5.48xlarge:15`. Raises ValueError that says what was seen."""
    wanted = "STEP, STEP:MINUTES or STEP/GROUP:MINUTES, such as REBOOT:15"
    return tuple(
        Ask(_step(one["step"]), one["group"] or "", int(one["minutes"]) if one["minutes"] else None)
        for one in _words(text, _ASK, wanted)
    )


def _words(text: str, form: re.Pattern[str], wanted: str) -> Iterator[re.Match[str]]:
    """The words of a setting, each in its form."""
    for word in filter(None, text.split("+")):
        found = form.match(word)
        if not found:
            raise ValueError(f"saw {word!r}, wanted {wanted}")
        yield found


def _step(word: str) -> str:
    steps = [str(remedy) for remedy in Remedy if remedy.row.rung and remedy.row.by != PERSON]
    if word not in steps:
        raise ValueError(f"saw {word}, no step that is taken by itself{meant(word, steps)}")
    return word


@dataclass(frozen=True)
class Gates:
    """A site's three settings, read. An empty one asks for nothing."""

    windows: Sequence[Window] = ()
    rates: Sequence[Rate] = ()
    asks: Sequence[Ask] = ()

    def closed(self, step: str, now: str, attempts: Iterable[tuple[str, str]]) -> str:
        """Why a step must wait whatever people say; '' where it need not. attempts: (step, when it was begun)."""
        moment = datetime.fromisoformat(now).astimezone(timezone.utc)
        if self.windows and not any(window.has(moment) for window in self.windows):
            return "outside the hours in which the site wants repairs"
        done = list(attempts)
        for rate in self.rates:
            since = moment.timestamp() - PERIODS[rate.period]
            begun = sum(1 for name, at in done if name == step and datetime.fromisoformat(at).timestamp() > since)
            if rate.step == step and begun >= rate.most:
                return f"{begun} of {step} in the last {'hour' if rate.period == 'h' else 'day'}, at most {rate.most}"
        return ""

    def ask(self, step: str, group: str) -> Ask | None:
        """How people are asked for a step; what names the group goes first, then whoever waits longest."""
        found = [one for one in self.asks if one.step == step and one.group in ("", group)]
        return max(found, key=lambda one: (bool(one.group), one.minutes is None, one.minutes or 0), default=None)
