"""Ask the account before `make up` asks for nodes: flightline ready STACK.

What the stack's settings want, and nothing else: credentials, region, zones that offer the type, the reservation or
block, quotas, the image and its driver, and what the nodes that run already were launched with.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from flightline.cloud.batches import error_code
from flightline.cloud.clients import CREDENTIALS, Clients, explain, is_aws_error
from flightline.cloud.regions import known_region
from flightline.commands import options
from flightline.console import EXIT_GO
from flightline.contract import ROLE_GPU, TAG_CLUSTER, TAG_ROLE
from flightline.report.text import clean
from infra import describe
from infra.config.errors import ConfigError
from infra.config.model import BY_NAME, StackSettings, Way
from infra.config.reader import read
from infra.config.values import Values
from infra.planning import quotas, readiness
from infra.planning.readiness import NOT_READY, PASSED_OVER, READY, UNKNOWN, Answer, Instances, Readiness
from infra.planning.zones import Zone, ZoneOffering

HOME = {"cn-": "cn-north-1", "us-gov-": "us-gov-west-1"}
"""Of a partition: the region that every account of it has."""
NOT_FOUND = (
    *("InvalidCapacityReservationId.NotFound", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"),
    "ParameterNotFound",
)


@dataclass(frozen=True)
class Shipped:
    """Checksums of what `make up` ships; roles None: nodes do not configure themselves."""

    package: str
    roles: str | None


def shipped(settings: StackSettings) -> Shipped:
    """What this checkout ships. Raises OSError, ValueError or ImportError."""
    # The packer lies in the repository and is not installed: the command's own start has no path to it.
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from infra import node_package, node_roles

    roles = node_roles.package().sha256 if settings.boot.configure else None
    return Shipped(node_package.package(settings.boot.package).sha256, roles)


def now() -> datetime:
    """The time."""
    return datetime.now(timezone.utc)


@dataclass
class _Account:
    """An account that is asked; what it does not answer is noted."""

    clients: Clients
    region: str
    answers: list[Answer] = field(default_factory=list)

    def ask(self, id_: str, action: str, question: Callable[[Any], Any], about: list[Answer] | None = None) -> Any:
        """The answer; what is not there is an empty one, and None is none. action: service:Operation."""
        service, _, _ = action.partition(":")
        try:
            return question(self.clients.get({"servicequotas": "service-quotas"}.get(service, service)))
        except Exception as error:
            if not is_aws_error(error):
                raise
            if error_code(error) in NOT_FOUND:
                return {}
            said, do = explain(error, action), f"allow {action}, or ask again later"
            (self.answers if about is None else about).append(Answer(id_, UNKNOWN, f"no answer ({said})", "one", do))
            return None


def look(
    given: Mapping[str, Any],
    clients: Callable[[str], Clients],
    at: datetime,
    ship: Callable[[StackSettings], Shipped] = shipped,
) -> Readiness:
    """Ask for all that a stack wants. given: its values. Raises ConfigError for what is wrong in them."""
    region = str(given.get("aws:region") or "")
    account = _Account(clients(region), region)
    if not _may_ask(account, given, clients):
        return Readiness(account.answers)
    settings = _settings(account, given)
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    groups = account.ask("nodes", "ec2:DescribeInstances", _all("describe_instances", "Reservations", Filters=alive))
    ran = None if groups is None else [one for group in groups for one in group["Instances"]]
    running = Instances(ran, settings.cluster_name)
    way, bought = _ways(account, settings, running, at)
    account.answers += bought
    if not settings.on_kubernetes:
        _image(account, settings)
        _nodes(account, settings, ran or [], ship)
    return Readiness(account.answers, way, moves=way not in ("", settings.nodes.capacity.chosen))


def _all(operation: str, key: str, **asked: Any) -> Callable[[Any], list[Any]]:
    """A question whose answer comes in pages."""
    return lambda client: [one for page in client.get_paginator(operation).paginate(**asked) for one in page[key]]


def _may_ask(account: _Account, given: Mapping[str, Any], clients: Callable[[str], Clients]) -> bool:
    """Whether the credentials serve in the region, and are of an account that the stack names."""
    try:
        found = account.clients.get("sts").get_caller_identity()["Account"]
    except Exception as error:
        if not is_aws_error(error):
            raise
        account.answers.append(_no_identity(error, account.region, clients))
        return False
    listed = given.get("aws:allowedAccountIds") or []
    allowed = [str(one) for one in (json.loads(listed) if isinstance(listed, str) else listed)] or [found]
    right, saw = found in allowed, f"account {found} in {account.region}"
    do = "use that account's credentials (AWS_PROFILE), or correct aws:allowedAccountIds"
    bad = Answer("account", NOT_READY, saw, ", ".join(allowed), do)
    account.answers.append(Answer("account", READY, saw) if right else bad)
    return right


def _no_identity(error: Exception, region: str, clients: Callable[[str], Clients]) -> Answer:
    """Credentials that do not serve, told from a region that is not enabled: another region answers for it."""
    home = next((at for start, at in HOME.items() if region.startswith(start)), "us-east-1")
    if home != region:
        asked = {"RegionNames": [region], "AllRegions": True}
        found = _Account(clients(home), home).ask(
            "region", "ec2:DescribeRegions", lambda ec2: ec2.describe_regions(**asked)
        )
        if found and found["Regions"][0].get("OptInStatus") == "not-opted-in":
            do = f"aws account enable-region --region-name {region}, and wait until it is enabled"
            link = readiness.console(home, "billing/home#/account")
            return Answer("region", NOT_READY, f"{region} not-opted-in", "it enabled for the account", do, link)
    bad = error_code(error) in CREDENTIALS or type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError")
    do = "aws sso login, or another session; then `aws sts get-caller-identity`"
    said = explain(error, "sts:GetCallerIdentity")
    return Answer("credentials", NOT_READY if bad else UNKNOWN, said, "credentials that AWS knows", do)


def _settings(account: _Account, given: Mapping[str, Any]) -> StackSettings:
    """The stack's settings, its zones being those of the region; whether they offer the type is an answer."""
    values = {name: value for name, value in given.items() if name in BY_NAME and not BY_NAME[name].secret}
    kind = str(values.get("gpuInstanceType"))
    offer = _offer(account, kind, Values(values).items("availabilityZones"))
    try:
        settings = read(values, account.region, lambda _: offer)
    except ConfigError as error:
        if offer.offering is None or {one.key for one in error.mistakes} - {"availabilityZones", "spotZones"}:
            raise
        anywhere = read(values, account.region, lambda _: replace(offer, offering=None))
        saw, wanted = ", ".join(anywhere.network.zones.gpu_names), "; ".join(one.wanted for one in error.mistakes)
        do = f"availabilityZones: others, or another region: `flightline capacity {kind} --region REGION`"
        account.answers.append(Answer("offering", NOT_READY, f"no {kind} in {saw}", wanted, do))
        return anywhere
    if offer.offering is not None:
        zones, why = settings.network.zones, settings.nodes.together.partition(";")[0]
        named = dict(zip(zones.names, zones.ids, strict=True)).items()
        names = (
            [name for name, id_ in named if id_ in offer.offering] if settings.nodes.capacity.ways else zones.gpu_names
        )
        saw = f"{kind} offered in {', '.join(names)}" + f" (one zone: {why})" * bool(why)
        account.answers.append(Answer("offering", READY, saw))
    return settings


