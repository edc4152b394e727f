"""Secrets are Pulumi secrets, and never in user data, outputs or plain state."""

import base64
import binascii
import re
from typing import Any, Iterator, Mapping, Tuple

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure

SECRET_PROPS = {
    "aws:secretsmanager/secretVersion:SecretVersion": ("secretString", "secretBinary", "secretStringWo"),
}
"""Properties that are secret by what they are for."""

OPEN_PROPS = ("userData", "userDataBase64", "tags", "environment")
"""Properties that anybody who may describe the resource can read."""

OUTPUTS = "flightline:policy:Seal"
"""Type of the component that carries the outputs; another name would replace it, protected, in every stack."""

"""The component that carries the stack's outputs past the policies."""

_LOOKS_SECRET = re.compile(
    r"hooks\.slack\.com/services/\w"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?i:\baws_secret_access_key\b\s*[=:])"
)


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """What must be secret is; what is open holds none; nothing plain looks like one."""
    for key in SECRET_PROPS.get(resource.type_, ()):
        if key in resource.props and key not in resource.secret_props:
            unknown = resource.props[key] is UNKNOWN
            yield (
                Unsure(f"{key} is known only during the update")
                if unknown
                else Broken(f"{key} is not a Pulumi secret; pass pulumi.Output.secret or a secret of the configuration")
            )
    for key in sorted(resource.secret_props):
        if key in OPEN_PROPS or resource.type_ == OUTPUTS:
            yield Broken(f"{key} holds a Pulumi secret, but it can be read by anybody who may see the resource")
    for key, value in resource.props.items():
        if key not in resource.secret_props and any(map(_LOOKS_SECRET.search, _texts(value))):
            yield Broken(f"{key} holds what looks like a secret in plain text; keep it in Secrets Manager")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from _decoded(value)
    elif isinstance(value, Mapping):
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, (list, tuple)):
        yield from (text for inner in value for text in _texts(inner))


def _decoded(value: str) -> Tuple[str, ...]:
    try:
        return (base64.b64decode(value, validate=True).decode("utf-8", "replace"),)
    except (binascii.Error, ValueError):
        return ()


RULE = Rule("secrets", "State files, consoles and metadata are read by more people than a secret is for.", check)
