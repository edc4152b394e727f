"""Statements of policies that stand at a resource: who may do what with it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

VERSION = "2012-10-17"
Statement = dict[str, Any]


def grant(
    sid: str,
    principal: Mapping[str, Any],
    action: str | Sequence[str],
    resource: str,
    condition: Mapping[str, Mapping[str, Any]] | None = None,
) -> Statement:
    """What a principal may do."""
    statement = {"Sid": sid, "Effect": "Allow", "Principal": principal, "Action": action, "Resource": resource}
    return {**statement, **({"Condition": condition} if condition else {})}


def service(name: str) -> dict[str, str]:
    """An AWS service as the principal."""
    return {"Service": f"{name}.amazonaws.com"}


def tls_only(action: str, resource: str) -> Statement:
    """Nobody without TLS."""
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    return {**grant("TlsOnly", {}, action, resource, plain), "Effect": "Deny", "Principal": "*"}


def policy(*statements: Statement) -> Mapping[str, Any]:
    """The document."""
    return {"Version": VERSION, "Statement": list(statements)}
