"""Which idle nodes are to be proven now, and at what level. Pure.

One level at a time, standard before deep, the node first whose proof is most overdue. Only a node that nobody needs or
holds is taken, and no more of them at once than the site's share.
"""

from __future__ import annotations

from collections import Counter

from flightline_node.watch.rule import most

from ...fleet.proofs import ACTIVE, NodeProof, Proofs, age_h, hours
from ..journal.incident import EVERY
from ..site import SitePolicy
from .planner import FleetState, SchedulerView, lost_of

AGAIN_H = 1.0
"""A node that was just tried at a level, whatever came of it, is not tried there again at once."""


def due(fleet: FleetState, proofs: Proofs, site: SitePolicy) -> list[tuple[str, str]]:
    """(host, level) of those to prove now."""
    places = fleet.places
    if places is None or EVERY in fleet.stops or not site.prove:
        return []
    sick = {one.host for one in fleet.incidents if one.is_open}
    sizes, left = Counter(fleet.groups.values()), _room(fleet, site)
    wanted = []
    for host, group in fleet.groups.items():
        stopped = {group, lost_of(group)} & fleet.stops.keys()
        if host not in sick and not stopped and _is_idle(places.get(host)):
            level, overdue = _wanted(proofs.get(host, NodeProof()), fleet.now, site)
            if level:
                wanted.append((ACTIVE.index(level), -overdue, host))
    chosen: list[tuple[str, str]] = []
    deep = most(sum(sizes.values()), site.prove_deep_percent)
    for rank, _, host in sorted(wanted):
        group, level = fleet.groups[host], ACTIVE[rank]
        full = level == ACTIVE[-1] and len(chosen) >= deep
        if left[group] > 0 and not full and (not chosen or chosen[0][1] == level):
            left[group] -= 1
            chosen.append((host, level))
    return chosen


def _room(fleet: FleetState, site: SitePolicy) -> dict[str, int]:
    """Group -> how many of it may be proven: its share, and never one of those that must stay."""
    serving = Counter(
        group for host, group in fleet.groups.items() if not (fleet.places or {}).get(host, SchedulerView()).out
    )
    sizes = Counter(fleet.groups.values())
    return {
        group: min(most(size, site.prove_percent), serving[group] - min(site.need, size))
        for group, size in sizes.items()
    }


def _is_idle(place: SchedulerView | None) -> bool:
    return place is not None and place.known and not (place.out or place.reserved or place.jobs or place.silent)


def _wanted(proof: NodeProof, now: str, site: SitePolicy) -> tuple[str, float]:
    """The level that is due, and how many times over its age is what the site allows; ("", 0) while none is."""
    for level, limit in zip(ACTIVE, (site.prove_standard_h, site.prove_deep_h), strict=True):
        tried = proof.tried.get(level)
        if limit and not (tried and hours(tried, now) < min(AGAIN_H, limit)):
            age = age_h(proof, level, now)
            if age is None or age > limit:
                return level, float("inf") if age is None else age / limit
    return "", 0.0
