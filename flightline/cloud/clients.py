"""boto3 clients, and what went wrong in words. boto3 is imported when the first client is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .batches import error_code

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
CREDENTIALS = EXPIRED | {
    "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch", "UnrecognizedClientException",
    "InvalidSignatureException", "AuthFailure",
}  # fmt: skip
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"})
MISSING = frozenset({"ResourceNotFoundException", "NoSuchBucket", "NotFound", "NotFoundException", "404"})


ATTEMPTS = 5
"""Of each request. botocore waits up to 1, 2, 4 and 8 s before the next when it is throttled. Source: botocore,
retries/standard.py, ExponentialBackoff."""
CONNECT_S = 3


def config(read_s: int = 30, attempts: int = ATTEMPTS) -> Any:
    """How every client asks. read_s: how long to wait for bytes. attempts: 1 for what must not be done twice."""
    from botocore.config import Config

    return Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=CONNECT_S,
        read_timeout=read_s,
        user_agent_extra="flightline",
    )


@dataclass
class Clients:
    """One session's clients, each made once."""

    region: str = ""
    _made: dict[str, Any] = field(default_factory=dict, repr=False)
    _session: Any = field(default=None, repr=False)

    def use(self, service: str, client: Any) -> None:
        """Take a client that was made elsewhere."""
        self._made[service] = client

    def get(self, service: str) -> Any:
        """The low-level client of a service. Raises botocore's errors (no region, bad profile)."""
        if service not in self._made:
            import boto3

            self._session = self._session or boto3.session.Session()
            self._made[service] = self._session.client(service, region_name=self.region or None, config=config())
        return self._made[service]


def is_aws_error(error: BaseException) -> bool:
    """Does botocore raise it?"""
    from botocore.exceptions import BotoCoreError, ClientError

    return isinstance(error, (BotoCoreError, ClientError))


def explain(error: BaseException, what: str) -> str:
    """One sentence: what was tried, what AWS said, what to do. No secret, no request id."""
    code, name = error_code(error), type(error).__name__
    if code in EXPIRED or name in ("TokenRetrievalError", "SSOTokenLoadError", "UnauthorizedSSOTokenError"):
        return f"{what}: the AWS credentials have expired ({code or name}); renew them (aws sso login, a new session)"
    if code in CREDENTIALS or name in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return f"{what}: no valid AWS credentials ({code or name}); check AWS_PROFILE, the environment or the role"
    if code in DENIED:
        return f"{what}: AWS denies it ({code}); the role needs the permission: {_said(error)}"
    if code in MISSING:
        return f"{what}: not there ({code}); check the name, the region and the account"
    if name == "NoRegionError":
        return f"{what}: no AWS region; set AWS_DEFAULT_REGION or the region setting"
    if name in ("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError"):
        return f"{what}: no answer from AWS ({name}); check the network"
    return f"{what}: {code or name}: {_said(error)}"


@contextmanager
def explained(kind: type[Exception], what: str) -> Iterator[None]:
    """Raise what botocore raises as another kind of error, in words."""
    try:
        yield
    except Exception as error:
        if not is_aws_error(error):
            raise
        raise kind(explain(error, what)) from error


def said_of_aws(error: BaseException, where: str) -> str:
    """What an error of AWS says; '' for any other."""
    return explain(error, where) if is_aws_error(error) else ""


def _said(error: BaseException) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Message") or error)[:300]