def _offer(account: _Account, kind: str, wanted: tuple[str, ...]) -> ZoneOffering:
    """The region's zones and those that offer the type; what nobody told is not refused by it."""
    own = [{"Name": "opt-in-status", "Values": ["opt-in-not-required"]}]
    by_type = {"LocationType": "availability-zone-id", "Filters": [{"Name": "instance-type", "Values": [kind]}]}
    known = account.ask(
        "offering", "ec2:DescribeAvailabilityZones", lambda ec2: ec2.describe_availability_zones(Filters=own)
    )
    if not known:
        names = [*wanted, *(f"{account.region}{letter}" for letter in "abcdef")]
        return ZoneOffering(tuple(Zone(name, name) for name in dict.fromkeys(names)), None)
    question = _all("describe_instance_type_offerings", "InstanceTypeOfferings", **by_type)
    found = account.ask("offering", "ec2:DescribeInstanceTypeOfferings", question)
    zones = tuple(Zone(one["ZoneName"], one["ZoneId"]) for one in known["AvailabilityZones"])
    return ZoneOffering(zones, None if found is None else frozenset(one["Location"] for one in found))


def _ways(account: _Account, settings: StackSettings, running: Instances, at: datetime) -> tuple[str, list[Answer]]:
    """The way of the user's order to use, and what is to say of the ways up to it.

    A way of which something is not known is not passed over: the next one may cost more.
    """
    bought, passed = settings.nodes.capacity, list[Answer]()
    if not bought.ways:
        return "", _way(account, settings, Way(bought.kind, bought.reservation_id), running, at)
    for way in bought.ways:
        found = _way(account, settings, way, running, at)
        states = {one.state for one in found}
        if NOT_READY not in states:
            said = [replace(one, state=PASSED_OVER) for one in passed if one.state != READY]
            used = [] if UNKNOWN in states else [Answer("capacity", READY, f"{way} ready, of {len(bought.ways)} ways")]
            return str(way) if used else "", [*said, *used, *found]
        passed += found
    return "", passed


