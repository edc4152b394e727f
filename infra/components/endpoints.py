"""VPC endpoints, as planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from .base import child, named, rule


@dataclass(frozen=True)
class EndpointsArgs:
    """gateways, interfaces: services, see planning.endpoints. subnet_ids: where the interfaces are."""

    vpc_id: pulumi.Input[str]
    vpc_cidr: str
    region: str
    route_table_ids: Sequence[pulumi.Input[str]]
    subnet_ids: Sequence[pulumi.Input[str]]
    gateways: Sequence[str]
    interfaces: Sequence[str]
    cluster: str
    tags: Mapping[str, str]


class Endpoints(pulumi.ComponentResource):
    """The ways to AWS' services that stay inside the VPC."""

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Endpoints", name, {}, opts)
        self._name, self._args = name, args
        self.gateways = {service: self._gateway(service) for service in args.gateways}
        self.interfaces: dict[str, aws.ec2.VpcEndpoint] = {}
        if args.interfaces:
            group = self._group()
            self.interfaces = {service: self._interface(service, group) for service in args.interfaces}
        self.register_outputs({"services": [*self.gateways, *self.interfaces]})

    def _service(self, service: str) -> str:
        return f"com.amazonaws.{self._args.region}.{service}"

    def _tags(self, service: str) -> dict[str, str]:
        return named(self._args.tags, f"{self._args.cluster}-{service}")

    def _gateway(self, service: str) -> aws.ec2.VpcEndpoint:
        return aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._args.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Gateway",
            route_table_ids=list(self._args.route_table_ids),
            tags=self._tags(service),
            opts=child(self),
        )

    def _interface(self, service: str, group: aws.ec2.SecurityGroup) -> aws.ec2.VpcEndpoint:
        return aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._args.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=list(self._args.subnet_ids),
            security_group_ids=[group.id],
            tags=self._tags(service),
            opts=child(self),
        )

    def _group(self) -> aws.ec2.SecurityGroup:
        group = aws.ec2.SecurityGroup(
            f"{self._name}-interfaces",
            description="HTTPS from inside the VPC to interface endpoints",
            vpc_id=self._args.vpc_id,
            tags=self._tags("endpoints"),
            opts=child(self),
        )
        https, cidr = f"{self._name}-interfaces-https", self._args.vpc_cidr
        tags = self._tags("endpoints")
        rule(self, https, group.id, "HTTPS from inside the VPC", tags, ports=(443, 443), cidr_ipv4=cidr)
        return group
