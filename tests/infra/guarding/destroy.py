"""A model of how Pulumi's engine destroys a stack, for runs of the stand-in engine.

It deletes what nothing else depends on, all of it side by side, then what nothing depends on any more. A protected
resource is looked at only when its turn comes, and ends the destroy there. With --exclude-protected those stay, and
what they depend on or lie in. tests/infra/test_engine.py does the same with the real engine where it is installed.
"""

from collections.abc import Collection, Iterable

from tests.infra.engine import Request

Urns = frozenset[str]


def below(requests: Iterable[Request], tops: Collection[str]) -> Urns:
    """What these depend on or lie in, themselves included."""
    by_urn = {one.urn: one for one in requests}
    found: set[str] = set()
    waiting = [urn for urn in tops if urn in by_urn]
    while waiting:
        one = by_urn[waiting.pop()]
        if one.urn not in found:
            found.add(one.urn)
            waiting += [urn for urn in (*one.dependencies, one.parent) if urn in by_urn]
    return frozenset(found)


def above(requests: Iterable[Request], bottoms: Collection[str]) -> Urns:
    """What depends on these or lies in them, themselves included: --target-dependents."""
    requests, found = list(requests), set(bottoms)
    while more := {one.urn for one in requests if one.dependencies & found or one.parent in found} - found:
        found |= more
    return frozenset(found)


def deleted(requests: Iterable[Request], opened: Collection[str] = (), exclude_protected: bool = False) -> Urns:
    """What a destroy without a preview deletes before it stops. opened: protected resources that were unprotected."""
    left = list(requests)
    protected = {one.urn for one in left if one.protect and one.urn not in opened}
    kept = below(left, protected) if exclude_protected else frozenset()
    left = [one for one in left if one.urn not in kept]
    gone: set[str] = set()
    while left:
        needed = {urn for one in left for urn in (*one.dependencies, one.parent)}
        turn = {one.urn for one in left if one.urn not in needed}
        gone |= turn - protected
        left = [one for one in left if one.urn not in turn]
        if turn & protected:
            break
    return frozenset(gone)