def _way(account: _Account, settings: StackSettings, way: Way, running: Instances, at: datetime) -> list[Answer]:
    found: list[Answer] = []
    if way.reservation_id and settings.nodes.count:
        question = _all(
            "describe_capacity_reservations", "CapacityReservations", CapacityReservationIds=[way.reservation_id]
        )
        held = account.ask("reservation", "ec2:DescribeCapacityReservations", question, found)
        found += [] if held is None else readiness.reserved(settings, way, held[0] if held else None, running, at)
    for need in quotas.needs(settings, way.kind):
        found += _quota(account, need, running)
    return found


def _quota(account: _Account, need: quotas.Need, running: Instances) -> list[Answer]:
    quota, found = need.quota, list[Answer]()
    if quota is None:
        return [readiness.no_quota_known(account.region, need)]
    asked = {"ServiceCode": quota.service, "QuotaCode": quota.code}

    def limit(client: Any) -> float:
        try:
            return float(client.get_service_quota(**asked)["Quota"]["Value"])
        except Exception as error:
            # A quota that nobody raised may only be known by its default.
            if error_code(error) != "NoSuchResourceException":
                raise
            return float(client.get_aws_default_service_quota(**asked)["Quota"]["Value"])

    kinds, id_ = [kind for kind, _ in need.instances], f"quota.{quota.code}"
    value = account.ask(id_, "servicequotas:GetServiceQuota", limit, found)
    question = _all("describe_instance_types", "InstanceTypes", InstanceTypes=kinds) if kinds else lambda _: []
    types = None if value is None else account.ask(id_, "ec2:DescribeInstanceTypes", question, found)
    if types is not None:
        vcpus = {one["InstanceType"]: int(one["VCpuInfo"]["DefaultVCpus"]) for one in types}
        found.append(readiness.quota(account.region, need, vcpus, value, running))
    return found


