"""What a person decides beside the rounds: a retry, an approval or a veto, a pause, a breaker's reset; and a replay."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from ..report.text import count
from ..run.locate import open_store
from ..store.sqlite import LATEST, StoreError
from .controller import ACTOR
from .journal.incident import APPROVED, BREAKER_RESET, DONE, EVERY, PROPOSED, Moment, advance, answer
from .journal.lease import me
from .journal.ledger import ConflictError, open_ledger
from .journal.machine import EventKind, NodeState
from .journal.stamps import later, now_utc, seconds
from .plan.budget import most_out
from .plan.planner import kin
from .plan.replay import replay
from .plan.seen import look
from .request import HealingRequest, inventory_of, nodes_of
from .steps.ports import EdgeError


def retry(asked: HealingRequest, node: str) -> str:
    """Have a held node judged again in the next round. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        held = [one for one in ledger.incidents(only_open=True, name=node) if one.state is NodeState.HELD]
        if not held:
            raise StoreError(
                f"saw no held incident of {node}, wanted one; do: `flightline incidents --open` lists what is open"
            )
        for one in held:
            ledger.save(advance(one, Moment(now_utc(), EventKind.RETRIED, _person(), "asked for by --retry")), None)
    return f"{node}: judged again in the next round, and returned when it is good"


def decide(asked: HealingRequest, node: str, approved: bool) -> str:
    """Let the step be taken that was proposed for a node, or hold the node. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        for one in ledger.incidents(only_open=True, name=node):
            event = next((event for event in reversed(one.events) if event.about == PROPOSED), None)
            if event and answer(one, event.step)[0]:
                what, why = (EventKind.NOTED, f"{event.step} approved") if approved else (EventKind.HELD, "vetoed")
                decided = Moment(now_utc(), what, _person(), why, about=APPROVED if approved else "", step=event.step)
                ledger.save(advance(one, decided), None)
                after = "is taken in the next round" if approved else f"is not taken; --retry {node} goes on"
                return f"{node}: {event.step} {after}"
    raise StoreError(
        f"{node}: saw no step that waits for a person, wanted one; do: `flightline incidents --open` lists them"
    )


def replayed(asked: HealingRequest, hours: float) -> str:
    """What these settings would have done with the incidents of the last hours, in lines. Changes nothing."""
    since = later(now_utc(), -hours * 3600)
    with open_store(asked.store) as store:
        seen = look(store, asked.run)
    with closing(open_ledger(asked.store)) as ledger:
        found = ledger.incidents(since=later(since, -asked.site.window_s))
    groups = {**{one.host: one.group for one in found}, **seen.groups}
    lines = replay(found, groups, asked.site, since)
    said = [f"{one.at[:19]}  {one.host}  {one.do}{f' {one.what}' if one.what else ''}: {one.why}" for one in lines]
    head = f"{count(len(lines), 'step')} planned over {count(len(found), 'incident')} since {since[:19]}, none taken"
    return "\n".join([head, *said])


def pause(asked: HealingRequest, why: str) -> str:
    """Let nobody change a node's state until resume: no step, no drain by a watcher, no hook. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        ledger.stop(EVERY, f"paused by {_person()}: {why}", now_utc(), None)
    missing = _ask_all(asked, "pause", {"by": _person(), "why": why})
    return f"paused; {missing}`flightline remediate --resume` goes on"


def resume(asked: HealingRequest) -> str:
    """End a pause. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        if not ledger.reset(EVERY):
            raise StoreError("saw no pause, wanted one; do: `flightline incidents` names breakers and pauses")
    missing = _ask_all(asked, "resume", {})
    return f"goes on in the next round; {missing}what watchers found meanwhile is drained now"


def _ask_all(asked: HealingRequest, action: str, about: Mapping[str, str]) -> str:
    """Ask every node of the fleet; in words, who did not answer: its watcher goes on as before."""
    try:
        with open_store(asked.store) as store:
            seen = look(store, asked.run)
        nodes = nodes_of(inventory_of(asked, seen))
        said = nodes.ask(list(seen.groups), action, 0, {"flightline_heal_markers": dict.fromkeys(seen.groups, about)})
    except (EdgeError, StoreError) as error:
        return f"no node was asked ({error}), so their watchers go on; "
    lost = sorted(set(seen.groups) - {host for host, reply in said.items() if reply.said.get("outcome") == DONE})
    listed = f"{', '.join(lost[:8])}{' ...' if len(lost) > 8 else ''}"
    return f"{len(lost)} of {len(seen.groups)} nodes did not answer ({listed}); " if lost else ""


def reset(asked: HealingRequest, group: str) -> str:
    """Go on in a group whose breaker fell: what was seen until now counts no more. Raises StoreError."""
    try:
        with open_store(asked.store) as store:
            seen = look(store, LATEST)
        hosts = [host for host, one in seen.groups.items() if one == group.partition(":")[0]]
        scheduler = asked.asked_scheduler(asked.named(seen.run.inventory))
    except StoreError:  # no whole run yet: only the breaker is known
        hosts, scheduler = [], None
    with closing(open_ledger(asked.store)) as ledger:
        places = scheduler.places(hosts) if scheduler else {}
        suspects = sorted(host for host, place in places.items() if place.suspect)
        if group not in ledger.stops() and not suspects:
            raise StoreError(
                f"{group}: saw no breaker that fell there; wanted one of: {', '.join(ledger.stops()) or 'none'}"
            )
        for one in ledger.incidents(since=later(now_utc(), -asked.site.window_s)):
            if kin(one) == group and seconds(one.opened_at):
                note = Moment(now_utc(), EventKind.NOTED, _person(), "breaker reset", about=BREAKER_RESET)
                try:
                    ledger.save(advance(one, note), None)
                except ConflictError:
                    raise StoreError(
                        f"{group}: saw a remediator that is writing, wanted to be alone; do: try again"
                    ) from None
        ledger.reset(group)
        if scheduler:
            scheduler.let_go(suspects)
    out = sum(place.out for place in places.values())
    return (
        f"{group}: its breaker is reset, and what was found until now counts no more. {out} of {len(hosts)} nodes are "
        f"out, at most {most_out(len(hosts), asked.site)} may be, fewer for one reason. "
        f"{len(suspects)} suspects{': ' if suspects else ''}{', '.join(suspects[:20])} ask again within a minute: "
        "as many as may leave do, the rest stay in service; each that leaves is repaired and returns with its proof"
    )


def _person() -> str:
    return f"{me().split('/')[0]} ({ACTOR})"
