"""VPC, subnets, routes, NAT gateways, endpoints and flow logs."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from infra.planning import endpoints, kubernetes, subnets

from .base import ClusterPlan, Component
from .endpoints import Endpoints
from .flow_logs import FlowLogs

ANYWHERE = "0.0.0.0/0"
"""A destination of routes; never a source."""


class Network(Component):
    """The network of one cluster. Subnets are named by kind and number, never by their range or zone."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        self._settings = plan.settings.network
        whole = {**self.tags(), "Name": plan.names.cluster}
        self.vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=self._settings.vpc_cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=whole,
            opts=self.child(),
        )
        # Without rules the group that every stray interface falls into lets nothing through.
        aws.ec2.DefaultSecurityGroup(
            f"{name}-default", vpc_id=self.vpc.id, ingress=[], egress=[], tags=self.tags(), opts=self.child()
        )
        self.subnets = {plan.name: self._subnet(plan) for plan in subnets.plan(self._settings)}
        self._route(whole)
        self._gateways()
        if self._settings.flow_logs:
            FlowLogs(f"{name}-flow", plan, self, self.vpc.id)
        self.register_outputs({"vpc_id": self.vpc.id, "private_subnet_ids": self.private_subnet_ids})

    @property
    def private_subnet_ids(self) -> list[pulumi.Output[str]]:
        """Ids of the private subnets, the first zone's first."""
        return [self.subnets[plan.name].id for plan in subnets.plan(self._settings) if not plan.public]

    @property
    def gpu_subnet_ids(self) -> list[pulumi.Output[str]]:
        """Ids of the private subnets that GPU nodes are launched into."""
        return [self.subnets[plan.name].id for plan in subnets.gpu_subnets(self._settings)]

    @property
    def public_subnet_id(self) -> pulumi.Output[str]:
        """Id of the first public subnet."""
        return self.subnets["public-1"].id

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

    def _gateways(self) -> None:
        stack, wanted = self.plan.settings, self._settings.interface_endpoints
        Endpoints(
            f"{self._name}-endpoints",
            self.plan,
            self,
            vpc_id=self.vpc.id,
            route_table_ids=[table.id for table in self.route_tables.values()],
            subnet_ids=self.private_subnet_ids[:1],
            gateways=endpoints.gateways(stack.storage.s3_express),
            interfaces=endpoints.interfaces(stack.head.enabled, stack.on_kubernetes) if wanted else (),
        )
