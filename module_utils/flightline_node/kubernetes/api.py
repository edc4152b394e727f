"""One API server, asked over HTTPS by the pod's own token. No library: a node's agent has the standard one alone.

The token is read for every request: kubelet renews the file, and a token that has expired is mended by reading again.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlsplit

from . import names

ACCESS = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEADLINE_S = 10.0
MOST_BYTES = 8 << 20
"""Of an answer. A Node has some 20 KB."""
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON = "application/json"
PARTIAL, TABLE = (f"{JSON};as={name};v=v1;g=meta.k8s.io" for name in ("PartialObjectMetadataList", "Table"))
"""A list's names and labels, or a row of text for each: a Node has 20 KB, of which a count needs none."""
CONFLICT, GONE, THROTTLED, REFUSED, FORBIDDEN, MISSING = 409, 410, 429, 401, 403, 404


class ApiError(Exception):
    """The API server did not do it. status: its answer's, None for none; retry_s: when it wants to be asked again."""

    def __init__(self, text: str, status: Optional[int] = None, retry_s: Optional[float] = None) -> None:
        super().__init__(text)
        self.status, self.retry_s = status, retry_s


class ApiAccess(NamedTuple):
    """Where the server is and who asks. server: https://host:port."""

    server: str
    directory: Path
    deadline_s: float = DEADLINE_S


def access(env: Mapping[str, str]) -> ApiAccess:
    """The pod's own. Raises ApiError outside a pod."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    named = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}" if host else ""
    server = env.get(names.SERVER_ENV) or named
    if urlsplit(server).scheme != "https":
        raise ApiError(
            f"saw {server or 'no KUBERNETES_SERVICE_HOST'}; wanted an API server over https; do: run this in a pod of "
            f"the DaemonSet, or set {names.SERVER_ENV}"
        )
    return ApiAccess(server, Path(env.get(names.ACCESS_ENV) or ACCESS))


def own_name(env: Mapping[str, str]) -> str:
    """The Node's name. Raises ApiError."""
    name = env.get(names.NODE_ENV, "")
    if not name:
        raise ApiError(f"saw no {names.NODE_ENV}; wanted the Node's name; do: set it from spec.nodeName")
    return name


def ask(
    to: ApiAccess,
    method: str,
    path: str,
    body: Optional[Any] = None,
    kind: str = "application/json",
    accept: str = JSON,
) -> Any:
    """One request; the answer's JSON. Raises ApiError, also for a server that does not answer in time."""
    target = urlsplit(to.server)
    try:
        token = (to.directory / "token").read_text(encoding="ascii").strip()
        trust = ssl.create_default_context(cafile=str(to.directory / "ca.crt"))
    except (OSError, ValueError, ssl.SSLError) as error:
        raise ApiError(f"{to.directory}: {error}; wanted token and ca.crt there") from None
    connection = http.client.HTTPSConnection(
        target.hostname or "", target.port or 443, timeout=to.deadline_s, context=trust
    )
    headers = {"Authorization": f"Bearer {token}", "Accept": accept, "User-Agent": names.COMPONENT}
    data = None if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {**headers, "Content-Type": kind} if data else headers)
        answer = connection.getresponse()
        said = answer.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException, socket.timeout) as error:
        raise ApiError(f"{method} {path}: no answer of {to.server} ({error or type(error).__name__})") from None
    finally:
        connection.close()
    return _read(f"{method} {path}", answer.status, answer.getheader("Retry-After"), said)


def _read(what: str, status: int, retry: Optional[str], said: bytes) -> Any:
    try:
        found = json.loads(said) if len(said) <= MOST_BYTES else None
    except ValueError:
        found = None
    if 200 <= status < 300 and isinstance(found, dict):
        return found
    message = str(found.get("message") or "") if isinstance(found, dict) else said[:200].decode("utf-8", "replace")
    retry_s = float(retry) if retry and retry.isdigit() else None
    raise ApiError(f"{what}: {status} {' '.join(message.split())[:300]}", status, retry_s)


def node_path(name: str, part: str = "") -> str:
    """The path of a Node."""
    return f"/api/v1/nodes/{quote(name, safe='')}{part}"


def nodes_path(labels: Mapping[str, str], more: str = "") -> str:
    """The path of the Nodes with these labels."""
    return "/api/v1/nodes?labelSelector=" + quote(",".join(f"{key}={value}" for key, value in labels.items())) + more


def environment() -> Dict[str, str]:
    """The process's."""
    return dict(os.environ)
