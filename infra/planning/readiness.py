"""Whether an account can give what a stack wants: what AWS answered, judged. Pure; infra/ready.py asks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from flightline.contract import TAG_CLUSTER
from flightline_node.judge.checks.common import version_reaches
from flightline_node.know import expected
from infra.config.model import StackSettings, Way
from infra.planning.instance_types import CAPACITY_BLOCK, RESERVATION
from infra.planning.quotas import Need

READY, NOT_READY, UNKNOWN, PASSED_OVER = "ready", "not ready", "not known", "passed over"
"""PASSED_OVER: wrong with a way to buy that another one took the place of."""

DRIVER_TAG = "flightline:driver"
"""Of an image of one's own: the version of the driver in it."""

NO_LAUNCH_MIN = 40
"""Before its end a block's group launches no more (flightline/cloud/functions/alert_router)."""

LINUX = "Linux/UNIX"
LATER = ("scheduled", "pending", "payment-pending", "assessing", "delayed")
"""States of a reservation that may still become active (EC2 API, CapacityReservation)."""


@dataclass(frozen=True)
class Answer:
    """One answer: a sentence in its parts. id: what programs go by; link: where to ask AWS for it."""

    id: str
    state: str
    saw: str
    wanted: str = ""
    do: str = ""
    link: str = ""

    def __str__(self) -> str:
        wanted, do = f", wanted {self.wanted}" * bool(self.wanted), f"; do: {self.do}" * bool(self.do)
        return f"{self.state}  {self.id}: saw {self.saw}{wanted}{do}" + f" ({self.link})" * bool(self.link)


@dataclass(frozen=True)
class Readiness:
    """All answers. way: of capacityOrder, the one to use; empty where there is no order, or none is ready.

    moves: it is not the one in use.
    """

    answers: Sequence[Answer]
    way: str = ""
    moves: bool = False

    @property
    def status(self) -> int:
        """Exit status: 0 ready, 1 something is not, 2 nothing is known to be wrong and not everything is known."""
        states = {one.state for one in self.answers}
        return 1 if NOT_READY in states else 2 if UNKNOWN in states else 0


@dataclass(frozen=True)
class Instances:
    """The region's running instances; all None: nobody was told."""

    all: Sequence[Mapping[str, Any]] | None
    cluster: str

    def own(self, reservation_id: str) -> int:
        """How many of the cluster's are in a reservation."""
        return len(
            [one for one in self.all or () if self._mine(one) and one.get("CapacityReservationId") == reservation_id]
        )

    def others_vcpus(self, types: str, spot: bool) -> int:
        """What others of the account take of a quota; blocks take nothing."""
        return sum(
            int(one["CpuOptions"]["CoreCount"]) * int(one["CpuOptions"]["ThreadsPerCore"])
            for one in self.all or ()
            if re.match(types, one["InstanceType"]) and not self._mine(one)
            if one.get("InstanceLifecycle") != "capacity-block" and (one.get("InstanceLifecycle") == "spot") == spot
        )

    def _mine(self, one: Mapping[str, Any]) -> bool:
        return tags(one).get(TAG_CLUSTER) == self.cluster


def tags(resource: Mapping[str, Any]) -> dict[str, str]:
    """Tags of a resource as EC2 lists them."""
    return {one["Key"]: one["Value"] for one in resource.get("Tags", [])}


def console(region: str, path: str) -> str:
    """A page of the region's console, in its partition."""
    hosts = {"cn-": "console.amazonaws.cn", "us-gov-": "console.amazonaws-us-gov.com"}
    host = next((name for start, name in hosts.items() if region.startswith(start)), "console.aws.amazon.com")
    return f"https://{region}.{host}/{path}"


def reserved(
    settings: StackSettings, way: Way, found: Mapping[str, Any] | None, running: Instances, now: datetime
) -> list[Answer]:
    """A reservation or block, against the nodes that are to start in it. found None: there is none of that id."""
    region, name = settings.region, f"{way.kind} {way.reservation_id}"
    link = console(region, f"ec2/home?region={region}#CapacityReservations:")
    if found is None:
        do = "correct its id or aws:region, or use the credentials of the account that has it"
        return [Answer("reservation", NOT_READY, f"no {name} in {region}", "one that this account may use", do, link)]
    wrong = [*_unlike(settings, way, found), *_room(settings, way, found, running), *_time(settings, found, now)]
    if wrong:
        return [
            Answer(f"reservation.{part}", state, f"{name} {saw}", wanted, do, link)
            for part, state, saw, wanted, do in wrong
        ]
    end = f" to {found['EndDate']:%Y-%m-%d %H:%M}" if found.get("EndDate") else ""
    what = f"{found['TotalInstanceCount']} x {found['InstanceType']} in {found['AvailabilityZone']}{end}"
    return [Answer("reservation", READY, f"{name}, {what}")]


