"""What may follow what: no return without proof of being repaired, no repair without being drained."""

import itertools

import pytest

from flightline.healing.journal.machine import CLOSING, NEXT, EventKind, NodeState, UnlawfulError, after

S, H = NodeState, EventKind


def test_only_verifying_returns_to_service():
    assert [state for state, what in NEXT if what is H.RETURNED] == [S.VERIFYING]


def test_only_a_drained_or_failed_node_is_repaired():
    into = {state for (state, _), to in NEXT.items() if to is S.REPAIRING}
    assert into == {S.QUARANTINED, S.DRAINING, S.REPAIRING, S.VERIFYING}


def test_held_ends_only_by_a_person_or_somebody_else():
    ways = {what for (state, what), to in NEXT.items() if state is S.HELD and to is not S.HELD}
    assert ways == {H.RETRIED, H.LEFT}


def test_everything_that_is_out_can_be_held_and_what_is_in_service_cannot():
    assert {state for state, what in NEXT if what is H.HELD} == set(S) - {S.IN_SERVICE}


def test_what_is_not_in_the_table_is_refused():
    unlawful = [pair for pair in itertools.product(S, H) if pair not in NEXT]
    assert unlawful
    for state, what in unlawful:
        with pytest.raises(UnlawfulError, match=f"{state} cannot become: {what}"):
            after(state, what)


def test_whatever_closes_an_incident_leaves_no_state_out_of_service():
    assert {to for (_, what), to in NEXT.items() if what in CLOSING} == {S.IN_SERVICE}
