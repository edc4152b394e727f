"""The guard inside a run: what it stops, what it leaves open in a preview, and that it then judges the update."""

import pulumi
import pulumi_aws as aws
import pytest

from infra.guard import PolicyBreach, PolicyGuard
from infra.policies import Broken, PolicyContext, PolicyFinding, Unsure
from tests.infra import engine, program

TAGS = {"flightline:cluster": "c"}
SITE = PolicyContext(keep_data=True, required_tags=frozenset(TAGS))


def ingress(name, cidr):
    return aws.vpc.SecurityGroupIngressRule(
        name, security_group_id="sg-1", ip_protocol="tcp", from_port=22, to_port=22, cidr_ipv4=cidr, tags=TAGS
    )


def run(build, preview, outputs=lambda: {"region": "us-east-1"}, **options):
    guards = []

    def main():
        guard = PolicyGuard(SITE)
        guards.append(guard)
        guard.install()
        parts = build()
        guard.finish(outputs(), parts)

    return engine.run(main, preview=preview, **options), guards[0]


def late(text):
    """A value that no preview knows: something of a resource that does not exist yet."""
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags=TAGS)
    return vpc, vpc.id.apply(lambda _: text)


def is_plain(error):
    """The language host prints a RunError as its text alone, and any other error with its traceback."""
    text = str(error)
    return isinstance(error, pulumi.RunError) and not [
        word for word in ("Traceback", 'File "', "Invoke callback", "grpc") if word in text
    ]


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_a_breach_stops_the_run_with_resource_and_rule_named(preview):
    result, _ = run(lambda: [ingress("wide", "0.0.0.0/0")], preview)
    assert is_plain(result.error), result.error
    assert str(result.error).startswith("policy broken")
    assert "[open-ingress] wide (aws:vpc/securityGroupIngressRule" in str(result.error)
    assert "ingress from 0.0.0.0/0" in str(result.error) and "Why open-ingress" in str(result.error)
    made = set() if not preview else {"wide", "lock", "policies"}
    assert {request.name for request in result.requests} == made, "an update must not tell the engine about it"


def test_a_preview_ends_with_every_breach_and_without_a_traceback():
    result, _ = run(lambda: [ingress("wide", "0.0.0.0/0"), ingress("wider", "::/0")], preview=True)
    assert is_plain(result.error), result.error
    assert "[open-ingress] wide (" in str(result.error) and "[open-ingress] wider (" in str(result.error)
    assert str(result.error).count("Why open-ingress") == 1


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_a_fault_inside_a_policy_is_a_sentence_and_stops_the_resource(monkeypatch, preview):
    def broken(resource, site):
        raise KeyError("cidrIpv4")

    monkeypatch.setattr("infra.guard.judge", broken)
    result, _ = run(lambda: [ingress("wide", "10.0.0.0/16")], preview)
    assert is_plain(result.error), result.error
    assert "saw KeyError: 'cidrIpv4' in a policy" in str(result.error)
    assert "wide" not in [request.name for request in result.requests]


def test_a_fault_inside_the_program_is_a_sentence(monkeypatch):
    def broken(*_):
        raise KeyError("zone")

    monkeypatch.setattr("infra.cluster.GpuCluster.__init__", broken)
    result = program.run("dev")
    assert is_plain(result.error), result.error
    assert "saw KeyError: 'zone'" in str(result.error) and "FLIGHTLINE_TRACEBACK=1" in str(result.error)


def test_a_breach_ends_the_program_although_its_outputs_wait_for_the_resource():
    made = []

    def build():
        made[:] = [ingress("wide", "0.0.0.0/0")]
        return made

    result, _ = run(build, False, lambda: {"id": made[0].id, "arn": made[0].arn})
    assert is_plain(result.error) and "[open-ingress] wide" in str(result.error), result.error
    assert result.requests == []


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_a_breach_ends_a_whole_stack_within_seconds(monkeypatch, preview):
    def broken(resource, site):
        return [PolicyFinding("imdsv2", resource.title, Broken("no"))] if resource.name == "nodes-template" else []

    monkeypatch.setattr("infra.guard.judge", broken)
    monkeypatch.setattr("infra.guard.GRACE_S", 3600.0)
    result = program.run("dev", preview=preview)
    assert is_plain(result.error) and "[imdsv2] nodes-template" in str(result.error), result.error
    assert preview or not {"nodes-template", "nodes-group"} & {one.name for one in result.requests}


