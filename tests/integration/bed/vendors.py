"""The vendors' own addresses on the bridge: their host names, HTTPS and a certificate authority of the bed.

With it the roles run with their default addresses. What is served lies in STATE/www/vendors/HOST; the authority is made anew
for each bed and trusted only by machines that are told to.
"""

from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.beds import ran
from tests.served import Answering, Serving

from . import layout

HOSTS = (
    "amazoncloudwatch-agent.s3.amazonaws.com",
    "developer.download.nvidia.com",
    "efa-installer.amazonaws.com",
    "github.com",
    "nvidia.github.io",
)
PORT = 443
DAYS = "30"
KEY = ("-newkey", "rsa:2048", "-nodes")


def make(state: Path) -> None:
    """Key and certificate of the authority and of the server, unless they are there."""
    place = state / "tls"
    if (place / "server.pem").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    subject = "/CN=Flightline test bed"
    _openssl(place, "req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", DAYS, "-subj", subject)
    issue(place, "server", HOSTS)


def issue(place: Path, name: str, hosts: Sequence[str]) -> Path:
    """A server's key and certificate for host names, from the bed's authority; returns the file that has both."""
    (place / f"{name}.names").write_text(f"subjectAltName={','.join(f'DNS:{host}' for host in hosts)}\n")
    files = ["-keyout", f"{name}.key", "-out", f"{name}.csr"]
    _openssl(place, "req", *KEY, *files, "-subj", f"/CN={hosts[0]}")
    authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{name}.names", "-days", DAYS]
    _openssl(place, "x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.crt")
    both = place / f"{name}.pem"
    both.write_text((place / f"{name}.crt").read_text() + (place / f"{name}.key").read_text())
    return both


def _openssl(place: Path, *words: str) -> None:
    done = ran("openssl", *words, cwd=place)
    if done.returncode:
        seen = f"openssl {words[0]}: {done.stderr.strip()}"
        raise layout.BedError(f"seen: {seen}; wanted: a certificate; do: install openssl")


class Request(Answering):
    """GET of a file of the vendor whose name the client asked for."""

    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        """Answer with the file, or 404 as a vendor does for a name that it does not have."""
        base = (self.root / (self.headers["Host"] or "").partition(":")[0]).resolve()
        path = (base / unquote(urlsplit(self.path).path).lstrip("/")).resolve()
        there = base.parent == self.root.resolve() and path.is_relative_to(base) and path.is_file()
        self.say(HTTPStatus.OK if there else HTTPStatus.NOT_FOUND, path.read_bytes() if there else b"")

    do_HEAD = do_GET


def serve(state: Path) -> None:
    """Serve until the process ends."""
    handler = type("Handler", (Request,), {"root": state / "www/vendors"})
    Serving(handler, state / "tls/server.pem", address=layout.GATEWAY, port=PORT)


def introduce() -> str:
    """Shell lines by which a machine knows the vendors at the bed's address; {authority} is its certificate."""
    rows = "".join(f"{layout.GATEWAY} {host}\\n" for host in HOSTS)
    return (
        f"grep -q {HOSTS[0]} /etc/hosts || printf '{rows}' >> /etc/hosts\n"
        "echo 'Acquire::https::Proxy \"DIRECT\";' > /etc/apt/apt.conf.d/82vendors\n"
        "cat > /usr/local/share/ca-certificates/flightline-bed.crt\n"
        "update-ca-certificates >/dev/null\n"
    )
