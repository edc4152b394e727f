"""A resource type that the policies have not been told about is not let through."""

from typing import FrozenSet, Iterator

from .data_protection import DATA
from .encryption import STORES
from .model import Answer, Broken, PolicyContext, Registered, Rule
from .pinned_charts import RELEASE

_HARMLESS = """
autoscaling/group:Group autoscaling/lifecycleHook:LifecycleHook autoscaling/policy:Policy
autoscaling/schedule:Schedule
budgets/budget:Budget
cloudtrail/trail:Trail
cloudwatch/compositeAlarm:CompositeAlarm cloudwatch/dashboard:Dashboard cloudwatch/eventRule:EventRule
cloudwatch/eventTarget:EventTarget cloudwatch/logGroup:LogGroup cloudwatch/logMetricFilter:LogMetricFilter
cloudwatch/logSubscriptionFilter:LogSubscriptionFilter cloudwatch/metricAlarm:MetricAlarm
costexplorer/anomalyMonitor:AnomalyMonitor costexplorer/anomalySubscription:AnomalySubscription
ec2/defaultSecurityGroup:DefaultSecurityGroup ec2/eip:Eip ec2/flowLog:FlowLog ec2/internetGateway:InternetGateway
ec2/natGateway:NatGateway ec2/placementGroup:PlacementGroup ec2/route:Route ec2/routeTable:RouteTable
ec2/routeTableAssociation:RouteTableAssociation ec2/securityGroup:SecurityGroup
ec2/securityGroupRule:SecurityGroupRule ec2/subnet:Subnet ec2/vpc:Vpc ec2/vpcEndpoint:VpcEndpoint
eks/accessEntry:AccessEntry eks/accessPolicyAssociation:AccessPolicyAssociation eks/addon:Addon
eks/nodeGroup:NodeGroup eks/podIdentityAssociation:PodIdentityAssociation
fsx/dataRepositoryAssociation:DataRepositoryAssociation
iam/instanceProfile:InstanceProfile iam/policy:Policy iam/role:Role iam/rolePolicy:RolePolicy
iam/rolePolicyAttachment:RolePolicyAttachment
kms/alias:Alias kms/key:Key
lambda/eventSourceMapping:EventSourceMapping lambda/function:Function
lambda/functionEventInvokeConfig:FunctionEventInvokeConfig lambda/permission:Permission
s3/bucketAcl:BucketAcl s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration
s3/bucketNotification:BucketNotification s3/bucketObject:BucketObject s3/bucketObjectv2:BucketObjectv2
s3/bucketOwnershipControls:BucketOwnershipControls s3/bucketPolicy:BucketPolicy
s3/bucketPublicAccessBlock:BucketPublicAccessBlock
s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration
s3/bucketVersioning:BucketVersioning
secretsmanager/secret:Secret secretsmanager/secretVersion:SecretVersion
sns/topicPolicy:TopicPolicy sns/topicSubscription:TopicSubscription
sqs/queuePolicy:QueuePolicy
ssm/document:Document
vpc/securityGroupEgressRule:SecurityGroupEgressRule vpc/securityGroupIngressRule:SecurityGroupIngressRule
"""
"""Types that keep no data at rest of their own, or encrypt it always, or are judged by another rule."""

KNOWN: FrozenSet[str] = (
    frozenset(f"aws:{token}" for token in _HARMLESS.split()) | frozenset(STORES) | frozenset(DATA) | {RELEASE}
)


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Resources of AWS and of a cluster; components and providers are the program's own."""
    if resource.type_.startswith(("aws:", "kubernetes:")) and resource.type_ not in KNOWN:
        yield Broken(
            "the policies do not know this type; say in infra/policies/known_type.py that it stores nothing, "
            "or in infra/policies/encryption.py how it is encrypted"
        )


RULE = Rule("known-type", "A rule says nothing about what it never looks at.", check)