Fault = tuple[str, str, str, str, str]
"""The id's part, state, what was seen of it, what was wanted, what to do."""


def _unlike(settings: StackSettings, way: Way, found: Mapping[str, Any]) -> Iterator[Fault]:
    """EC2 starts in a reservation only what has its kind, type, zone, tenancy, platform and placement group."""
    zones, nodes = settings.network.zones, settings.nodes
    wanted = {way.zone} if way.zone else {one[number] for one in (zones.names, zones.ids) for number in zones.nodes}
    zone, made_in = found["AvailabilityZone"], str(found.get("PlacementGroupArn") or "").rpartition("/")[2]
    block, another = found.get("ReservationType") == "capacity-block", "another reservation, or another type of nodes"
    kind = CAPACITY_BLOCK if block else RESERVATION
    if kind != way.kind:
        yield "kind", NOT_READY, f"that is a {kind}", f"a {way.kind}", f"call it {kind} in the stack's file"
    if not wanted & {zone, found.get("AvailabilityZoneId")}:
        yield (
            "zone",
            NOT_READY,
            f"in {zone}",
            " or ".join(sorted(map(str, wanted))),
            f"name the zone {zone} in the stack's file",
        )
    if made_in != (nodes.placement_group or ""):
        saw = f"made in placement group {made_in}" if made_in else "made in no placement group"
        yield (
            "placement",
            NOT_READY,
            saw,
            nodes.placement_group or "no group, as the nodes",
            f"placementGroup: {made_in or 'none'}",
        )
    seen = {
        "type": (found["InstanceType"], nodes.instance_type),
        "tenancy": (found.get("Tenancy", "default"), "default"),
    }
    for part, (saw, like) in {**seen, "platform": (found.get("InstancePlatform", LINUX), LINUX)}.items():
        if saw != like:
            yield part, NOT_READY, f"of {part} {saw}", f"{like}, as the nodes have", another


def _room(settings: StackSettings, way: Way, found: Mapping[str, Any], running: Instances) -> Iterator[Fault]:
    count, total, free = (
        settings.nodes.count,
        int(found["TotalInstanceCount"]),
        int(found.get("AvailableInstanceCount", 0)),
    )
    own = running.own(str(way.reservation_id))
    if total < count:
        more = f", or aws ec2 modify-capacity-reservation --capacity-reservation-id {way.reservation_id}"
        do = f"gpuNodeCount: {total}" + f"{more} --instance-count {count}" * (way.kind == RESERVATION)
        yield "count", NOT_READY, f"of {total} instances", str(count), do
    elif found["State"] == "active" and free + own < count:
        saw = f"with {free} free and {own} of this cluster"
        if running.all is None:
            yield (
                "free",
                UNKNOWN,
                f"with {free} free, and no list of instances",
                str(count),
                "allow ec2:DescribeInstances",
            )
        else:
            yield "free", NOT_READY, saw, str(count), f"end what others run in it, or gpuNodeCount: {free + own}"


def _time(settings: StackSettings, found: Mapping[str, Any], now: datetime) -> Iterator[Fault]:
    nodes, state, start, end = settings.nodes, found["State"], found.get("StartDate"), found.get("EndDate")
    other = f"another one: `flightline capacity {nodes.instance_type} --nodes {nodes.count} --region {settings.region}`"
    if state != "active":
        begins = f", which begins {start:%Y-%m-%d %H:%M}" if state in LATER and start else ""
        wait = "make up then; until then gpuNodeCount: 0 builds the rest"
        yield "state", NOT_READY, f"{state}{begins}", "it active", wait if state in LATER else other
    least = NO_LAUNCH_MIN + settings.boot.time_limit_minutes
    if end and end < now + timedelta(minutes=least):
        yield "end", NOT_READY, f"that ends {end:%Y-%m-%d %H:%M}", f"{least} minutes left for a boot in it", other