def _image(account: _Account, settings: StackSettings) -> None:
    chosen = settings.image
    name: Any = chosen.ami_id or chosen.pin
    if not name:
        found = account.ask("image", "ssm:GetParameter", lambda ssm: ssm.get_parameter(Name=chosen.ssm_parameter))
        name = found and found["Parameter"]["Value"]
    asked = {"ImageIds": [name], "IncludeDeprecated": True}
    images = account.ask("image", "ec2:DescribeImages", _all("describe_images", "Images", **asked)) if name else name
    if images is not None:
        account.answers.append(readiness.image(str(name or chosen.ssm_parameter), images[0] if images else None))
    driver = readiness.driver(settings.nodes.instance_type, images[0]) if images else None
    account.answers += [driver] if driver else []


def _nodes(
    account: _Account, settings: StackSettings, ran: list[Any], ship: Callable[[StackSettings], Shipped]
) -> None:
    """What the nodes that run were launched with; what `make configure` brought them since is not seen here."""
    own, texts = {TAG_CLUSTER: settings.cluster_name, TAG_ROLE: ROLE_GPU}.items(), dict[tuple[str, str], str]()
    nodes = [one for one in ran if own <= readiness.tags(one).items()]
    for made_by in {readiness.template(one) for one in nodes if all(readiness.template(one))}:
        asked = {"LaunchTemplateId": made_by[0], "Versions": [made_by[1]]}
        question = _all("describe_launch_template_versions", "LaunchTemplateVersions", **asked)
        if not (found := account.ask("nodes", "ec2:DescribeLaunchTemplateVersions", question)):
            return
        texts[made_by] = base64.b64decode(found[0]["LaunchTemplateData"].get("UserData", "")).decode(errors="replace")
    try:
        new = ship(settings) if nodes else Shipped("", None)
    except (OSError, ValueError, ImportError) as error:
        account.answers.append(Answer("nodes", UNKNOWN, str(error), "what `make up` ships", "what it says"))
        return
    if nodes:
        sums = {"library": new.package, **({"roles": new.roles} if new.roles else {})}
        account.answers.append(readiness.older(nodes, sums, texts, f"{settings.cluster_name}-gpu"))


@click.command(
    cls=options.Command,
    example="flightline ready p5-reservation",
    epilog="Exit status: 0 ready, 1 something is not ready, 2 nothing is known to be wrong and not all is known.",
)
@click.argument("stack")
@click.option("--take", is_flag=True, help="Write the way of capacityOrder that is ready into the stack's file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--project", default=".", type=click.Path(path_type=Path), help="Where Pulumi.yaml is.", show_default=True
)
@click.pass_context
def command(ctx: click.Context, stack: str, take: bool, as_json: bool, project: Path) -> None:
    """Ask the account whether STACK can start: reservation or block, quotas, zones, image. `make up` asks this first.

    Only what the stack's settings want is asked, with Describe and Get actions; nothing is made. What AWS does not say
    is not known, and is no pass.
    """
    try:
        given = describe.values(stack, project)
        if given.get("emulatorEndpoint"):
            click.echo("nothing is asked: the stack is for an emulator")
            ctx.exit(EXIT_GO)
        known_region(str(given.get("aws:region") or ""))
        found = look(given, Clients, now(), shipped)
    except FileNotFoundError as error:
        raise click.ClickException(
            f"saw no {error.filename}, wanted the stack's file; do: name another stack"
        ) from None
    except (ValueError, ConfigError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        options.print_json({"answers": [vars(one) for one in found.answers], "way": found.way})
    else:
        click.echo("\n".join(clean(str(one)) for one in found.answers))
    if take and found.moves and not found.status:
        _take(stack, found.way)
    ctx.exit(found.status)


def _take(stack: str, way: str) -> None:
    click.echo(f"capacity: {way} from now on (capacityChosen)")
    asked = ["pulumi", "config", "set", "--stack", stack, "flightline:capacityChosen", way]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(
            f"capacityChosen: saw {done.stderr.strip()}, wanted it written; do: {' '.join(asked)}"
        )


if __name__ == "__main__":
    from flightline.cli import run

    raise SystemExit(run(lambda: command.main(standalone_mode=False)))
