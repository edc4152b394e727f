"""Nobody may hand an arbitrary role to a service."""

from typing import Any, Dict, Iterator, List

from .documents import allows, as_list, statements
from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look

_WITH_POLICY = (
    "aws:iam/policy:Policy",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
)
_MANAGED = ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess")
_ATTACHED = {
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "policyArn",
    "aws:iam/policyAttachment:PolicyAttachment": "policyArn",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment": "policyArn",
    "aws:iam/role:Role": "managedPolicyArns",
}


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Every identity policy, and AWS's own policies that carry iam:*."""
    for document in _documents(resource):
        for statement in statements(document):
            if statement is UNKNOWN:
                yield Unsure("the policy is known only during the update")
            elif allows(statement, "iam:PassRole") and _any_role(statement):
                yield Broken(f"statement {statement.get('Sid', '')!r} allows iam:PassRole on *; name the role's ARN")
    for arn in items(resource.props, _ATTACHED.get(resource.type_, "-")):
        if arn is not UNKNOWN and str(arn).rsplit("/", 1)[-1] in _MANAGED:
            yield Broken(f"{arn} allows iam:PassRole on *; write a policy that names what is needed")


def _documents(resource: Registered) -> List[Any]:
    if resource.type_ in _WITH_POLICY:
        return [look(resource.props, "policy")]
    if resource.type_ == "aws:iam/role:Role":
        return [look(inline, "policy") for inline in items(resource.props, "inlinePolicies")]
    return []


def _any_role(statement: Dict[str, Any]) -> bool:
    if "NotResource" in statement:
        return True
    names = (str(arn).split(":role/", 1)[-1] for arn in as_list(statement.get("Resource")))
    return any(name.startswith("*") for name in names)


RULE = Rule("pass-role", "Who can pass any role has every role.", check)
