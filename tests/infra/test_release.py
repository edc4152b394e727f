"""An update of the last release's state replaces and deletes nothing: every resource in it is found again.

The engine's search is a model (tests/infra/release.py); tests/infra/test_engine.py runs the engine itself where it is.
"""

from dataclasses import replace

import pytest

from tests.infra import program, release

CLUSTER = "flightline:infra:GpuCluster::cluster"
MOVED = sorted({place for held in release.recorded().values() for place in held if "$" not in place})
"""What stood at the top: the components, whose aliases carry all that lies in them, and the policies' own."""


def requests(example):
    return program.example(example).requests


@pytest.mark.parametrize("example", release.EXAMPLES)
def test_every_place_of_the_last_release_is_taken_by_one_resource(example):
    state = release.recorded()[example]
    taken = release.taken(requests(example), state)
    assert len(state) > 200 and set(taken.values()) == state, "what is not taken is deleted"
    assert CLUSTER not in taken, "all of it lies in a component that is new"


def without_aliases(name, example):
    """The same program with the aliases of one top-level component dropped."""
    return [replace(one, aliased=()) if one.name == name else one for one in requests(example)]


@pytest.mark.parametrize("place", [place for place in MOVED if "flightline:infra:" in place])
def test_a_dropped_alias_is_noticed(place):
    """One component without its aliases: it, and all that lies in it, would be deleted and made anew."""
    example = next(name for name, held in release.recorded().items() if place in held)
    type_, name = place.split("::")
    state = release.recorded()[example]
    lost = state - set(release.taken(without_aliases(name, example), state).values())
    assert place in lost
    assert lost == {one for one in state if one.split("::")[0].split("$")[0] == type_ and one in lost}
    assert {one for one in state if one.startswith(f"{type_}$") and one.split("::")[1].startswith(name)} <= lost
