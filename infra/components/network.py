"""VPC, subnets, routes, NAT gateways, endpoints and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import NetworkSettings as NetworkSettings
from infra.planning import endpoints, kubernetes, subnets

from .base import child, named
from .endpoints import Endpoints, EndpointsArgs
from .flow_logs import FlowLogs, FlowLogsArgs
from .roles import RoleMaker

ANYWHERE = "0.0.0.0/0"
"""A destination of routes; never a source."""


@dataclass(frozen=True)
class NetworkArgs:
    """settings: what the stack asks for. retention_days: of flow logs. express, head, kubernetes: what it has."""

    settings: NetworkSettings
    maker: RoleMaker
    retention_days: int
    express: bool
    head: bool
    kubernetes: bool = False


class Network(pulumi.ComponentResource):
    """The network of one cluster. Subnets are named by kind and number, never by their range or zone."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Network", name, {}, opts)
        self._name, self._args = name, args
        self._cluster = args.maker.names.cluster
        self.vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.settings.vpc_cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=named(args.maker.tags, self._cluster),
            opts=child(self),
        )
        # Without rules the group that every stray interface falls into lets nothing through.
        aws.ec2.DefaultSecurityGroup(
            f"{name}-default", vpc_id=self.vpc.id, ingress=[], egress=[], tags=dict(args.maker.tags), opts=child(self)
        )
        self.subnets = {plan.name: self._subnet(plan) for plan in subnets.plan(args.settings)}
        self._route()
        self._gateways()
        if args.settings.flow_logs:
            self._flow_logs()
        self.register_outputs({"vpc_id": self.vpc.id, "private_subnet_ids": self.private_subnet_ids})

    @property
    def private_subnet_ids(self) -> list[pulumi.Output[str]]:
        """Ids of the private subnets, the GPU zone's first."""
        return [self.subnets[plan.name].id for plan in subnets.plan(self._args.settings) if not plan.public]

    @property
    def gpu_subnet_ids(self) -> list[pulumi.Output[str]]:
        """Ids of the private subnets in the GPU zone."""
        return [self.subnets[plan.name].id for plan in subnets.gpu_subnets(self._args.settings)]

    @property
    def public_subnet_id(self) -> pulumi.Output[str]:
        """Id of the first public subnet."""
        return self.subnets["public-1"].id

    def _subnet(self, plan: subnets.Subnet) -> aws.ec2.Subnet:
        names = self._args.maker.names
        found_by = kubernetes.subnet_tags(names.kubernetes_cluster, plan.public) if self._args.kubernetes else {}
        return aws.ec2.Subnet(
            f"{self._name}-{plan.name}",
            vpc_id=self.vpc.id,
            cidr_block=plan.cidr,
            availability_zone=plan.zone,
            # Nothing gets a public address unless it asks for one.
            map_public_ip_on_launch=False,
            tags={**named(self._args.maker.tags, f"{self._cluster}-{plan.name}"), **found_by},
            opts=child(self),
        )

    def _table(self, key: str) -> aws.ec2.RouteTable:
        tags = named(self._args.maker.tags, f"{self._cluster}-{key}")
        return aws.ec2.RouteTable(f"{self._name}-{key}", vpc_id=self.vpc.id, tags=tags, opts=child(self))

    def _route(self) -> None:
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-internet",
            vpc_id=self.vpc.id,
            tags=named(self._args.maker.tags, self._cluster),
            opts=child(self),
        )
        public = self._table("public")
        self._default_route("public", public, gateway_id=gateway.id)
        self.route_tables = {"public": public}
        nat = {zone: self._nat(zone, gateway) for zone in subnets.nat_zones(self._args.settings)}
        for plan in subnets.plan(self._args.settings):
            table = public if plan.public else self._private_table(plan, nat)
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{plan.name}",
                subnet_id=self.subnets[plan.name].id,
                route_table_id=table.id,
                opts=child(self),
            )

    def _private_table(self, plan: subnets.Subnet, nat: Mapping[int, aws.ec2.NatGateway]) -> aws.ec2.RouteTable:
        table = self.route_tables[plan.name] = self._table(plan.name)
        zone = subnets.nat_for(self._args.settings, plan.zone_index)
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
            opts=child(self),
        )

    def _nat(self, zone: int, gateway: aws.ec2.InternetGateway) -> aws.ec2.NatGateway:
        key = f"nat-{zone + 1}"
        tags = named(self._args.maker.tags, f"{self._cluster}-{key}")
        address = aws.ec2.Eip(f"{self._name}-{key}", domain="vpc", tags=tags, opts=child(self))
        place = next(plan for plan in subnets.plan(self._args.settings) if plan.public and plan.zone_index == zone)
        return aws.ec2.NatGateway(
            f"{self._name}-{key}",
            allocation_id=address.id,
            subnet_id=self.subnets[place.name].id,
            tags=tags,
            opts=child(self, depends_on=[gateway]),
        )

    def _gateways(self) -> None:
        Endpoints(
            f"{self._name}-endpoints",
            EndpointsArgs(
                vpc_id=self.vpc.id,
                vpc_cidr=self._args.settings.vpc_cidr,
                region=self._args.maker.place.region,
                route_table_ids=[table.id for table in self.route_tables.values()],
                subnet_ids=self.gpu_subnet_ids[:1],
                gateways=endpoints.gateways(self._args.express),
                interfaces=self._interfaces(),
                cluster=self._cluster,
                tags=self._args.maker.tags,
            ),
            child(self),
        )

    def _interfaces(self) -> tuple[str, ...]:
        if not self._args.settings.interface_endpoints:
            return ()
        return endpoints.interfaces(self._args.head, self._args.kubernetes)

    def _flow_logs(self) -> None:
        FlowLogs(
            f"{self._name}-flow",
            FlowLogsArgs(
                vpc_id=self.vpc.id,
                maker=self._args.maker,
                retention_days=self._args.retention_days,
            ),
            child(self),
        )
