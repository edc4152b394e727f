"""Creates what the program planned on an AWS emulator (moto's server), the way the provider would call AWS.

It reads the arguments that were recorded under mocks, turns them into API calls by the service's own model, and puts real
ids where the stand-in engine had invented ones. Only the types in CREATORS are made: what is launched, written to or read
back. What the rest says is held by the policies and the provider's SDK.
"""

import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config

from tests.infra.engine import Run

RENAMED = {"securityGroups": "Groups", "namePrefix": "", "updateDefaultVersion": ""}
"""Members that the API calls otherwise than the provider; empty: not the API's."""


@dataclass
class World:
    """What was created. ids: invented id or ARN -> real one."""

    endpoint: str
    region: str
    ids: dict[str, str] = field(default_factory=dict)
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            self.clients[service] = boto3.client(
                service,
                endpoint_url=self.endpoint,
                region_name=self.region,
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
            )
        return self.clients[service]

    def real(self, value: Any) -> Any:
        """A value with real ids in it."""
        if isinstance(value, str):
            return self.ids.get(value, value)
        if isinstance(value, Mapping):
            return {key: self.real(inner) for key, inner in value.items()}
        return [self.real(inner) for inner in value] if isinstance(value, list) else value


def create(run: Run, endpoint: str, region: str) -> World:
    """Create the stack's resources in the order in which they were registered, in an account with nothing else in it.

    Every moto server of a process keeps the same account, so what earlier tests left is taken away first.
    """
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST"), timeout=30)
    world = World(endpoint, region)
    for request in run.custom:
        creator = CREATORS.get(request.type_)
        if creator is None:
            continue
        made = creator(world, world.real(request.props))
        if isinstance(made, str):
            made = (made, made)
        if made:
            world.ids.update({request.id: made[0], request.arn: made[1]})
    return world


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def by_model(shape: Any, value: Any) -> Any:
    """The value in the form of the service's model; a member or a word that the model lacks is an error."""
    if shape.type_name == "structure":
        if shape.name.startswith("Tag") and set(shape.members) == {"Key", "Value"}:
            return value
        return dict(_member(shape, key, inner) for key, inner in value.items() if RENAMED.get(key, key))
    if shape.type_name == "list":
        if isinstance(value, Mapping) and shape.member.name == "Tag":
            return tag_list(value)
        return [by_model(shape.member, inner) for inner in value]
    if shape.type_name == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}[value]
    if getattr(shape, "enum", None) and value not in shape.enum:
        raise AssertionError(f"{shape.name} is one of {', '.join(shape.enum)}, not {value!r}")
    return value


def _member(shape: Any, key: str, value: Any) -> tuple[str, Any]:
    wanted = RENAMED.get(key) or key[0].upper() + key[1:]
    if wanted not in shape.members:
        raise AssertionError(f"{key}: the API's {shape.name} has no {wanted}")
    return wanted, by_model(shape.members[wanted], value)


def template_data(client: Any, props: Mapping[str, Any]) -> dict[str, Any]:
    """A launch template's arguments as EC2's RequestLaunchTemplateData."""
    shape = client.meta.service_model.operation_model("CreateLaunchTemplate").input_shape.members["LaunchTemplateData"]
    own = ("name", "tags", "updateDefaultVersion", "description")
    return dict(by_model(shape, {key: value for key, value in props.items() if key not in own}))


def _tagged(world: World, resource_id: str, props: Mapping[str, Any]) -> str:
    if props.get("tags"):
        world.client("ec2").create_tags(Resources=[resource_id], Tags=tag_list(props["tags"]))
    return resource_id


def _ec2(operation: str, answer: str) -> Callable[[World, Mapping[str, Any]], str | None]:
    """Calls the operation with those properties that it has. answer: where the id stands in what it returns, if anywhere."""

    def make(world: World, props: Mapping[str, Any]) -> str | None:
        client = world.client("ec2")
        shape = client.meta.service_model.operation_model(operation).input_shape
        given = {key: value for key, value in props.items() if value and key[0].upper() + key[1:] in shape.members}
        found = getattr(client, xform_name(operation))(**by_model(shape, given))
        for part in answer.split():
            found = found[part]
        return _tagged(world, found, props) if answer else None

    return make


def _gateway(world: World, props: Mapping[str, Any]) -> str:
    ec2 = world.client("ec2")
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=props["vpcId"])
    return _tagged(world, gateway_id, props)


