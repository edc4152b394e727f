"""GPU nodes in a VPC of one's own."""

import pulumi
import pulumi_aws as aws

from flightline_pulumi import Fabric, FabricArgs, GpuCluster, GpuClusterArgs, Network, NetworkArgs, plan

ANYWHERE = "0.0.0.0/0"
zone = pulumi.Config("flightline").require_object("availabilityZones")[0]

vpc = aws.ec2.Vpc("own", cidr_block="10.20.0.0/16", enable_dns_hostnames=True)
public = aws.ec2.Subnet("public", vpc_id=vpc.id, cidr_block="10.20.0.0/24", availability_zone=zone)
private = aws.ec2.Subnet("private", vpc_id=vpc.id, cidr_block="10.20.16.0/20", availability_zone=zone)
internet = aws.ec2.InternetGateway("own", vpc_id=vpc.id)
nat = aws.ec2.NatGateway("own", subnet_id=public.id, allocation_id=aws.ec2.Eip("own", domain="vpc").id)
out = aws.ec2.RouteTable("out", vpc_id=vpc.id, routes=[{"cidr_block": ANYWHERE, "gateway_id": internet.id}])
aws.ec2.RouteTableAssociation("out", subnet_id=public.id, route_table_id=out.id)
routes = aws.ec2.RouteTable("routes", vpc_id=vpc.id, routes=[{"cidr_block": ANYWHERE, "nat_gateway_id": nat.id}])
routed = aws.ec2.RouteTableAssociation("routes", subnet_id=private.id, route_table_id=routes.id)

planned = plan({"clusterName": pulumi.get_project(), "gpuNodeCount": 2}, network_is_given=True)
# The subnet by its association: a node needs its way out from the first second.
joined = NetworkArgs(vpc_id=vpc.id, subnet_ids=[routed.subnet_id.apply(str)], route_table_ids=[routes.id])
network = Network("network", planned, joined)
fabric = Fabric("fabric", planned, FabricArgs(vpc_id=network.vpc_id))
cluster = GpuCluster("cluster", planned, GpuClusterArgs(network=network, fabric=fabric))

pulumi.export("node_group", cluster.nodes.group_name)