def quota(region: str, need: Need, vcpus: Mapping[str, int], limit: float, running: Instances) -> Answer:
    """A quota against what the stack takes of it beside others."""
    assert need.quota is not None
    code, service, types, unit = need.quota.code, need.quota.service, need.quota.types, " vCPUs" * bool(need.instances)
    wanted = need.amount + sum(vcpus[kind] * count for kind, count in need.instances)
    taken = running.others_vcpus(types, need.quota.spot) if types else 0
    saw = f'quota "{need.quota.title}" of {limit:g}{unit}' + f", {taken} of them in use by others" * bool(taken)
    what = _what(need) or "the nodes"
    if limit - taken < wanted:
        do = f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        do += f"--desired-value {wanted + taken} --region {region}"
        link = console(region, f"servicequotas/home/services/{service}/quotas/{code}")
        return Answer(f"quota.{code}", NOT_READY, saw, f"{wanted}{unit} for {what}", do, link)
    if types and running.all is None:
        saw, do = f"{saw} and no list of instances", "allow ec2:DescribeInstances"
        return Answer(f"quota.{code}", UNKNOWN, saw, f"{wanted}{unit} free", do)
    return Answer(f"quota.{code}", READY, f"{saw} for {what}, {wanted}{unit}")


def no_quota_known(region: str, need: Need) -> Answer:
    """A type whose quota no public list names."""
    link = console(region, "servicequotas/home/services/ec2/quotas")
    return Answer(
        "quota", UNKNOWN, f"no known quota of {_what(need)}", "its code", "look there, then make up READY=no", link
    )


def _what(need: Need) -> str:
    return ", ".join(f"{count} x {kind}" for kind, count in need.instances)


def image(name: str, found: Mapping[str, Any] | None) -> Answer:
    """The image itself. found None: EC2 knows none of that id."""
    state = (
        found["State"] if found else "of an id that EC2 does not know: deregistered, or not shared with this account"
    )
    do = "ami: another one, or nothing for AWS' own; `pulumi config rm flightline:amiPin` gives up a pin"
    right = state == "available"
    return Answer(
        "image", READY if right else NOT_READY, f"{name} {state}", "" if right else "it available", "" if right else do
    )


def driver(instance_type: str, found: Mapping[str, Any]) -> Answer | None:
    """The image's driver against the oldest that serves the type; None where any does.

    EC2 knows no driver. Of AWS' own images the description names the types that they serve (DLAMI release notes); of
    others a tag says it.
    """
    least = expected.resolve(instance_type).driver_minimum
    if not least:
        return None
    name, family, tagged = found["ImageId"], instance_type.partition(".")[0].upper(), tags(found).get(DRIVER_TAG)
    listed = re.search(r"Supported EC2 instances: ([^.]*)", str(found.get("Description") or ""), re.I)
    if tagged:
        state, saw = READY if version_reaches(tagged, least) else NOT_READY, f"driver {tagged} in {name}, by its tag"
    elif found.get("ImageOwnerAlias") == "amazon" and listed:
        served = family in [one.strip().upper() for one in listed[1].split(",")]
        state, saw = READY if served else NOT_READY, f"{name} of AWS for {listed[1]}"
    else:
        state, saw = UNKNOWN, f"nothing of a driver in what EC2 tells of {name}"
    do = f"an image with it, tagged: aws ec2 create-tags --resources {name} --tags Key={DRIVER_TAG},Value=VERSION"
    return Answer("driver", state, saw, f"driver {least} or later for {instance_type}", "" if state == READY else do)


def older(
    nodes: Sequence[Mapping[str, Any]], shipped: Mapping[str, str], has: Mapping[tuple[str, str], str], group: str
) -> Answer:
    """How many nodes were launched with other roles or another library than those that `make up` ships.

    shipped: what -> checksum, as user data has it. has: launch template and version -> its user data.
    """
    differ = [
        [what for what, checksum in shipped.items() if checksum not in has.get(template(node), "")] for node in nodes
    ]
    old, parts = sum(map(bool, differ)), {what: sum(what in one for one in differ) for what in shipped}
    what = ", ".join(f"{one}: {count}" for one, count in parts.items() if count)
    saw = f"{old} of {len(nodes)} node{'s' * (len(nodes) > 1)} launched with another bundle than `make up` ships"
    refresh = f"aws autoscaling start-instance-refresh --auto-scaling-group-name {group}"
    do = f"new nodes will differ from them: `make configure` brings the same to all, or {refresh}" if old else ""
    return Answer("nodes", READY, saw + f" ({what})" * bool(what), do=do)


def template(node: Mapping[str, Any]) -> tuple[str, str]:
    """Launch template and version that an instance came from, by EC2's own tags."""
    own = tags(node)
    return own.get("aws:ec2launchtemplate:id", ""), own.get("aws:ec2launchtemplate:version", "")
