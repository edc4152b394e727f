"""What of a cluster still costs money in a region: found by its tag, or by the exact names that its stack gives.

One row a kind, in KINDS. Asked of the services themselves, not of the tagging API: that one lists what is gone for
hours, and has no log group that a function made by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cloud.clients import Clients, explain, is_aws_error


@dataclass(frozen=True)
class PaidResource:
    """One resource. detail: its state or size. removable: `remove` may delete it; why_not says what to do instead."""

    kind: str
    id: str
    region: str
    detail: str = ""
    removable: bool = False
    why_not: str = ""


Remove = Callable[[Clients, str], None]


@dataclass(frozen=True)
class ResourceKind:
    """A kind of resource that costs money.

    operation: of the service. tagged: EC2 filters by tag (in the argument `filters`); else Owner.has decides. gone:
    states in which it costs nothing more. remove: how to delete one; None leaves it to a person, why_not says how.
    """

    name: str
    service: str
    operation: str
    listing: str
    id: str
    tagged: bool = True
    filters: str = "Filters"
    state: str = "State"
    gone: tuple[str, ...] = ()
    free: Callable[[Mapping[str, Any]], bool] = lambda entry: True
    remove: Remove | None = None
    why_not: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


def _ec2(method: str, argument: str) -> Remove:
    return lambda clients, one: getattr(clients.get("ec2"), method)(**{argument: one})


def _of_ec2(name: str, noun: str, ending: str = "", **rest: Any) -> ResourceKind:
    """A kind by its noun in EC2's API: Volume is listed by describe_volumes. ending: the verb that deletes one."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", noun).lower()
    delete = _ec2(f"{ending}_{words}", f"{noun}Id") if ending else None
    return ResourceKind(name, "ec2", f"describe_{words}s", f"{noun}s", f"{noun}Id", remove=delete, **rest)


def _fsx(name: str, noun: str, gone: str, why_not: str) -> ResourceKind:
    operation = re.sub(r"(?=[A-Z])", "_", noun).lower()
    listed = (f"describe{operation}s", f"{noun}s", f"{noun}Id")
    return ResourceKind(name, "fsx", *listed, tagged=False, state="Lifecycle", gone=(gone,), why_not=why_not)


def _free(state: str, word: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda entry: entry.get(state) == word


_DOWN = "`make down STACK=...` removes it"
_DATA = "data: set keepData: false, `make up`, `make down`"
_ENDED = ("deleted", "deleting")
_BLOCK = "it is paid also unused: aws ec2 cancel-capacity-reservation (a block runs to its end)"
KINDS = (
    ResourceKind(
        *("instance", "ec2", "describe_instances", "Reservations", "InstanceId"),
        gone=("terminated", "shutting-down"),
        why_not=_DOWN,
    ),
    _of_ec2(
        *("volume", "Volume", "delete"), gone=("deleting",), free=_free("State", "available"), why_not="it is attached"
    ),
    _of_ec2("snapshot", "Snapshot", "delete", given={"OwnerIds": ["self"]}),
    _of_ec2(
        *("network interface", "NetworkInterface", "delete"),
        state="Status",
        free=_free("Status", "available"),
        why_not="it is in use",
    ),
    ResourceKind(
        *("address", "ec2", "describe_addresses", "Addresses", "AllocationId"),
        free=lambda entry: not entry.get("AssociationId"),
        remove=_ec2("release_address", "AllocationId"),
        why_not="it is in use",
    ),
    _of_ec2("NAT gateway", "NatGateway", filters="Filter", gone=_ENDED, why_not=_DOWN),
    _of_ec2("endpoint", "VpcEndpoint", gone=_ENDED, why_not=_DOWN),
    _of_ec2(*("capacity reservation", "CapacityReservation"), gone=("cancelled", "expired", "failed"), why_not=_BLOCK),
    _fsx("file system", "FileSystem", "DELETING", _DATA),
    _fsx("file system backup", "Backup", "DELETED", "data: aws fsx delete-backup --backup-id ID"),
    ResourceKind("bucket", "s3", "list_buckets", "Buckets", "Name", tagged=False, why_not=_DATA),
    ResourceKind("directory bucket", "s3", "list_directory_buckets", "Buckets", "Name", tagged=False, why_not=_DATA),
    ResourceKind("table", "dynamodb", "list_tables", "TableNames", "", tagged=False, why_not=_DATA),
    ResourceKind(
        *("log group", "logs", "describe_log_groups", "logGroups", "logGroupName"),
        tagged=False,
        remove=lambda clients, one: clients.get("logs").delete_log_group(logGroupName=one),
    ),
)
"""Each after its service's API reference."""

_LIVE = frozenset({"instance", "NAT gateway", "endpoint"})
"""What a stack has until it is down, also one that is half up or has no nodes."""


@dataclass
class FoundLeftovers:
    """What is there, and a sentence for everything that could not be asked. unknown: kinds that were not."""

    things: list[PaidResource] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)

    @property
    def may_live(self) -> list[str]:
        """Kinds that would say whether the stack is down, and could not be asked: nothing is removed then either."""
        return sorted(self.unknown & _LIVE)

    @property
    def live(self) -> list[PaidResource]:
        """What says that the stack is not down: nothing is removed beside it."""
        return [thing for thing in self.things if thing.kind in _LIVE]


