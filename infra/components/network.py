"""VPC, subnets, routes, NAT gateways, endpoints and flow logs; or what is there of them already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import NetworkSettings
from infra.planning import endpoints, joining, kubernetes, subnets

from .base import ClusterPlan, Component
from .endpoints import Endpoints
from .flow_logs import FlowLogs

ANYWHERE = "0.0.0.0/0"
"""A destination of routes; never a source."""


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """A VPC that is there already, and its subnets; without vpc_id one is made, as the settings say.

    subnet_ids: private ones with a way out, one for each of availabilityZones in their order. public_subnet_id: of a
    head node that is reached by SSH. route_table_ids: what gets gateway endpoints. existing_endpoints: services that
    have theirs.
    """

    vpc_id: pulumi.Input[str] | None = None
    subnet_ids: Sequence[pulumi.Input[str]] = ()
    public_subnet_id: pulumi.Input[str] | None = None
    route_table_ids: Sequence[pulumi.Input[str]] = ()
    existing_endpoints: Sequence[str] = ()


class Network(Component):
    """The network of one cluster. Subnets are named by kind and number, never by their range or zone."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        args: NetworkArgs | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, plan, opts=opts)
        self._settings = plan.settings.network
        given = args or self._settings
        for field, saw, wanted in joining.network_mistakes(given, plan.settings):
            self.refuse(f"{field}: {saw}", wanted, "name them together in NetworkArgs")
        self.private_subnet_ids: list[pulumi.Output[str]]
        self.gpu_subnet_ids: list[pulumi.Output[str]]
        self.public_subnet_id: pulumi.Output[str]
        if given.vpc_id is None:
            self._make()
        else:
            self._join(pulumi.Output.from_input(given.vpc_id), given)
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})

    def _join(self, vpc_id: pulumi.Output[str], given: NetworkArgs | NetworkSettings) -> None:
        """Make nothing but endpoints that were asked for."""
        self.vpc_id = vpc_id
        zones = self._settings.zones
        wanted = {number: zones.names[number] for number in zones.nodes}
        self.private_subnet_ids = [
            self._of_vpc(one, wanted.get(number, "")) for number, one in enumerate(given.subnet_ids)
        ]
        self.gpu_subnet_ids = [self.private_subnet_ids[number] for number in zones.nodes]
        if given.public_subnet_id is not None:
            self.public_subnet_id = self._of_vpc(given.public_subnet_id)
        cidr = aws.ec2.get_vpc_output(id=vpc_id).cidr_block if self._settings.interface_endpoints else None
        self._gateways(given.route_table_ids, given.existing_endpoints, cidr)

    def _of_vpc(self, subnet_id: pulumi.Input[str], zone: str = "") -> pulumi.Output[str]:
        """A subnet's id, once EC2 has said that it lies in the VPC and in the zone."""
        found = aws.ec2.get_subnet_output(id=subnet_id)

        def checked(seen: Sequence[str]) -> str:
            made, vpc, its_vpc, its_zone = seen
            if its_vpc != vpc:
                self.refuse(f"{made} in {its_vpc}", f"a subnet of {vpc}", "name another subnet, or its own VPC")
            if zone and its_zone != zone:
                wanted = f"one in {zone}: subnets stand in the order of availabilityZones"
                self.refuse(f"{made} in {its_zone}", wanted, "name another, or set availabilityZones")
            return made

        return pulumi.Output.all(subnet_id, self.vpc_id, found.vpc_id, found.availability_zone).apply(checked)

    def _make(self) -> None:
        name, plan = self._name, self.plan
        whole = {**self.tags(), "Name": plan.names.cluster}
        self.vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=self._settings.vpc_cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=whole,
            opts=self.child(),
        )
        self.vpc_id = self.vpc.id
        # Without rules the group that every stray interface falls into lets nothing through.
        aws.ec2.DefaultSecurityGroup(
            f"{name}-default", vpc_id=self.vpc.id, ingress=[], egress=[], tags=self.tags(), opts=self.child()
        )
        self.subnets = {plan.name: self._subnet(plan) for plan in subnets.plan(self._settings)}
        self.private_subnet_ids = [
            self.subnets[plan.name].id for plan in subnets.plan(self._settings) if not plan.public
        ]
        self.gpu_subnet_ids = [self.subnets[plan.name].id for plan in subnets.gpu_subnets(self._settings)]
        self.public_subnet_id = self.subnets["public-1"].id
        self._route(whole)
        self._gateways([table.id for table in self.route_tables.values()])
        if self._settings.flow_logs:
            FlowLogs(f"{name}-flow", plan, self, self.vpc.id)

    def _subnet(self, plan: subnets.Subnet) -> aws.ec2.Subnet:
        cluster, joined = self.names.kubernetes_cluster, self.plan.settings.on_kubernetes
        found_by = kubernetes.subnet_tags(cluster, plan.public) if joined else {}
        return aws.ec2.Subnet(
            f"{self._name}-{plan.name}",
            vpc_id=self.vpc.id,
            cidr_block=plan.cidr,
            availability_zone=plan.zone,
            # Nothing gets a public address unless it asks for one.
            map_public_ip_on_launch=False,
            tags={**self.tags(plan.name), **found_by},
            opts=self.child(),
        )

    def _table(self, key: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(f"{self._name}-{key}", vpc_id=self.vpc.id, tags=self.tags(key), opts=self.child())

    def _route(self, whole: Mapping[str, str]) -> None:
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-internet", vpc_id=self.vpc.id, tags=dict(whole), opts=self.child()
        )
        public = self._table("public")
        self._default_route("public", public, gateway_id=gateway.id)
        self.route_tables = {"public": public}
        nat = {zone: self._nat(zone, gateway) for zone in subnets.nat_zones(self._settings)}
        for plan in subnets.plan(self._settings):
            table = public if plan.public else self._private_table(plan, nat)
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{plan.name}",
                subnet_id=self.subnets[plan.name].id,
                route_table_id=table.id,
                opts=self.child(),
            )

    def _private_table(self, plan: subnets.Subnet, nat: Mapping[int, aws.ec2.NatGateway]) -> aws.ec2.RouteTable:
        table = self.route_tables[plan.name] = self._table(plan.name)
        zone = subnets.nat_for(self._settings, plan.zone_index)
        if zone is not None:
            self._default_route(plan.name, table, nat_gateway_id=nat[zone].id)
        return table

    def _default_route(self, key: str, table: aws.ec2.RouteTable, **target: pulumi.Input[str]) -> None:
        aws.ec2.Route(
            f"{self._name}-{key}-out",
            route_table_id=table.id,
            destination_cidr_block=ANYWHERE,
            gateway_id=target.get("gateway_id"),
            nat_gateway_id=target.get("nat_gateway_id"),
            opts=self.child(),
        )

    def _nat(self, zone: int, gateway: aws.ec2.InternetGateway) -> aws.ec2.NatGateway:
        key = f"nat-{zone + 1}"
        tags = self.tags(key)
        address = aws.ec2.Eip(f"{self._name}-{key}", domain="vpc", tags=tags, opts=self.child())
        place = next(plan for plan in subnets.plan(self._settings) if plan.public and plan.zone_index == zone)
        return aws.ec2.NatGateway(
            f"{self._name}-{key}",
            allocation_id=address.id,
            subnet_id=self.subnets[place.name].id,
            tags=tags,
            opts=self.child(depends_on=[gateway]),
        )

    def _gateways(
        self,
        route_table_ids: Sequence[pulumi.Input[str]],
        there: Sequence[str] = (),
        vpc_cidr: pulumi.Input[str] | None = None,
    ) -> None:
        """Endpoints: gateways in these tables, interfaces where the settings want them, none that is there."""
        stack, wanted = self.plan.settings, self._settings.interface_endpoints
        gateways = endpoints.gateways(stack.storage.s3_express) if route_table_ids else ()
        interfaces = endpoints.interfaces(stack.head.enabled, stack.on_kubernetes) if wanted else ()
        if made := [service for service in (*gateways, *interfaces) if service not in there]:
            Endpoints(
                f"{self._name}-endpoints",
                self.plan,
                self,
                vpc_id=self.vpc_id,
                route_table_ids=route_table_ids,
                subnet_ids=self.private_subnet_ids[:1],
                gateways=[service for service in gateways if service in made],
                interfaces=[service for service in interfaces if service in made],
                vpc_cidr=vpc_cidr,
            )
