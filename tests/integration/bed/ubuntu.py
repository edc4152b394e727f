"""Ubuntu's root file systems, from Ubuntu's own archive, on a Debian machine that does not know its key.

FLIGHTLINE_SUITE=jammy or noble chooses one; give such a bed a number of its own (FLIGHTLINE_BED). Where the archive is not
reached, the tests say so.
"""

import subprocess
import tempfile
import urllib.request
from pathlib import Path

from .layout import BedError

SUITES = ("jammy", "noble")
ARCHIVE = "http://archive.ubuntu.com/ubuntu"
COMPONENTS = "main restricted universe multiverse"
KEYRING = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
PACKAGE = f"{ARCHIVE}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
FINGERPRINT = "F6ECB3762474EDA9D21B7022871920D1991BC93C"
"""Ubuntu Archive Automatic Signing Key (2018); of all keys in the package only this one is taken."""
SCRIPT = "/usr/share/debootstrap/scripts/gutsy"
"""What debootstrap uses for every later Ubuntu; Debian's has no link for new ones."""
TIMEOUT_S = 30


def keyring(state: Path) -> Path:
    """A key ring with Ubuntu's one signing key. Raises BedError when it is not to be had."""
    ring = state / "ubuntu-archive.gpg"
    if ring.exists():
        return ring
    with tempfile.TemporaryDirectory() as scratch:
        package, home = Path(scratch) / "keyring.deb", Path(scratch) / "gnupg"
        home.mkdir(mode=0o700)
        try:
            with urllib.request.urlopen(PACKAGE, timeout=TIMEOUT_S) as answer:
                package.write_bytes(answer.read())
        except OSError as error:
            raise BedError(f"seen: {error} from {ARCHIVE}; wanted: Ubuntu's archive; do: use bookworm here") from error
        subprocess.run(["dpkg-deb", "--extract", str(package), scratch], check=True)
        gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
        subprocess.run([*gpg, "--import", scratch + KEYRING], check=False, capture_output=True)
        found = subprocess.run([*gpg, "--export", FINGERPRINT], check=False, capture_output=True).stdout
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)
    if not found:
        raise BedError(f"seen: a key ring without {FINGERPRINT}; wanted: Ubuntu's archive key; do: use bookworm here")
    ring.write_bytes(found)
    return ring


def arguments(suite: str, state: Path) -> list[str]:
    """What debootstrap needs beside the target: options before it, archive and script after it."""
    return ["--components=" + COMPONENTS.replace(" ", ","), f"--keyring={keyring(state)}", suite]
