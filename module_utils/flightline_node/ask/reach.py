"""The reader `s3`: does an endpoint that the inventory names answer from this node? Asked of nobody else.

One HEAD without credentials per endpoint: any HTTP answer, a 403 too, shows that name, route, port and TLS work.
"""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Sequence

TIMEOUT_S = 2.0
BUDGET_S = 6.0
"""For all of them: the reader must be done within a quick run."""
MAX_ENDPOINTS = 16


def address(endpoint: str) -> str:
    """The URL of an endpoint: a URL as it is, a host name, or a bucket's name."""
    if "://" in endpoint:
        return endpoint
    return f"https://{endpoint}" if "." in endpoint else f"https://{endpoint}.s3.amazonaws.com"


def s3(root: str, endpoints: Sequence[str] = ()) -> str:
    """{endpoints[]{endpoint url status seconds region or error}}. Raises OSError when none is asked for."""
    if not endpoints:
        raise OSError("no endpoint asked for: option s3_endpoints")
    ends = time.monotonic() + BUDGET_S
    return json.dumps({"endpoints": [_ask(str(endpoint), ends) for endpoint in endpoints[:MAX_ENDPOINTS]]}, indent=1)


def _ask(endpoint: str, ends: float) -> Dict[str, Any]:
    # Imported here, in the reader's own process: they take longer to load than all of this library.
    import http.client
    from urllib.parse import urlsplit

    url, began = address(endpoint), time.monotonic()
    found: Dict[str, Any] = {"endpoint": endpoint, "url": url}
    if began > ends:
        return {**found, "error": f"not asked: the others used up the {BUDGET_S:g} s"}
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
        connection = kind(parts.hostname or "", parts.port, timeout=min(TIMEOUT_S, ends - began))
        try:
            connection.request("HEAD", parts.path or "/")
            answer = connection.getresponse()
            found.update(status=answer.status, region=answer.getheader("x-amz-bucket-region"))
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        found["error"] = f"{type(error).__name__}: {error}"[:300]
    return {**found, "seconds": round(time.monotonic() - began, 3)}
