"""The policies as pure functions: for each, properties that keep it and properties that break it."""

import base64
import json

import pytest

from infra.policies import RULES, UNKNOWN, Broken, PolicyContext, Registered, Unsure, judge, judge_stack

SITE = PolicyContext(keep_data=True, required_tags=frozenset({"flightline:cluster"}))
TAGS = {"flightline:cluster": "c"}
GPU = {**TAGS, "flightline:role": "gpu-node"}
GROUP, RULE_IN = "aws:ec2/securityGroup:SecurityGroup", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
OLD_RULE, DEFAULT = "aws:ec2/securityGroupRule:SecurityGroupRule", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
TEMPLATE, INSTANCE = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"
TABLE, BUCKET, TOPIC = "aws:dynamodb/table:Table", "aws:s3/bucket:Bucket", "aws:sns/topic:Topic"
QUEUE, FSX = "aws:sqs/queue:Queue", "aws:fsx/lustreFileSystem:LustreFileSystem"
SSE = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
BLOCK, BUCKET_POLICY = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "aws:s3/bucketPolicy:BucketPolicy"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
ROLE_POLICY, ROLE = "aws:iam/rolePolicy:RolePolicy", "aws:iam/role:Role"
ATTACHED = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
LOGS, FUNCTION = "aws:cloudwatch/logGroup:LogGroup", "aws:lambda/function:Function"
LOCK = "flightline:policy:Lock"
SECRET, SEAL = "aws:secretsmanager/secretVersion:SecretVersion", "flightline:policy:Seal"
VPC, ASG = "aws:ec2/vpc:Vpc", "aws:autoscaling/group:Group"
CLUSTER, NODES = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
HOOK = "https://hooks.slack.com/services/T000/B000/notarealone"


