"""The reader `imds`: what the EC2 instance metadata service says, by version 2 (session tokens) only.

A call without a token would show in the site's MetadataNoToken metric, which exists to find
programs that still make such calls: none is made, not even to learn whether it would work.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Optional, Tuple

from .files import contents

ENDPOINT_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
ENDPOINT = "http://169.254.169.254"
SIMULATED = "run/flightline/imds.json"
TIMEOUT_S = 1.0
BUDGET_S = 3.0
"""For everything after the token: a service that answers slowly must not cost the run its budget."""
MAX_BYTES = 1 << 16
OK, UNAUTHORIZED, NOT_FOUND = 200, 401, 404
MAINTENANCE = "meta-data/events/maintenance/scheduled"
REBALANCE = "meta-data/events/recommendations/rebalance"
SPOT = "meta-data/spot/instance-action"
LIFECYCLE = "meta-data/autoscaling/target-lifecycle-state"

PATHS: Tuple[str, ...] = (
    "meta-data/instance-type",
    "meta-data/instance-id",
    "meta-data/instance-life-cycle",
    "meta-data/placement/availability-zone",
    "meta-data/placement/availability-zone-id",
    "meta-data/placement/group-name",
    "meta-data/placement/partition-number",
    MAINTENANCE,
    REBALANCE,
    SPOT,
    "dynamic/instance-identity/document",
)


def imds(root: str) -> str:
    """JSON of metadata paths to text (null: the service has none), with `available` and `reason`.

    A simulated node (root is not "/") has a file instead of a service.
    """
    if root.rstrip("/"):
        text = contents(os.path.join(root, SIMULATED), MAX_BYTES)
        return text if text is not None else _unavailable("no metadata service: a simulated node")
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    other = None if endpoint else _other_machine(root)
    return _unavailable(other) if other else json.dumps(_ask(endpoint or ENDPOINT), indent=1)


def _unavailable(reason: str) -> str:
    return json.dumps({"available": False, "reason": reason})


def _other_machine(root: str) -> Optional[str]:
    """Why this is no EC2 instance, or None when it is one or nothing says so (then the service is asked).

    Nitro: the vendor is "Amazon EC2". Xen: the vendor is "Xen" and the version ends in "amazon".
    """
    read = (contents(os.path.join(root, "sys/class/dmi/id", name)) for name in ("sys_vendor", "product_version"))
    vendor, version = (text or "" for text in read)
    if not vendor or "amazon" in f"{vendor} {version}".lower():
        return None
    return f"not an EC2 instance: the system vendor is {vendor}"


class MetadataSession:
    """The service with its session token. lives_s: how long a token is asked for."""

    def __init__(self, endpoint: str, lives_s: int, timeout_s: float) -> None:
        self._endpoint, self._lives_s, self._timeout_s, self._token = endpoint, lives_s, timeout_s, ""

    def opened(self) -> str:
        """Ask for a token; why there is none, '' where there is one."""
        status, text = self._request("PUT", "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": str(self._lives_s)})
        self._token = text if status == OK else ""
        return "" if status == OK else f"no session token, {said(status, text)}"

    def get(self, path: str) -> Tuple[int, str]:
        """Status and text of a path, status 0 with the reason without an answer. A token not taken is replaced once."""
        status, text = UNAUTHORIZED, ""
        for _ in range(2):
            why = "" if self._token else self.opened()
            if why:
                return 0, why
            status, text = self._request("GET", path, {"X-aws-ec2-metadata-token": self._token})
            if status != UNAUTHORIZED:
                break
            self._token = ""
        return status, text

    def _request(self, method: str, path: str, headers: Dict[str, str]) -> Tuple[int, str]:
        # Imported here, in the reader's own process: it takes longer to load than all of this library.
        import http.client
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(self._endpoint)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=self._timeout_s)
            try:
                connection.request(method, "/latest/" + path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(MAX_BYTES).decode("utf-8", "replace")
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException) as error:
            return 0, f"{type(error).__name__}: {error}"


def said(status: int, text: str) -> str:
    """What came instead of an answer."""
    return f"HTTP status {status}" if status else text


def _ask(endpoint: str) -> Dict[str, Any]:
    session = MetadataSession(endpoint, 60, TIMEOUT_S)
    why = session.opened()
    if why:
        return {"available": False, "asked": endpoint, "reason": why}
    found: Dict[str, Any] = {"available": True}
    errors: Dict[str, str] = {}
    ends = time.monotonic() + BUDGET_S
    for path in PATHS:
        if time.monotonic() > ends:
            errors[path] = f"not asked: the service used up its {BUDGET_S:g} s"
            continue
        status, text = session.get(path)
        if status in (OK, NOT_FOUND):
            found[path] = text if status == OK else None
        else:
            errors[path] = said(status, text)
    return {**found, "errors": errors} if errors else found
