"""The instance metadata service, for one machine of the bed: python -m tests.boot.metadata FILE.

FILE is JSON of paths below /latest/ and their text; it is read at each request, so that a test can change what the service
says. It runs in a network namespace of its own on the bed's bridge, for the address is the same for every instance and may
mean something on the outer machine. It wants a token (version 2), but not of cloud-init, which asks for one only where the
firmware says EC2. Paths and forms after the EC2 user guide, "Instance metadata categories".
"""

import json
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.served import Answering

ADDRESS, PORT = "169.254.169.254", 80
TOKEN = "token-of-the-bed"


def listing(paths: dict[str, str], folder: str) -> str:
    """Names in a folder, those of folders with a slash; empty when there are none."""
    below = [path.removeprefix(folder) for path in paths if path.startswith(folder)]
    return "\n".join(sorted({name.partition("/")[0] + ("/" if "/" in name else "") for name in below}))


class Request(Answering):
    """A token by PUT, everything else with it. The first part of a path is a version: they are all alike here."""

    file: Path

    def do_PUT(self) -> None:
        """Give the token."""
        self.say(200, TOKEN.encode()) if self.path == "/latest/api/token" else self.say(404)

    def do_GET(self) -> None:
        """Answer with a text or a listing."""
        by_firmware = any(word in self.headers.get("User-Agent", "") for word in ("Cloud-Init", "python-requests"))
        if self.headers.get("X-aws-ec2-metadata-token") != TOKEN and not by_firmware:
            self.say(401)
            return
        paths = json.loads(self.file.read_text())
        name = self.path.lstrip("/").partition("/")[2]
        text = paths.get(name.rstrip("/")) or listing(paths, name.rstrip("/") + "/")
        self.say(200, text.encode()) if text else self.say(404)


def main(arguments: list[str]) -> None:
    """Serve until ended."""
    handler = type("Handler", (Request,), {"file": Path(arguments[0])})
    ThreadingHTTPServer((ADDRESS, PORT), handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
