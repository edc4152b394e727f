"""How much of a group may be out at once, and when so much is sick that it is no hardware fault. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from flightline_node.watch.rule import most

from ..journal.stamps import seconds
from ..site import SitePolicy


def most_out(size: int, site: SitePolicy) -> int:
    """Return how many nodes of a group may be out: max(1, share), fewer where some must stay, none for a share of 0."""
    return max(min(most(size, site.budget_percent), size - site.need), 0)


@dataclass
class OutageBudget:
    """What is left to take. sizes: nodes per group; out: of them out of service, whoever took them."""

    site: SitePolicy
    sizes: Mapping[str, int]
    out: Counter[str]
    busy: Counter[str] = field(default_factory=Counter)
    busy_lost: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    """Hosts that the scheduler lost: in a budget of their own, but none of those that must stay."""
    planned: Counter[str] = field(default_factory=Counter)
    """Of those that are out the ones that this plan takes out: a reader of the plan sees them in service still."""

    def take_out(self, group: str) -> str:
        """Take a node out; returns why that cannot be, or ''."""
        size, out = self.sizes.get(group, 0), self.out[group]
        limit = min(most_out(size, self.site), max(size - self.lost[group] - self.site.need, 0))
        if out >= limit:
            more = f" with {self.planned[group]} of this plan" if self.planned[group] else ""
            return self._full(group, out, limit, f"out{more}")
        self.out[group] += 1
        self.planned[group] += 1
        return ""

    def begin(self, group: str, lost: bool = False) -> str:
        """Begin a repair; returns why that cannot be, or ''. What others took out binds no repair of what is out."""
        percent, busy = (self.site.lost_percent, self.busy_lost) if lost else (self.site.budget_percent, self.busy)
        share = most_out(self.sizes.get(group, 0), replace(self.site, budget_percent=percent))
        limit = max(share, 1) if percent else 0
        if busy[group] >= limit:
            return self._full(group, busy[group], limit, f"{'lost and ' if lost else ''}under repair", percent)
        busy[group] += 1
        return ""

    def _full(self, group: str, now: int, limit: int, what: str, percent: float | None = None) -> str:
        size = self.sizes.get(group, 0)
        need = f", {self.site.need} must stay" if self.site.need else ""
        share = f"{self.site.budget_percent if percent is None else percent:g} %{need}"
        return f"budget: {now} of {size} {group} {what}, at most {limit} ({share})"


@dataclass(frozen=True)
class Detection:
    """A finding on a node. at: ISO 8601. reason: its id; Xid 48 and Xid 79 are of one check and two troubles."""

    group: str
    check: str
    reason: str
    host: str
    at: str


@dataclass(frozen=True)
class Trip:
    """A breaker that fell: the same finding on too many nodes of a group."""

    group: str
    check: str
    reason: str
    hosts: tuple[str, ...]
    at: str
    size: int

    @property
    def why(self) -> str:
        """Return what people are paged with."""
        return (
            f"{self.check} ({self.reason}) on {len(self.hosts)} of {self.size} {self.group}: no hardware fault, so "
            "nothing more is changed in this group; find what they share, then: flightline remediate --reset-breaker "
            + self.group
        )


def trips(found: Iterable[Detection], sizes: Mapping[str, int], site: SitePolicy) -> list[Trip]:
    """Return the breakers that fall: more than the share of a group (and more than one node) within the window."""
    kinds: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    checks = dict[str, str]()
    for one in found:
        checks.setdefault(one.reason, one.check)
        kinds.setdefault((one.group, one.reason), []).append((seconds(one.at), one.host, one.at))
    fallen = []
    for (group, reason), times in kinds.items():
        size = sizes.get(group, 0)
        more_than = max(1.0, size * site.breaker_percent / 100)
        hosts, at = _crowd(sorted(times), site.breaker_min * 60, more_than)
        if hosts:
            fallen.append(Trip(group, checks[reason], reason, hosts, at, size))
    return fallen


def _crowd(times: list[tuple[float, str, str]], window_s: float, more_than: float) -> tuple[tuple[str, ...], str]:
    """Hosts of the first window that has more than that many, and when it had them."""
    inside: Counter[str] = Counter()
    first = 0
    for at, host, stamp in times:
        inside[host] += 1
        while at - times[first][0] > window_s:
            inside -= Counter({times[first][1]: 1})
            first += 1
        if len(inside) > more_than:
            return tuple(sorted(inside)), stamp
    return (), ""
