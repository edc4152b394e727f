"""A local HTTPS server in Slack's place, with a certificate made for it."""

import datetime
import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.served import Answering, Serving

PATH = "/services/T000/B000/very-secret-part"
BOT_PATH, TOKEN = "/api/chat.postMessage", "xoxb-very-secret-part"


class Receiver:
    """Answers as `script` says, then 200 ok. got: the messages; url: the webhook; ca: what to check it against.

    asked: path, headers and body of each request. before: called with each, before it is answered.
    """

    def __init__(self, directory: Path, *script: tuple[int, dict[str, str]]) -> None:
        self.got: list[dict[str, Any]] = []
        self.requests = 0
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.before: Callable[[], object] = lambda: None
        self.script = list(script)
        self.ca = _certificate(directory)
        receiver = self

        class Handler(Answering):
            def do_POST(self) -> None:
                receiver.requests += 1
                body = self.given()
                receiver.asked.append((self.path, dict(self.headers), body))
                receiver.before()
                if self.path == BOT_PATH:
                    self._bot(json.loads(body))
                    return
                status, headers = receiver.script.pop(0) if receiver.script else (200, {})
                if status == 200 and self.path == PATH:
                    receiver.got.append(json.loads(body))
                self.say(status, b"ok" if status == 200 else f"no_service at {self.path}".encode(), headers)

            def _bot(self, message: dict[str, Any]) -> None:
                """As chat.postMessage: HTTP 200 also for a refusal, and the id of the message."""
                status, headers = receiver.script.pop(0) if receiver.script else (200, {})
                good = self.headers["Authorization"] == f"Bearer {TOKEN}"
                answer = {"ok": True, "ts": f"1700000000.{receiver.requests:06d}"} if good else {"ok": False}
                if status == 200 and good:
                    receiver.got.append(message)
                said = answer if good else {**answer, "error": "invalid_auth"}
                self.say(status, json.dumps(said).encode() if status == 200 else b"no", headers)

        server = Serving(Handler, self.ca)
        self.api = f"127.0.0.1:{server.port}"
        self.url = f"https://{self.api}{PATH}"
        self.close = server.close


def _certificate(directory: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test receiver")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "receiver.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
