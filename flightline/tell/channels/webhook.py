"""Any service that takes JSON: the digest as it is, or as a template says, signed.

The signature is that of the Standard Webhooks specification (HMAC-SHA256 over `id.timestamp.body`), for which
receivers have libraries; `webhook-id` is the digest's key, by which a message that comes twice is known.
Source: standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..channel import FILE, HOSTS, PEM, PLACES, SECRET, Channel, ChannelSetting, DeliveryError, Means
from ..digest import Digest, render
from ..sending import post

_NAME = re.compile(r"\{([a-z_]+)\}")
PREFIX = "whsec_"


def send(digest: Digest, means: Means) -> str:
    """Post a digest."""
    given = means.given
    try:
        made = filled(template(given["webhook_template"]), fields(digest))
    except (OSError, ValueError) as error:
        raise DeliveryError(f"{given['webhook_template']}: saw {error}, wanted a JSON template", later=True) from None
    body = json.dumps(made).encode()
    url, key = means.secret("webhook"), means.secret("webhook_key") if given["webhook_key"] else ""
    headers = signed(digest.key, int(time.time()), body, key)
    post("the webhook", url, body, headers, (key,), given["webhook_hosts"].split(), given["webhook_ca"], means.sleep)
    return ""


def fields(digest: Digest) -> dict[str, Any]:
    """What a template may name; without one, the body itself."""
    parts = {name: value for name, value in asdict(digest).items() if name not in ("link_name", "store")}
    return {**parts, "key": digest.key, "state": digest.state, "look_back": digest.again, "text": render(digest)}


def signed(key: str, at: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers. at: seconds since 1970. secret: '' signs nothing."""
    headers = {"webhook-id": key, "webhook-timestamp": str(at)}
    if secret:
        mac = hmac.new(_bytes(secret), b".".join((key.encode(), str(at).encode(), body)), hashlib.sha256)
        headers["webhook-signature"] = f"v1,{base64.b64encode(mac.digest()).decode()}"
    return headers


def _bytes(secret: str) -> bytes:
    """The key of a secret: Base64 behind its prefix, else the text itself."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise DeliveryError(f"webhook_key: saw no Base64 behind {PREFIX}, wanted it: nothing was sent", False) from None


def template(path: str) -> Any:
    """The template of a file; None for none. Raises OSError and ValueError."""
    return json.loads(Path(path).expanduser().read_text(encoding="utf-8")) if path else None


def filled(made: Any, values: Mapping[str, Any]) -> Any:
    """A template with values in the places that name them; a text that is only a name becomes the value itself."""
    if made is None:
        return values
    if isinstance(made, Mapping):
        return {name: filled(value, values) for name, value in made.items()}
    if isinstance(made, list):
        return [filled(value, values) for value in made]
    if not isinstance(made, str):
        return made
    only = _NAME.fullmatch(made)
    if only:
        return values[only[1]]
    return _NAME.sub(lambda found: _shown(values[found[1]]), made)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def lacking(given: Mapping[str, str]) -> Iterator[str]:
    """A template that cannot be read or names what there is not."""
    path, known = given.get("webhook_template") or "", fields(Digest(""))
    try:
        names = dict.fromkeys(_NAME.findall(json.dumps(template(path))))
    except (OSError, ValueError) as error:
        yield f"webhook_template: saw {error}, wanted a JSON file at {path}"
        return
    for name in names:
        if name not in known:
            yield f"webhook_template: saw {{{name}}} in {path}, wanted one of {', '.join(sorted(known))}"


CHANNEL = Channel(
    "the webhook",
    (
        ChannelSetting("webhook", f"where an address is kept that takes JSON: {PLACES}", SECRET, switches=True),
        ChannelSetting(
            "webhook_key",
            f"where the key is kept that signs it, as Standard Webhooks say: {PLACES}",
            SECRET,
            needs="webhook",
        ),
        ChannelSetting(
            "webhook_template", "JSON file with {title}, {text}, {alerts} in its texts; else all fields", FILE
        ),
        ChannelSetting("webhook_hosts", "hosts that the address may have; any where none is named", HOSTS),
        ChannelSetting("webhook_ca", "certificates that the address's host is checked against, a PEM file", PEM),
    ),
    send,
    lacking,
)