@dataclass(frozen=True)
class Owner:
    """The cluster: its tag, and a pattern of the whole names that its stack gives to what carries no tag in a list.

    Whole names, because cluster `train` must not be taken for the owner of `train-2-data-...`.
    """

    cluster: str
    tag: str
    names: str

    def has(self, name: str, entry: Mapping[str, Any]) -> bool:
        """Whether it is the cluster's."""
        tags = {tag.get("Key"): tag.get("Value") for tag in entry.get("Tags") or ()}
        return bool(tags[self.tag] == self.cluster) if self.tag in tags else bool(re.fullmatch(self.names, name))


def find(owners: Mapping[str, Owner], clients: Callable[[str], Clients]) -> FoundLeftovers:
    """Ask every region for every kind; what is denied is a trouble, and the rest is asked all the same.

    owners: by region.
    """
    found = FoundLeftovers()
    for region, owner in owners.items():
        asked = clients(region)
        for kind in KINDS:
            try:
                found.things += _things(kind, owner, region, asked)
            except Exception as error:
                what = f"{region}: {kind.service}:{kind.operation}"
                if is_aws_error(error):
                    found.troubles.append(explain(error, what))
                elif isinstance(error, (KeyError, TypeError, AttributeError)):
                    found.troubles.append(f"{what}: saw an answer that cannot be read ({error!r})")
                else:
                    raise
                found.unknown.add(kind.name)
    return found


def _things(kind: ResourceKind, owner: Owner, region: str, clients: Clients) -> Iterator[PaidResource]:
    for entry in _entries(kind, owner, clients):
        name = str(entry.get(kind.id, "")) if kind.id else str(entry["name"])
        state = _state(kind, entry)
        if state not in kind.gone and (kind.tagged or owner.has(name, entry)):
            removable = kind.remove is not None and kind.free(entry)
            yield PaidResource(kind.name, name, region, state, removable, "" if removable else kind.why_not)


def _entries(kind: ResourceKind, owner: Owner, clients: Clients) -> Iterator[Mapping[str, Any]]:
    client, given = clients.get(kind.service), dict(kind.given)
    if kind.tagged:
        given[kind.filters] = [{"Name": f"tag:{owner.tag}", "Values": [owner.cluster]}]
    call = getattr(client, kind.operation)
    paged = client.can_paginate(kind.operation)
    for page in client.get_paginator(kind.operation).paginate(**given) if paged else [call(**given)]:
        for entry in page[kind.listing]:
            if kind.name == "instance":
                yield from entry["Instances"]
            else:
                yield entry if isinstance(entry, Mapping) else {"name": entry}


def _state(kind: ResourceKind, entry: Mapping[str, Any]) -> str:
    state = entry.get(kind.state, "")
    return str(state.get("Name", "")) if isinstance(state, Mapping) else str(state)


def remove(found: FoundLeftovers, clients: Callable[[str], Clients]) -> Iterator[tuple[PaidResource, str]]:
    """Delete what may be deleted; yields each with what went wrong, "" when it is gone."""
    by_name = {kind.name: kind for kind in KINDS}
    for thing in found.things:
        delete = by_name[thing.kind].remove
        if thing.removable and delete is not None:
            try:
                delete(clients(thing.region), thing.id)
            except Exception as error:
                if not is_aws_error(error):
                    raise
                yield thing, explain(error, thing.id)
            else:
                yield thing, ""
