"""The states of a node in healing and which may follow which. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from flightline_node.word import Word


class NodeState(Word):
    """Where a node is between service and service."""

    IN_SERVICE = "in service"
    QUARANTINED = "quarantined"
    DRAINING = "draining"
    REPAIRING = "repairing"
    VERIFYING = "verifying"
    HELD = "held"


class EventKind(Word):
    """What an incident's line of time is made of."""

    DETECTED = "detected"
    QUARANTINED = "quarantined"
    DRAINING = "draining"
    DRAINED = "drained"
    STARTED = "repairing"
    REPAIRED = "repaired"
    FAILED = "not healed"
    VERIFIED = "verified"
    RETURNED = "returned"
    HELD = "held"
    RETRIED = "checked again"
    CLEARED = "cleared"
    LEFT = "left to others"
    NOTED = "noted"


_S, _H = NodeState, EventKind
OPEN_OUT = frozenset(NodeState) - {NodeState.IN_SERVICE}
"""States in which the node is out of service."""

NEXT: Mapping[tuple[NodeState, EventKind], NodeState] = {
    (_S.IN_SERVICE, _H.DETECTED): _S.IN_SERVICE,
    (_S.IN_SERVICE, _H.QUARANTINED): _S.QUARANTINED,
    (_S.IN_SERVICE, _H.CLEARED): _S.IN_SERVICE,
    (_S.QUARANTINED, _H.DRAINING): _S.DRAINING,
    (_S.QUARANTINED, _H.DRAINED): _S.REPAIRING,
    (_S.DRAINING, _H.DRAINED): _S.REPAIRING,
    (_S.REPAIRING, _H.STARTED): _S.REPAIRING,
    (_S.REPAIRING, _H.REPAIRED): _S.VERIFYING,
    (_S.REPAIRING, _H.FAILED): _S.REPAIRING,
    (_S.VERIFYING, _H.FAILED): _S.REPAIRING,
    (_S.VERIFYING, _H.STARTED): _S.VERIFYING,
    (_S.VERIFYING, _H.VERIFIED): _S.VERIFYING,
    (_S.VERIFYING, _H.RETURNED): _S.IN_SERVICE,
    (_S.HELD, _H.RETRIED): _S.VERIFYING,
    **{(state, _H.HELD): _S.HELD for state in OPEN_OUT},
    **{(state, _H.DETECTED): state for state in OPEN_OUT},
    **{(state, _H.LEFT): _S.IN_SERVICE for state in OPEN_OUT},
    **{(state, _H.NOTED): state for state in NodeState},
}
CLOSING = frozenset({_H.RETURNED, _H.CLEARED, _H.LEFT})


class UnlawfulError(RuntimeError):
    """Something happened that cannot follow; a fault of ours, so nothing is changed."""


def after(state: NodeState, event_kind: EventKind) -> NodeState:
    """Return the state that follows. Raises UnlawfulError."""
    try:
        return NEXT[state, event_kind]
    except KeyError:
        raise UnlawfulError(f"a node that is {state} cannot become: {event_kind}") from None