def test_what_aws_refuses_ends_the_program_as_itself(monkeypatch):
    def refuses(args, digest):
        raise LookupError("no such zone")

    monkeypatch.setattr(engine, "_computed", refuses)
    result, _ = run(lambda: [ingress("wide", "10.0.0.0/16")], preview=False)
    assert str(result.error) == "no such zone"


def from_late(text):
    vpc, cidr = late(text)
    return [vpc, ingress("late", cidr)]


def test_what_a_preview_does_not_know_is_open_there():
    result, guard = run(lambda: from_late("0.0.0.0/0"), preview=True)
    assert result.error is None
    assert [(one.rule, one.resource.split()[0]) for one in guard.open] == [("open-ingress", "late")]


def test_what_a_preview_did_not_know_is_judged_by_the_update_before_it_is_created():
    result, _ = run(lambda: from_late("0.0.0.0/0"), preview=False)
    assert "[open-ingress] late" in str(result.error)
    assert [request.name for request in result.requests] == ["vpc"]


def test_a_good_value_that_comes_late_passes():
    result, guard = run(lambda: from_late("10.0.0.0/16"), preview=False)
    assert result.error is None and guard.open == []
    names = [request.name for request in result.requests]
    # Neither waits for the other: a lock is of nothing that a rule reads.
    assert names[:2] == ["vpc", "late"] and set(names[2:]) == {"lock", "policies"}


def test_the_children_of_components_are_judged_too():
    class Group(pulumi.ComponentResource):
        def __init__(self):
            super().__init__("test:index:Group", "group")
            aws.cloudwatch.LogGroup("child", tags=TAGS, opts=pulumi.ResourceOptions(parent=self))
            self.register_outputs({})

    result, _ = run(lambda: [Group()], preview=True)
    assert "[log-retention] child" in str(result.error)


def test_a_rule_over_the_whole_stack_runs_at_the_seal():
    kept = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
    result, _ = run(lambda: [aws.s3.Bucket("lonely", bucket="b", tags=TAGS, opts=kept)], preview=True)
    assert "[public-bucket] lonely" in str(result.error) and "[encryption-at-rest] lonely" in str(result.error)


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_a_secret_output_is_refused(preview):
    result, _ = run(list, preview, lambda: {"webhook": pulumi.Output.secret("x")})
    assert "[secrets] policies" in str(result.error) and "webhook" in str(result.error)


def test_a_secret_from_the_configuration_stays_one_through_the_transform():
    def build():
        secret = pulumi.Config("flightline").require_secret("slackWebhook")
        return [aws.secretsmanager.SecretVersion("kept", secret_id="s", secret_string=secret)]

    config = {"flightline:slackWebhook": program.WEBHOOK}
    good, _ = run(build, False, config=config, secret_keys=program.SECRET_KEYS)
    assert good.error is None and good.one("kept").secret_props == {"secretString"}


def test_no_secret_is_shown_in_a_breach():
    said = f"post to {program.WEBHOOK}"
    result, _ = run(lambda: [aws.secretsmanager.Secret("plain", description=said, tags=TAGS)], preview=True)
    assert "[secrets] plain" in str(result.error) and "description" in str(result.error)
    assert "notarealwebhook" not in str(result.error)
    assert result.requests == [], "a preview that went on would print it"


def test_an_answer_that_is_still_open_in_an_update_is_a_breach():
    def main():
        guard = PolicyGuard(SITE)
        open_answer = PolicyFinding("imdsv2", "nodes (template)", Unsure("httpTokens is known only during the update"))
        with pytest.raises(PolicyBreach, match="imdsv2"):
            guard._settle([open_answer])
        assert guard.open == []

    assert engine.run(main).error is None
