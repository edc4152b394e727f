"""Who else is asked of a host that its scheduler lost: EC2, the host itself, and a healthy node beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from flightline_node.act.reach import KERNEL, OPEN

from ..journal.incident import Incident
from ..plan.planner import OutsideView, SchedulerView, restarted
from .ports import EdgeError, Ports

Places = Mapping[str, SchedulerView]
SAW = {OPEN: "its scheduler's daemon answers {}", KERNEL: "its kernel alone answers {}"}
NOTHING = "{} gets no answer either"


def seen_outside(
    ports: Ports,
    token: int,
    silent: Sequence[Incident],
    places: Places,
    groups: Mapping[str, str],
    say: Callable[[str], None],
) -> dict[str, OutsideView]:
    """What is known of these hosts. A source that fails is said, and costs no other's word."""
    found: dict[str, OutsideView] = {}

    def ask(source: Callable[[], Mapping[str, OutsideView]]) -> None:
        try:
            found.update(source())
        except EdgeError as error:
            say(f"warning: {error}")

    if silent:
        ask(lambda: _by_ec2(ports, silent))
    alive = [one.host for one in silent if not found.get(one.host, OutsideView()).dead and not restarted(one)]
    if alive:
        ask(lambda: _by_themselves(ports, alive, token))
    left = [host for host in alive if not found.get(host, OutsideView()).answers]
    if beside := neighbours(left, places, groups):
        ask(lambda: _by_neighbours(ports, beside, places, found, token))
    return found


def _by_ec2(ports: Ports, silent: Sequence[Incident]) -> dict[str, OutsideView]:
    here = [one.instance_id for one in silent if one.instance_id]
    seen = ports.machines.seen(here) if ports.machines and here else {}
    return {one.host: seen[one.instance_id] for one in silent if one.instance_id in seen}


def _by_themselves(ports: Ports, alive: Collection[str], token: int) -> dict[str, OutsideView]:
    return {host: OutsideView("the host itself answers", answers=True) for host in ports.nodes.facts(alive, token)}


def _by_neighbours(
    ports: Ports, beside: Mapping[str, str], places: Places, known: Mapping[str, OutsideView], token: int
) -> dict[str, OutsideView]:
    """Alone it condemns nobody: silence is said beside what EC2 says, and shortens no wait."""
    asked: dict[str, list[str]] = {}
    for host, one in beside.items():
        asked.setdefault(one, []).append(places[host].address)
    said, found = ports.nodes.reach(asked, token), dict[str, OutsideView]()
    for host, one in beside.items():
        word, view = (said.get(one) or {}).get(places[host].address), known.get(host, OutsideView())
        if word:
            text = SAW.get(word, NOTHING).format(one)
            found[host] = replace(view, said=f"{view.said}, {text}" if view.said else text, reached=word == OPEN)
    return found


def neighbours(lost: Collection[str], places: Places, groups: Mapping[str, str]) -> dict[str, str]:
    """Lost host -> a node of its group that is in service and heard, the next one by name: not one for all."""
    serving = {host for host, place in places.items() if place.known and not (place.out or place.silent)}
    found: dict[str, str] = {}
    for host in lost:
        well = [other for other in serving & groups.keys() if groups[other] == groups.get(host)]
        if well and places[host].address:
            found[host] = min(well, key=lambda other: (other < host, other))
    return found