def _security_group(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("ec2").create_security_group(
        GroupName=props["tags"]["Name"], Description=props["description"], VpcId=props["vpcId"]
    )
    return _tagged(world, made["GroupId"], props)


def _template(world: World, props: Mapping[str, Any]) -> str:
    ec2 = world.client("ec2")
    made = ec2.create_launch_template(
        LaunchTemplateName=props["name"],
        LaunchTemplateData=template_data(ec2, props),
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tag_list(props["tags"])}],
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def _group(world: World, props: Mapping[str, Any]) -> str:
    autoscaling = world.client("autoscaling")
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=props["name"],
        MinSize=props["minSize"],
        MaxSize=props["maxSize"],
        DesiredCapacity=props["desiredCapacity"],
        VPCZoneIdentifier=",".join(props["vpcZoneIdentifiers"]),
        HealthCheckType=props["healthCheckType"],
        LaunchTemplate={
            "LaunchTemplateId": props["launchTemplate"]["id"],
            "Version": props["launchTemplate"]["version"],
        },
        Tags=[
            {
                "Key": tag["key"],
                "Value": tag["value"],
                "PropagateAtLaunch": tag["propagateAtLaunch"],
                "ResourceId": props["name"],
                "ResourceType": "auto-scaling-group",
            }
            for tag in props["tags"]
        ],
    )
    autoscaling.suspend_processes(AutoScalingGroupName=props["name"], ScalingProcesses=props["suspendedProcesses"])
    return str(props["name"])


def _table(world: World, props: Mapping[str, Any]) -> tuple[str, str]:
    dynamodb = world.client("dynamodb")
    made = dynamodb.create_table(
        TableName=props["name"],
        BillingMode=props["billingMode"],
        AttributeDefinitions=[{"AttributeName": a["name"], "AttributeType": a["type"]} for a in props["attributes"]],
        KeySchema=[
            {"AttributeName": props["hashKey"], "KeyType": "HASH"},
            {"AttributeName": props["rangeKey"], "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index["name"],
                "Projection": {"ProjectionType": index["projectionType"]},
                "KeySchema": [
                    {"AttributeName": key["attributeName"], "KeyType": key["keyType"]} for key in index["keySchemas"]
                ],
            }
            for index in props["globalSecondaryIndexes"]
        ],
        SSESpecification={"Enabled": props["serverSideEncryption"]["enabled"]},
        DeletionProtectionEnabled=props["deletionProtectionEnabled"],
        Tags=tag_list(props["tags"]),
    )
    dynamodb.update_time_to_live(
        TableName=props["name"],
        TimeToLiveSpecification={"Enabled": props["ttl"]["enabled"], "AttributeName": props["ttl"]["attributeName"]},
    )
    dynamodb.update_continuous_backups(
        TableName=props["name"],
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": props["pointInTimeRecovery"]["enabled"]},
    )
    return props["name"], made["TableDescription"]["TableArn"]


def _bucket(world: World, props: Mapping[str, Any]) -> tuple[str, str]:
    where = {} if world.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": world.region}}
    s3 = world.client("s3")
    s3.create_bucket(Bucket=props["bucket"], **where)
    s3.put_bucket_tagging(Bucket=props["bucket"], Tagging={"TagSet": tag_list(props["tags"])})
    return props["bucket"], f"arn:aws:s3:::{props['bucket']}"


def _object(world: World, props: Mapping[str, Any]) -> None:
    body = Path(props["source"].path).read_bytes() if "source" in props else props["content"].encode()
    world.client("s3").put_object(Bucket=props["bucket"], Key=props["key"], Body=body)


def _topic(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("sns").create_topic(
        Name=props["name"], Attributes={"KmsMasterKeyId": props["kmsMasterKeyId"]}, Tags=tag_list(props["tags"])
    )
    return str(made["TopicArn"])


CREATORS: dict[str, Callable[[World, Mapping[str, Any]], Any]] = {
    "aws:ec2/vpc:Vpc": _ec2("CreateVpc", "Vpc VpcId"),
    "aws:ec2/subnet:Subnet": _ec2("CreateSubnet", "Subnet SubnetId"),
    "aws:ec2/internetGateway:InternetGateway": _gateway,
    "aws:ec2/eip:Eip": _ec2("AllocateAddress", "AllocationId"),
    "aws:ec2/natGateway:NatGateway": _ec2("CreateNatGateway", "NatGateway NatGatewayId"),
    "aws:ec2/routeTable:RouteTable": _ec2("CreateRouteTable", "RouteTable RouteTableId"),
    "aws:ec2/route:Route": _ec2("CreateRoute", ""),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _ec2("AssociateRouteTable", "AssociationId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _ec2("CreateVpcEndpoint", "VpcEndpoint VpcEndpointId"),
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:ec2/launchTemplate:LaunchTemplate": _template,
    "aws:autoscaling/group:Group": _group,
    "aws:dynamodb/table:Table": _table,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketObjectv2:BucketObjectv2": _object,
    "aws:sns/topic:Topic": _topic,
}
