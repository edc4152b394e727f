"""Creates what the program planned on an AWS emulator (moto's server), the way the provider would call AWS.

It reads the arguments that were recorded under mocks, turns them into API calls by the service's own model, and puts real
ids where the stand-in engine had invented ones. Only the types in CREATORS are made; the rest moto cannot hold.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
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
    skipped: list[str] = field(default_factory=list)
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
            world.skipped.append(request.type_)
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


def _vpc(world: World, props: Mapping[str, Any]) -> str:
    ec2 = world.client("ec2")
    vpc_id = ec2.create_vpc(CidrBlock=props["cidrBlock"])["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": props["enableDnsHostnames"]})
    return _tagged(world, vpc_id, props)


def _subnet(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("ec2").create_subnet(
        VpcId=props["vpcId"], CidrBlock=props["cidrBlock"], AvailabilityZone=props["availabilityZone"]
    )
    return _tagged(world, made["Subnet"]["SubnetId"], props)


def _gateway(world: World, props: Mapping[str, Any]) -> str:
    ec2 = world.client("ec2")
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=props["vpcId"])
    return _tagged(world, gateway_id, props)


def _address(world: World, props: Mapping[str, Any]) -> str:
    return _tagged(world, world.client("ec2").allocate_address(Domain=props["domain"])["AllocationId"], props)


def _nat(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("ec2").create_nat_gateway(AllocationId=props["allocationId"], SubnetId=props["subnetId"])
    return _tagged(world, made["NatGateway"]["NatGatewayId"], props)


def _route_table(world: World, props: Mapping[str, Any]) -> str:
    return _tagged(
        world, world.client("ec2").create_route_table(VpcId=props["vpcId"])["RouteTable"]["RouteTableId"], props
    )


def _route(world: World, props: Mapping[str, Any]) -> None:
    target = {"gatewayId": "GatewayId", "natGatewayId": "NatGatewayId"}
    world.client("ec2").create_route(
        RouteTableId=props["routeTableId"],
        DestinationCidrBlock=props["destinationCidrBlock"],
        **{name: props[key] for key, name in target.items() if key in props},
    )


def _association(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("ec2").associate_route_table(RouteTableId=props["routeTableId"], SubnetId=props["subnetId"])
    return str(made["AssociationId"])


def _endpoint(world: World, props: Mapping[str, Any]) -> str:
    more = {"RouteTableIds": props.get("routeTableIds"), "SubnetIds": props.get("subnetIds")}
    made = world.client("ec2").create_vpc_endpoint(
        VpcId=props["vpcId"],
        ServiceName=props["serviceName"],
        VpcEndpointType=props["vpcEndpointType"],
        **{key: value for key, value in more.items() if value},
    )
    return _tagged(world, made["VpcEndpoint"]["VpcEndpointId"], props)


def _security_group(world: World, props: Mapping[str, Any]) -> str:
    ec2 = world.client("ec2")
    name = (props.get("tags") or {}).get("Name", props["description"])
    group_id = ec2.create_security_group(GroupName=name, Description=props["description"], VpcId=props["vpcId"])[
        "GroupId"
    ]
    # The provider takes away the rule that AWS puts into every new group: out to everywhere.
    everywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=everywhere)
    return _tagged(world, group_id, props)


def _rule(direction: str) -> Callable[[World, Mapping[str, Any]], None]:
    def make(world: World, props: Mapping[str, Any]) -> None:
        permission: dict[str, Any] = {"IpProtocol": props["ipProtocol"]}
        if "fromPort" in props:
            permission.update(FromPort=props["fromPort"], ToPort=props["toPort"])
        if "referencedSecurityGroupId" in props:
            permission["UserIdGroupPairs"] = [{"GroupId": props["referencedSecurityGroupId"]}]
        if "cidrIpv4" in props:
            permission["IpRanges"] = [{"CidrIp": props["cidrIpv4"]}]
        call = getattr(world.client("ec2"), f"authorize_security_group_{direction}")
        call(GroupId=props["securityGroupId"], IpPermissions=[permission])

    return make


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


def _hook(world: World, props: Mapping[str, Any]) -> None:
    world.client("autoscaling").put_lifecycle_hook(
        LifecycleHookName=props["name"],
        AutoScalingGroupName=props["autoscalingGroupName"],
        LifecycleTransition=props["lifecycleTransition"],
        DefaultResult=props["defaultResult"],
        HeartbeatTimeout=props["heartbeatTimeout"],
    )


def _role(world: World, props: Mapping[str, Any]) -> tuple[str, str]:
    made = world.client("iam").create_role(
        RoleName=props["name"], AssumeRolePolicyDocument=props["assumeRolePolicy"], Tags=tag_list(props["tags"])
    )
    return props["name"], made["Role"]["Arn"]


def _role_policy(world: World, props: Mapping[str, Any]) -> None:
    world.client("iam").put_role_policy(
        RoleName=props["role"], PolicyName=props["name"], PolicyDocument=props["policy"]
    )


def _profile(world: World, props: Mapping[str, Any]) -> tuple[str, str]:
    iam = world.client("iam")
    made = iam.create_instance_profile(InstanceProfileName=props["name"])
    iam.add_role_to_instance_profile(InstanceProfileName=props["name"], RoleName=props["role"])
    return props["name"], made["InstanceProfile"]["Arn"]


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


def _private(world: World, props: Mapping[str, Any]) -> None:
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    block = {key[0].upper() + key[1:]: props[key] for key in switches}
    world.client("s3").put_public_access_block(Bucket=props["bucket"], PublicAccessBlockConfiguration=block)


def _bucket_policy(world: World, props: Mapping[str, Any]) -> None:
    world.client("s3").put_bucket_policy(Bucket=props["bucket"], Policy=props["policy"])


def _bucket_encryption(world: World, props: Mapping[str, Any]) -> None:
    rules = [
        {
            "ApplyServerSideEncryptionByDefault": {
                "SSEAlgorithm": rule["applyServerSideEncryptionByDefault"]["sseAlgorithm"]
            }
        }
        for rule in props["rules"]
    ]
    world.client("s3").put_bucket_encryption(Bucket=props["bucket"], ServerSideEncryptionConfiguration={"Rules": rules})


def _versioning(world: World, props: Mapping[str, Any]) -> None:
    status = {"Status": props["versioningConfiguration"]["status"]}
    world.client("s3").put_bucket_versioning(Bucket=props["bucket"], VersioningConfiguration=status)


def _lifecycle(world: World, props: Mapping[str, Any]) -> None:
    s3 = world.client("s3")
    operation = s3.meta.service_model.operation_model("PutBucketLifecycleConfiguration")
    shape = operation.input_shape.members["LifecycleConfiguration"].members["Rules"].member
    rules = [{"ID": rule["id"], **by_model(shape, _without(rule, "id"))} for rule in props["rules"]]
    s3.put_bucket_lifecycle_configuration(Bucket=props["bucket"], LifecycleConfiguration={"Rules": rules})


def _without(props: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in props.items() if name != key}


def _object(world: World, props: Mapping[str, Any]) -> None:
    body = Path(props["source"].path).read_bytes() if "source" in props else props["content"].encode()
    world.client("s3").put_object(Bucket=props["bucket"], Key=props["key"], Body=body)


def _key(world: World, props: Mapping[str, Any]) -> tuple[str, str]:
    made = world.client("kms").create_key(Policy=props["policy"], Description=props["description"])["KeyMetadata"]
    return made["KeyId"], made["Arn"]


def _topic(world: World, props: Mapping[str, Any]) -> str:
    made = world.client("sns").create_topic(
        Name=props["name"], Attributes={"KmsMasterKeyId": props["kmsMasterKeyId"]}, Tags=tag_list(props["tags"])
    )
    return str(made["TopicArn"])


def _topic_policy(world: World, props: Mapping[str, Any]) -> None:
    world.client("sns").set_topic_attributes(
        TopicArn=props["arn"], AttributeName="Policy", AttributeValue=props["policy"]
    )


def _subscription(world: World, props: Mapping[str, Any]) -> None:
    if props["protocol"] == "email":
        world.client("sns").subscribe(TopicArn=props["topic"], Protocol=props["protocol"], Endpoint=props["endpoint"])


def _log_group(world: World, props: Mapping[str, Any]) -> None:
    logs = world.client("logs")
    logs.create_log_group(logGroupName=props["name"], tags=dict(props["tags"]))
    logs.put_retention_policy(logGroupName=props["name"], retentionInDays=props["retentionInDays"])


def _secret(world: World, props: Mapping[str, Any]) -> str:
    return str(world.client("secretsmanager").create_secret(Name=props["name"])["ARN"])


def _secret_version(world: World, props: Mapping[str, Any]) -> None:
    world.client("secretsmanager").put_secret_value(SecretId=props["secretId"], SecretString=props["secretString"])


CREATORS: dict[str, Callable[[World, Mapping[str, Any]], Any]] = {
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ec2/subnet:Subnet": _subnet,
    "aws:ec2/internetGateway:InternetGateway": _gateway,
    "aws:ec2/eip:Eip": _address,
    "aws:ec2/natGateway:NatGateway": _nat,
    "aws:ec2/routeTable:RouteTable": _route_table,
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _association,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoint,
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("ingress"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("egress"),
    "aws:ec2/launchTemplate:LaunchTemplate": _template,
    "aws:autoscaling/group:Group": _group,
    "aws:autoscaling/lifecycleHook:LifecycleHook": _hook,
    "aws:iam/role:Role": _role,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:iam/instanceProfile:InstanceProfile": _profile,
    "aws:dynamodb/table:Table": _table,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _private,
    "aws:s3/bucketPolicy:BucketPolicy": _bucket_policy,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _bucket_encryption,
    "aws:s3/bucketVersioning:BucketVersioning": _versioning,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _lifecycle,
    "aws:s3/bucketObjectv2:BucketObjectv2": _object,
    "aws:kms/key:Key": _key,
    "aws:sns/topic:Topic": _topic,
    "aws:sns/topicPolicy:TopicPolicy": _topic_policy,
    "aws:sns/topicSubscription:TopicSubscription": _subscription,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:secretsmanager/secret:Secret": _secret,
    "aws:secretsmanager/secretVersion:SecretVersion": _secret_version,
}