TLS = {"Bool": {"aws:SecureTransport": "true"}}
ANY_ACCOUNT = {"StringLike": {"aws:SourceAccount": "*"}}
ANOTHER_ACCOUNT = {"StringNotEquals": {"aws:SourceAccount": "123456789012"}}
ALL_BUT_S3 = json.dumps({"Statement": {"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}})


def rule(rule_id):
    (found,) = [one for one in RULES if one.id == rule_id]
    return found


def answers(rule_id, type_, props, **more):
    return list(rule(rule_id).check(Registered(type_, "it", props, **more), SITE))


def allow(action, resource="*", **more):
    return json.dumps({"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, **more}]})


def grant(principal, **more):
    return json.dumps({"Statement": {"Effect": "Allow", "Principal": principal, "Action": "s3:GetObject", **more}})


def volume(encrypted):
    return {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": encrypted}}]}


def interfaces(*public):
    return {"networkInterfaces": [{} if one is None else {"associatePublicIpAddress": one} for one in public]}


def block(**more):
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    return {**dict.fromkeys(switches, True), "bucket": "b", **more}


def sse(algorithm):
    return {"bucket": "b", "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": algorithm}}]}


def exports(*events):
    return {"dataRepositoryPath": "s3://b/tokens", "s3": {"autoExportPolicy": {"events": list(events)}}}


def named_access(**changes):
    """A cluster as it is wanted, with some properties changed."""
    access = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    good = {"accessConfig": access, "enabledClusterLogTypes": ["audit", "authenticator"]}
    return {**good, "vpcConfig": {"endpointPrivateAccess": True, "endpointPublicAccess": False}, **changes}


def endpoint(public, *ranges):
    return {"vpcConfig": {"endpointPublicAccess": public, "publicAccessCidrs": list(ranges) or None}}


def keys(arn, *resources):
    return {"encryptionConfig": {"provider": {"keyArn": arn}, "resources": list(resources)}}


def node_group(*taints, image="AL2023_x86_64_NVIDIA", **more):
    return {"launchTemplate": {"id": "lt-1"}, "amiType": image, "taints": list(taints), **more}


def chart(**changes):
    return {"version": "1.2.3", "repositoryOpts": {"repo": "https://charts"}, "atomic": True, **changes}


RELEASE = "kubernetes:helm.sh/v3:Release"
UNPROVEN = {"key": "flightline/unproven", "effect": "NO_SCHEDULE"}


def encoded(text):
    return base64.b64encode(text.encode()).decode()


KEEPS = [
    ("open-ingress", RULE_IN, {"cidrIpv4": "10.0.0.0/16"}),
    ("open-ingress", RULE_IN, {"referencedSecurityGroupId": "sg-1"}),
    ("open-ingress", GROUP, {"egress": [{"cidrBlocks": ["0.0.0.0/0"]}]}),
    ("open-ingress", OLD_RULE, {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
    ("encryption-at-rest", TEMPLATE, volume("true")),
    ("encryption-at-rest", TABLE, {"serverSideEncryption": {"enabled": True}}),
    ("encryption-at-rest", TOPIC, {"kmsMasterKeyId": "alias/x"}),
    ("encryption-at-rest", TOPIC, {"kmsMasterKeyId": UNKNOWN}),
    ("encryption-at-rest", QUEUE, {"sqsManagedSseEnabled": True}),
    ("encryption-at-rest", INSTANCE, {"rootBlockDevice": {"encrypted": True}}),
    ("encryption-at-rest", FSX, {"deploymentType": "PERSISTENT_2"}),
    ("encryption-at-rest", SSE, sse("AES256")),
    ("imdsv2", TEMPLATE, {"metadataOptions": {"httpTokens": "required"}}),
    ("public-bucket", BLOCK, block()),
    ("public-bucket", BUCKET_POLICY, {"policy": grant({"Service": "cloudtrail.amazonaws.com"})}),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*", Condition={"StringEquals": {"aws:SourceAccount": "1"}})}),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*").replace("Allow", "Deny")}),
    ("public-address", TEMPLATE, interfaces("false", None, None)),
    ("public-address", INSTANCE, {"tags": GPU, "associatePublicIpAddress": False}),
    ("public-address", INSTANCE, {"tags": {"flightline:role": "head-node"}, "associatePublicIpAddress": True}),
    ("pass-role", ROLE_POLICY, {"policy": allow("iam:PassRole", "arn:aws:iam::1:role/x")}),
    ("pass-role", ROLE_POLICY, {"policy": allow("s3:*")}),
    ("pass-role", ROLE_POLICY, {"policy": allow("iam:PassRole").replace("Allow", "Deny")}),
    ("data-protection", VPC, {}),
    ("locks", VPC, {}),
    ("data-export", LINK, exports()),
    ("data-export", LINK, exports("NEW", "CHANGED")),
    ("data-export", FSX, {"deploymentType": "PERSISTENT_2"}),
    ("tags", VPC, {"tags": TAGS}),
    ("tags", ASG, {"tags": [{"key": "flightline:cluster", "value": "c"}]}),
    ("tags", "aws:ec2/route:Route", {}),
    ("log-retention", LOGS, {"retentionInDays": 30}),
    ("secrets", TEMPLATE, {"userData": encoded("#!/bin/sh\necho hello\n")}),
    ("open-ingress", CLUSTER, endpoint(False)),
    ("open-ingress", CLUSTER, endpoint(True, "203.0.113.0/24")),
    ("encryption-at-rest", CLUSTER, keys("arn:aws:kms:::key/x", "secrets")),
    ("encryption-at-rest", CLUSTER, keys(UNKNOWN, "secrets")),
    ("cluster-access", CLUSTER, named_access()),
    ("unproven-nodes", NODES, node_group(UNPROVEN)),
    ("unproven-nodes", NODES, node_group(image="AL2023_x86_64_STANDARD")),
    ("pinned-charts", RELEASE, chart()),
    ("pinned-charts", RELEASE, chart(version="v0.5.29")),
    ("known-type", VPC, {}),
    ("known-type", RELEASE, {}),
    ("known-type", "flightline:infra:Network", {}),
    ("known-type", "pulumi:providers:aws", {}),
]

BREAKS = [
    ("open-ingress", RULE_IN, {"cidrIpv4": "0.0.0.0/0"}, "0.0.0.0/0"),
    ("open-ingress", RULE_IN, {"cidrIpv6": "::/0"}, "::/0"),
    ("open-ingress", RULE_IN, {"cidrIpv4": "128.0.0.0/1"}, "128.0.0.0/1"),
    ("open-ingress", RULE_IN, {"cidrIpv4": "anywhere"}, "anywhere"),
    ("open-ingress", GROUP, {"ingress": [{"cidrBlocks": ["10.0.0.0/8", "0.0.0.0/0"]}]}, "0.0.0.0/0"),
    ("open-ingress", GROUP, {"ingress": [{"ipv6CidrBlocks": ["::/0"]}]}, "::/0"),
    ("open-ingress", RULE_IN, {"prefixListId": "pl-1"}, "pl-1"),
    ("open-ingress", GROUP, {"ingress": [{"prefixListIds": ["pl-2"]}]}, "pl-2"),
    ("open-ingress", OLD_RULE, {"type": "ingress", "prefixListIds": ["pl-3"]}, "pl-3"),
    ("open-ingress", DEFAULT, {"ingress": [{"cidrBlocks": ["0.0.0.0/0"]}]}, "0.0.0.0/0"),
    ("open-ingress", OLD_RULE, {"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]}, "0.0.0.0/0"),
    ("open-ingress", CLUSTER, {}, "endpointPublicAccess is not set"),
    ("open-ingress", CLUSTER, endpoint(True), "default is the world"),
    ("open-ingress", CLUSTER, endpoint(True, "203.0.113.0/24", "0.0.0.0/0"), "0.0.0.0/0"),
    ("encryption-at-rest", CLUSTER, {}, "keyArn is not set"),
    ("encryption-at-rest", CLUSTER, keys("arn:aws:kms:::key/x"), "lacks secrets"),
    ("cluster-access", CLUSTER, named_access(accessConfig={}), "authenticationMode is not set"),
    ("cluster-access", CLUSTER, named_access(enabledClusterLogTypes=["api", "audit"]), "lacks authenticator"),
    (
        "cluster-access",
        CLUSTER,
        named_access(vpcConfig={"endpointPrivateAccess": False}),
        "endpointPrivateAccess is false",
    ),
    ("unproven-nodes", NODES, node_group(), "taints lack flightline/unproven"),
    ("unproven-nodes", NODES, node_group(image=None), "taints lack flightline/unproven"),
    ("unproven-nodes", NODES, node_group({**UNPROVEN, "effect": "PREFER_NO_SCHEDULE"}), "taints lack"),
    ("unproven-nodes", NODES, node_group(UNPROVEN, launchTemplate=None), "launchTemplate is not set"),
    ("unproven-nodes", NODES, node_group(UNPROVEN, remoteAccess={"ec2SshKey": "me"}), "opens SSH"),
    ("encryption-at-rest", TEMPLATE, volume("false"), "encrypted is 'false'"),
    ("encryption-at-rest", TEMPLATE, volume(None), "encrypted is not set"),
    ("encryption-at-rest", TEMPLATE, {}, "blockDeviceMappings is not set"),
    ("encryption-at-rest", TABLE, {}, "serverSideEncryption.enabled is not set"),
    ("encryption-at-rest", TOPIC, {}, "kmsMasterKeyId is not set"),
    ("encryption-at-rest", QUEUE, {}, "kmsMasterKeyId is not set"),
    ("encryption-at-rest", INSTANCE, {}, "rootBlockDevice.encrypted is not set"),
    ("encryption-at-rest", FSX, {"deploymentType": "SCRATCH_2"}, "scratch"),
    ("encryption-at-rest", SSE, sse("ROT13"), "ROT13"),
    ("encryption-at-rest", "aws:ebs/volume:Volume", {"encrypted": False}, "encrypted is false"),
    ("imdsv2", TEMPLATE, {"metadataOptions": {"httpTokens": "optional"}}, "'optional'"),
    ("imdsv2", TEMPLATE, {}, "not set"),
    ("imdsv2", INSTANCE, {}, "not set"),
    ("public-bucket", BLOCK, block(blockPublicPolicy=False), "blockPublicPolicy is false"),
    ("public-bucket", BUCKET, {"acl": "public-read"}, "public-read"),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*")}, "everybody"),
    ("public-bucket", BUCKET_POLICY, {"policy": grant({"AWS": ["*"]})}, "everybody"),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*", Condition=TLS)}, "everybody"),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*", Condition=ANY_ACCOUNT)}, "everybody"),
    ("public-bucket", BUCKET_POLICY, {"policy": grant("*", Condition=ANOTHER_ACCOUNT)}, "everybody"),
    ("public-address", TEMPLATE, interfaces("true"), "is true"),
    ("public-address", TEMPLATE, interfaces("false", "true"), "networkInterfaces[1]"),
    ("public-address", TEMPLATE, interfaces(None), "not set"),
    ("public-address", TEMPLATE, {}, "not set"),
    ("public-address", INSTANCE, {"tags": GPU, "associatePublicIpAddress": True}, "is true"),
    ("public-address", INSTANCE, {"tags": GPU}, "not set"),
    ("public-address", INSTANCE, {"tags": UNKNOWN, "associatePublicIpAddress": True}, "is true"),
    ("pass-role", ROLE_POLICY, {"policy": allow("iam:PassRole")}, "PassRole"),
    ("pass-role", ROLE_POLICY, {"policy": allow(["s3:GetObject", "IAM:pass*"])}, "PassRole"),
    ("pass-role", ROLE_POLICY, {"policy": allow("iam:*", ["arn:aws:iam::1:role/*"])}, "PassRole"),
    ("pass-role", ROLE_POLICY, {"policy": allow("*")}, "PassRole"),
    ("pass-role", ROLE_POLICY, {"policy": ALL_BUT_S3}, "PassRole"),
    ("pass-role", ROLE, {"inlinePolicies": [{"policy": allow("iam:PassRole")}]}, "PassRole"),
    ("pass-role", ATTACHED, {"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}, "AdministratorAccess"),
    ("data-protection", TABLE, {"pointInTimeRecovery": {"enabled": True}}, "deletionProtectionEnabled is not set"),
    ("data-protection", BUCKET, {"forceDestroy": True}, "forceDestroy is true"),
    ("data-export", LINK, exports("NEW", "DELETED"), "has DELETED"),
    ("data-export", LINK, exports("deleted"), "has DELETED"),
    ("data-export", FSX, {"exportPath": "s3://b"}, "exportPath is set"),
    ("locks", LOCK, {}, "it is not protected"),
    ("tags", VPC, {}, "lacks flightline:cluster"),
    ("tags", VPC, {"tags": {"flightline:cluster": ""}}, "lacks flightline:cluster"),
    ("tags", ASG, {"tags": [{"key": "Name", "value": "c"}]}, "lacks flightline:cluster"),
    ("tags", TEMPLATE, {"tags": TAGS}, "tagSpecifications[instance]"),
    ("log-retention", LOGS, {}, "retentionInDays is not set"),
    ("log-retention", LOGS, {"retentionInDays": 0}, "retentionInDays is 0"),
    ("secrets", SECRET, {"secretString": "x"}, "not a Pulumi secret"),
    ("secrets", TEMPLATE, {"userData": encoded(f"curl {HOOK}")}, "userData"),
    ("secrets", VPC, {"tags": {"a": "AKIA" + "ABCDEFGHIJKLMNOP"}}, "tags"),
    ("secrets", FUNCTION, {"environment": {"variables": {"WEBHOOK": HOOK}}}, "environment"),
    ("pinned-charts", RELEASE, chart(version=None), "version is not set"),
    ("pinned-charts", RELEASE, chart(version=">=1.0"), "version is >=1.0"),
    ("pinned-charts", RELEASE, chart(version="1"), "version is 1"),
    ("pinned-charts", RELEASE, chart(repositoryOpts={"repo": "http://charts"}), "https:// or oci://"),
    ("pinned-charts", RELEASE, chart(atomic=False), "atomic is false"),
    ("known-type", "aws:rds/instance:Instance", {}, "do not know this type"),
    ("known-type", "kubernetes:core/v1:Secret", {}, "do not know this type"),
]


@pytest.mark.parametrize(("rule_id", "type_", "props"), KEEPS)
def test_what_keeps_a_rule_passes_it(rule_id, type_, props):
    assert answers(rule_id, type_, props) == []


@pytest.mark.parametrize(("rule_id", "type_", "props", "words"), BREAKS)
def test_what_breaks_a_rule_is_named(rule_id, type_, props, words):
    protected = rule_id == "data-protection"
    found = answers(rule_id, type_, props, protect=protected, retain=protected)
    assert found and all(isinstance(answer, Broken) for answer in found)
    assert words in found[0].text


def test_every_rule_is_kept_and_broken_here():
    ids = {one.id for one in RULES}
    assert {entry[0] for entry in KEEPS} == ids
    assert {entry[0] for entry in BREAKS} == ids


@pytest.mark.parametrize(
    ("rule_id", "type_", "props"),
    [
        ("open-ingress", RULE_IN, {"cidrIpv4": UNKNOWN}),
        ("open-ingress", GROUP, {"ingress": UNKNOWN}),
        ("open-ingress", CLUSTER, {"vpcConfig": UNKNOWN}),
        ("encryption-at-rest", CLUSTER, {"encryptionConfig": UNKNOWN}),
        ("cluster-access", CLUSTER, named_access(enabledClusterLogTypes=UNKNOWN)),
        ("unproven-nodes", NODES, node_group(UNKNOWN)),
        ("pinned-charts", RELEASE, chart(version=UNKNOWN)),
        ("encryption-at-rest", TEMPLATE, volume(UNKNOWN)),
        ("imdsv2", TEMPLATE, {"metadataOptions": UNKNOWN}),
        ("public-bucket", BUCKET_POLICY, {"policy": UNKNOWN}),
        ("public-address", TEMPLATE, interfaces(UNKNOWN)),
        ("pass-role", ROLE_POLICY, {"policy": UNKNOWN}),
        ("data-export", LINK, {"s3": {"autoExportPolicy": {"events": UNKNOWN}}}),
        ("data-export", LINK, {"s3": {"autoExportPolicy": UNKNOWN}}),
        ("tags", VPC, {"tags": UNKNOWN}),
        ("secrets", SECRET, {"secretString": UNKNOWN}),
    ],
)
def test_an_unknown_value_is_neither_kept_nor_broken(rule_id, type_, props):
    found = answers(rule_id, type_, props)
    assert found and all(isinstance(answer, Unsure) for answer in found)


def test_data_must_be_protected_and_retained():
    table = {"deletionProtectionEnabled": True, "pointInTimeRecovery": {"enabled": True}}
    assert answers("data-protection", TABLE, table, protect=True, retain=True) == []
    texts = [answer.text for answer in answers("data-protection", TABLE, table)]
    assert len(texts) == 2 and "protected" in texts[0] and "deleted with the stack" in texts[1]


def test_what_makes_a_kept_bucket_private_is_kept_with_it():
    for type_ in (BLOCK, BUCKET_POLICY, SSE, "aws:s3/bucketVersioning:BucketVersioning"):
        texts = [answer.text for answer in answers("data-protection", type_, {"bucket": "b"})]
        assert len(texts) == 2, type_
        assert answers("data-protection", type_, {"bucket": "b"}, protect=True, retain=True) == []


def test_a_stack_may_say_that_its_data_can_go():
    throwaway = PolicyContext(keep_data=False)
    assert list(rule("data-protection").check(Registered(TABLE, "t", {}), throwaway)) == []


def test_a_secret_in_what_anybody_can_read_is_broken_even_when_it_is_a_pulumi_secret():
    for type_, key in ((TEMPLATE, "userData"), (VPC, "tags"), (FUNCTION, "environment"), (SEAL, "slack")):
        (answer,) = answers("secrets", type_, {key: "x"}, secret_props=frozenset({key}))
        assert isinstance(answer, Broken) and key in answer.text


def test_a_pulumi_secret_in_its_place_is_kept():
    assert answers("secrets", SECRET, {"secretString": HOOK}, secret_props=frozenset({"secretString"})) == []


def bucket(name="b"):
    return Registered(BUCKET, f"bucket-{name}", {"bucket": name})


def test_a_bucket_without_its_companions_is_named():
    found = list(judge_stack((bucket(),)))
    assert [(one.rule, "bucket-b" in one.resource) for one in found] == [
        ("encryption-at-rest", True),
        ("public-bucket", True),
    ]
    companions = (Registered(BLOCK, "x", block()), Registered(SSE, "y", sse("AES256")))
    assert list(judge_stack((bucket(), *companions))) == []
    assert len(list(judge_stack((bucket("other"), *companions)))) == 2


def test_protected_data_without_a_lock_is_named():
    kept = Registered(TABLE, "results", {}, protect=True)
    (found,) = judge_stack((kept,))
    assert str(found).startswith("[locks] results (") and "it is kept without a flightline:policy:Lock" in str(found)
    assert list(judge_stack((kept, Registered(LOCK, "lock", {}, protect=True)))) == []


def versions(bucket="b", status="Enabled"):
    return Registered(VERSIONING, "v", {"bucket": bucket, "versioningConfiguration": {"status": status}})


@pytest.mark.parametrize(
    ("beside", "wanted"),
    [
        ([versions()], None),
        ([], Broken),
        ([versions("another")], Broken),
        ([versions(status="Suspended")], Broken),
        ([versions(UNKNOWN)], Unsure),
        ([versions(status=UNKNOWN)], Unsure),
    ],
)
def test_what_is_exported_goes_into_a_bucket_of_the_stack_that_keeps_versions(beside, wanted):
    (check,) = [one.check_stack for one in RULES if one.id == "data-export"]
    link = Registered(LINK, "link", exports("NEW"))
    assert [type(answer) for _, answer in check((link, *beside))] == ([wanted] if wanted else [])
    assert list(check((Registered(LINK, "link", exports()), *beside))) == []


def test_companions_of_an_unknown_bucket_leave_the_question_open():
    companions = (Registered(BLOCK, "x", block(bucket=UNKNOWN)), Registered(SSE, "y", {"bucket": UNKNOWN}))
    assert [type(one.answer) for one in judge_stack((bucket(), *companions))] == [Unsure, Unsure]


def test_a_function_that_would_make_its_own_log_group_is_named():
    function = Registered(FUNCTION, "f", {"name": "f"})
    (found,) = judge_stack((function,))
    assert found.rule == "log-retention" and "/aws/lambda/f" in found.answer.text
    assert list(judge_stack((function, Registered(LOGS, "g", {"name": "/aws/lambda/f"})))) == []
    chosen = Registered(FUNCTION, "f", {"name": "f", "loggingConfig": {"logGroup": "mine"}})
    assert list(judge_stack((chosen, Registered(LOGS, "g", {"name": "mine"})))) == []


def test_a_cluster_whose_log_would_never_be_forgotten_is_named():
    made = Registered(CLUSTER, "c", {"name": "c"})
    group = Registered(LOGS, "g", {"name": "/aws/eks/c/cluster"})
    (found,) = [one for one in judge_stack((made,)) if one.rule == "log-retention"]
    assert isinstance(found.answer, Broken) and "/aws/eks/c/cluster" in found.answer.text
    assert [one for one in judge_stack((made, group)) if one.rule == "log-retention"] == []
    unsure = Registered(CLUSTER, "c", {"name": UNKNOWN})
    assert [type(one.answer) for one in judge_stack((unsure, group))] == [Unsure]


def test_a_finding_names_rule_and_resource():
    found = list(judge(Registered(RULE_IN, "fabric-ssh", {"cidrIpv4": "0.0.0.0/0", "tags": TAGS}), SITE))
    assert [str(one).split(":")[0] for one in found] == ["[open-ingress] fabric-ssh (aws"]
