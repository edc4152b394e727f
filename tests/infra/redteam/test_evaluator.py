"""The evaluator by IAM's documentation: each row is a rule of the user guide."""

import pytest

from tests.infra.redteam.evaluator import Request, UnknownElementError, allowed

BUCKET = "arn:aws:s3:::b"
ME = "arn:aws:iam::123456789012:role/node"
CONTEXT = {"aws:userid": "AROA:i-1", "s3:prefix": "a/b", "cloudwatch:namespace": "Flightline/x", "tags": ["a", "b"]}


def policy(*statements, **one):
    made = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{BUCKET}/*"}
    return {"Version": "2012-10-17", "Statement": [{**made, **each} for each in (statements or [one])]}


def asks(action="s3:GetObject", resource=f"{BUCKET}/k", **context):
    return Request(action, resource, {**CONTEXT, **context}, ME)


@pytest.mark.parametrize(
    ("statement", "request_", "wanted"),
    [
        ({}, asks(), True),
        ({}, asks("s3:PutObject"), False),
        ({"Action": "s3:get*"}, asks(), True),
        ({"Action": ["ec2:*", "s3:Get?bject"]}, asks(), True),
        ({"Resource": "*"}, asks(), True),
        ({"Resource": f"{BUCKET}/a*"}, asks(resource=f"{BUCKET}/a/b:c/d"), True),
        ({"Resource": "arn:aws:s3:*"}, asks(), False),  # a wildcard stays within its segment
        (
            {"Resource": "arn:aws:logs:*:1:log-group:g:log-stream:*"},
            asks(resource="arn:aws:logs:r:1:log-group:g"),
            False,
        ),
        ({"Resource": f"{BUCKET}/${{aws:userid}}/*"}, asks(resource=f"{BUCKET}/AROA:i-1/x"), True),
        ({"Resource": f"{BUCKET}/${{aws:USERID}}/*"}, asks(resource=f"{BUCKET}/AROA:i-1/x"), True),
        ({"Resource": f"{BUCKET}/${{aws:userid}}/*"}, asks(resource=f"{BUCKET}/AROA:i-2/x"), False),
        ({"Resource": f"{BUCKET}/${{aws:none}}*"}, asks(resource=f"{BUCKET}/"), False),
        ({"Resource": f"{BUCKET}/${{tags}}*"}, asks(resource=f"{BUCKET}/a"), False),  # several values are no variable
        ({"Resource": f"{BUCKET}/${{aws:none, 'd'}}"}, asks(resource=f"{BUCKET}/d"), True),
        # What a variable brings is text, and so are the escapes.
        ({"Resource": f"{BUCKET}/${{aws:userid}}"}, asks(resource=f"{BUCKET}/anything", **{"aws:userid": "*"}), False),
        ({"Resource": f"{BUCKET}/${{*}}"}, asks(resource=f"{BUCKET}/*"), True),
        ({"Resource": f"{BUCKET}/${{*}}"}, asks(resource=f"{BUCKET}/x"), False),
        ({"Condition": {"StringEquals": {"cloudwatch:namespace": "Flightline/x"}}}, asks(), True),
        ({"Condition": {"StringEquals": {"cloudwatch:namespace": "Flightline/*"}}}, asks(), False),
        ({"Condition": {"StringLike": {"cloudwatch:namespace": ["y", "Flightline/*"]}}}, asks(), True),
        ({"Condition": {"StringEquals": {"absent": "x"}}}, asks(), False),
        ({"Condition": {"StringEqualsIfExists": {"absent": "x"}}}, asks(), True),
        ({"Condition": {"StringNotEquals": {"absent": "x"}}}, asks(), True),
        ({"Condition": {"StringNotLike": {"s3:prefix": "a/*"}}}, asks(), False),
        ({"Condition": {"StringLike": {"s3:prefix": "a/*", "aws:userid": "x"}}}, asks(), False),  # every key must hold
        ({"Condition": {"ArnLike": {"who": "arn:aws:iam::*:role/node"}}}, asks(who=ME), True),
        ({"Condition": {"ArnLike": {"who": "arn:aws:*"}}}, asks(who=ME), False),
        ({"Condition": {"StringEquals": {"who": "${aws:userid}"}}}, asks(who="AROA:i-1"), True),
        ({"Condition": {"Bool": {"aws:SecureTransport": "false"}}}, asks(**{"aws:SecureTransport": "true"}), False),
        ({"Condition": {"Null": {"absent": "true", "aws:userid": "false"}}}, asks(), True),
        ({"Condition": {"ForAllValues:StringEquals": {"tags": ["a", "b", "c"]}}}, asks(), True),
        ({"Condition": {"ForAllValues:StringEquals": {"tags": ["a"]}}}, asks(), False),
        ({"Condition": {"ForAnyValue:StringEquals": {"tags": ["a"]}}}, asks(), True),
        ({"Condition": {"ForAllValues:StringEquals": {"absent": ["a"]}}}, asks(), True),
    ],
)
def test_a_statement_is_judged_as_documented(statement, request_, wanted):
    assert allowed([policy(**statement)], request_) is wanted


def test_a_deny_anywhere_is_the_last_word():
    deny = policy(Effect="Deny", Principal="*", Condition={"Bool": {"aws:SecureTransport": "false"}})
    plain = {"aws:SecureTransport": "false"}
    assert allowed([policy()], asks(**{"aws:SecureTransport": "true"}), [deny])
    assert not allowed([policy()], asks(**plain), [deny])
    assert not allowed([policy({}, {"Effect": "Deny"})], asks())
    assert not allowed([policy(Effect="Deny", Action="x:y", Resource="*")], asks()), "nothing allows it"


def test_not_action_and_not_resource_mean_the_others():
    others = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "NotAction": "s3:Put*", "NotResource": "x"}}
    assert allowed([others], asks()) and not allowed([others], asks("s3:PutObject"))


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}, {"AWS": [ME]}, {"AWS": "arn:aws:iam::123456789012:root"}])
def test_a_policy_of_the_resource_can_allow_whom_it_names(principal):
    assert allowed([], asks(), [policy(Principal=principal)])


def test_a_policy_of_the_resource_for_somebody_else_allows_nothing():
    for principal in ({"Service": "s3.amazonaws.com"}, {"AWS": ME + "2"}):
        assert not allowed([], asks(), [policy(Principal=principal)])


@pytest.mark.parametrize(
    "statement",
    [{"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}, {"NotPrincipal": "*"}],
)
def test_what_it_does_not_know_it_does_not_judge(statement):
    with pytest.raises(UnknownElementError):
        allowed([policy(**statement)], asks())


def test_a_value_of_several_needs_a_set_operator():
    with pytest.raises(UnknownElementError, match="several values"):
        allowed([policy(Condition={"StringEquals": {"tags": "a"}})], asks())
