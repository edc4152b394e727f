"""VPC endpoints, as planned."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.planning import endpoints

from .base import ClusterPlan, Component


class Endpoints(Component):
    """The ways to AWS' services that stay inside the VPC."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        parent: pulumi.Resource,
        vpc_id: pulumi.Input[str],
        route_table_ids: Sequence[pulumi.Input[str]],
        subnet_ids: Sequence[pulumi.Input[str]],
        gateways: Sequence[str],
        interfaces: Sequence[str],
        vpc_cidr: pulumi.Input[str] | None = None,
    ) -> None:
        """gateways, interfaces: services, see planning.endpoints. subnet_ids: where the interfaces are.

        vpc_cidr: of a VPC that the settings did not make.
        """
        super().__init__(name, plan, parent)
        self._vpc_id, self._vpc_cidr = vpc_id, vpc_cidr or plan.settings.network.vpc_cidr
        for service in gateways:
            self._endpoint(service, vpc_endpoint_type="Gateway", route_table_ids=list(route_table_ids))
        group = self._group() if interfaces else None
        for service in interfaces:
            self._endpoint(
                service,
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(subnet_ids),
                security_group_ids=[group.id] if group else None,
            )
        self.register_outputs({"services": [*gateways, *interfaces]})

    def _endpoint(self, service: str, **kind: Any) -> None:
        aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._vpc_id,
            service_name=f"com.amazonaws.{self.place.region}.{service}",
            policy=endpoints.policy(service, (self.place.account, *self.plan.settings.trusted_accounts)),
            tags=self.tags(service),
            opts=self.child(),
            **kind,
        )

    def _group(self) -> aws.ec2.SecurityGroup:
        said, cidr = "HTTPS from inside the VPC", self._vpc_cidr
        group = self.security_group("interfaces", f"{said} to interface endpoints", self._vpc_id, "endpoints")
        self.rule("interfaces-https", group.id, said, ports=(443, 443), shown="endpoints", cidr_ipv4=cidr)
        return group
