"""A small signed apt repository and file shelf, for what the test hosts cannot fetch from Debian.

Everything is plain files below one directory, which the bed's server offers to the hosts over HTTP:

    key.asc                         the public key, armored
    apt/dists/<suite>/...           InRelease, Release, Release.gpg, Packages
    apt/pool/*.deb
    files/<name>.git                a git repository
    files/<name>, <name>.sha256, <name>.sig     tarballs and other files with checksum and detached signature

The packages are stand-ins with the names, versions and layout of the vendors'; what they install is written by hand.
The key is made anew in each directory and signs nothing outside it.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Union

OWNER = "Flightline test bed <bed@flightline.invalid>"
EPOCH = 1_700_000_000
"""One time for everything packed: the same content gives the same checksum."""
EXECUTABLE = 0o755
_GIT_WHO = {"NAME": "Flightline test bed", "EMAIL": "bed@flightline.invalid", "DATE": f"{EPOCH} +0000"}

Content = Union[str, bytes, "Executable"]


@dataclass(frozen=True)
class Executable:
    """Text of a program: packed with the execute bits."""

    text: str


@dataclass(frozen=True)
class Deb:
    """A package: files by absolute path, and what its control file says."""

    name: str
    version: str
    files: Mapping[str, Content] = field(default_factory=dict)
    architecture: str = "amd64"
    depends: Sequence[str] = ()
    provides: Sequence[str] = ()
    conflicts: Sequence[str] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Maintainer scripts: postinst, prerm, ..."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links: path -> target."""

    @property
    def file_name(self) -> str:
        """As in a pool: the epoch of a version is not part of a file name."""
        return f"{self.name}_{self.version.split(':')[-1]}_{self.architecture}.deb"


def _bytes(content: Content) -> bytes:
    text = content.text if isinstance(content, Executable) else content
    return text.encode() if isinstance(text, str) else text


def _write(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_bytes(content))
    path.chmod(EXECUTABLE if isinstance(content, Executable) else 0o644)


def control(deb: Deb) -> str:
    """The control file."""
    lines = {
        "Package": deb.name,
        "Version": deb.version,
        "Architecture": deb.architecture,
        "Maintainer": OWNER,
        "Depends": ", ".join(deb.depends),
        "Provides": ", ".join(deb.provides),
        "Conflicts": ", ".join(deb.conflicts),
        "Description": "stand-in for the test bed",
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items() if value)


def pack(deb: Deb, pool: Path) -> Path:
    """Build the package with dpkg-deb."""
    pool.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        _write(tree / "DEBIAN/control", control(deb))
        for name, text in deb.scripts.items():
            _write(tree / "DEBIAN" / name, Executable(text))
        for path, content in deb.files.items():
            _write(tree / path.lstrip("/"), content)
        for path, target in deb.links.items():
            (tree / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (tree / path.lstrip("/")).symlink_to(target)
        tree.chmod(0o755)
        package = pool / deb.file_name
        argv = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(tree), str(package)]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)})
    return package


def stanza(package: Path, name_in_archive: str) -> str:
    """A package's entry of the Packages index."""
    fields = subprocess.run(["dpkg-deb", "--field", str(package)], check=True, capture_output=True, text=True).stdout
    data = package.read_bytes()
    where = f"Filename: {name_in_archive}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    return fields.rstrip("\n") + "\n" + where


def release(suite: str, indexes: Mapping[str, bytes], dates: Mapping[str, str] = MappingProxyType({})) -> str:
    """The Release file of a suite with one component, main. dates: other lines of Date and Valid-Until."""
    shown = "".join(f"{name}: {when}\n" for name, when in {"Date": "Tue, 14 Nov 2023 22:13:20 UTC", **dates}.items())
    head = f"Origin: Flightline test bed\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64 all\n"
    head += f"Components: main\n{shown}SHA256:\n"
    return head + "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n" for name, data in indexes.items())


class Mirror:
    """The directory that is served. Make it, add packages and files, then publish()."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._home = directory.parent / f"{directory.name}-gnupg"
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "key.asc").is_file():
            self._make_key()

    def _gpg(self, *arguments: str) -> bytes:
        base = ["gpg", "--homedir", str(self._home), "--batch", "--yes", "--no-tty", "--pinentry-mode", "loopback"]
        return subprocess.run([*base, *arguments], check=True, capture_output=True).stdout

    def _make_key(self) -> None:
        self._home.mkdir(mode=0o700, exist_ok=True)
        self._gpg("--passphrase", "", "--quick-generate-key", OWNER, "rsa3072", "sign", "never")
        _write(self.directory / "key.asc", self._gpg("--armor", "--export", OWNER))
        self.close()

    def close(self) -> None:
        """End gpg's agent, which would outlive the test."""
        subprocess.run(["gpgconf", "--homedir", str(self._home), "--kill", "all"], check=False, capture_output=True)

    @property
    def fingerprint(self) -> str:
        """The signing key's fingerprint, 40 hex digits."""
        listing = self._gpg("--with-colons", "--fingerprint", OWNER).decode()
        return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr"))

    def add_deb(self, deb: Deb) -> Path:
        """Put a package into the pool; publish() lists it."""
        return pack(deb, self.directory / "apt/pool")

    def add_file(self, name: str, content: Content) -> str:
        """Offer a file with its checksum and detached signature. Returns the SHA-256."""
        path = self.directory / "files" / name
        digest = self.sign(path, content)
        _write(path.with_name(f"{path.name}.sha256"), f"{digest}  {path.name}\n")
        return digest

    def sign(self, path: Path, content: Content) -> str:
        """Write a file with its detached signature beside it. Returns the SHA-256."""
        _write(path, content)
        self._gpg("--detach-sign", "--output", f"{path}.sig", str(path))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def add_tarball(self, name: str, members: Mapping[str, Content]) -> str:
        """Offer a .tar.gz of files by relative path. Returns the SHA-256."""
        return self.add_file(name, tarball(members))

    def add_git(self, name: str, members: Mapping[str, Content], place: Path | None = None) -> str:
        """Offer a git repository of one commit, as plain files over HTTP. Returns the commit's id."""
        bare = (place or self.directory / "files") / name
        bare.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(bare, ignore_errors=True)
        stamp = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _GIT_WHO.items()}

        def git(*words: str, cwd: str) -> str:
            argv = ["git", "-c", "init.defaultBranch=master", *words]
            run = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=cwd, env={**os.environ, **stamp})
            return run.stdout.strip()

        with tempfile.TemporaryDirectory() as work:
            for path, content in members.items():
                _write(Path(work) / path, content)
            git("init", "--quiet", cwd=work)
            git("add", "--all", cwd=work)
            git("commit", "--quiet", "--message", "Stand-in", cwd=work)
            git("clone", "--quiet", "--bare", work, str(bare), cwd=work)
            git("update-server-info", cwd=str(bare))
            return git("rev-parse", "HEAD", cwd=work)

    def flat(self, place: Path, debs: Sequence[Deb]) -> None:
        """A repository without suites and components, as NVIDIA has them: packages and indexes in one directory."""
        shutil.rmtree(place, ignore_errors=True)
        packed = [pack(deb, place) for deb in debs]
        index = "\n".join(stanza(path, f"./{path.name}") for path in packed).encode()
        _write(place / "Packages", index)
        sums = f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
        _write(place / "Release", f"Origin: Flightline test bed\nDate: Tue, 14 Nov 2023 22:13:20 UTC\nSHA256:\n{sums}")
        self._gpg("--clear-sign", "--output", str(place / "InRelease"), str(place / "Release"))

    def publish(self, suite: str = "bookworm", dates: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write and sign the indexes of everything in the pool."""
        root = self.directory / "apt"
        debs = sorted((root / "pool").glob("*.deb"))
        index = "\n".join(stanza(path, f"pool/{path.name}") for path in debs).encode()
        folder = root / "dists" / suite
        packages = {"main/binary-amd64/Packages": index, "main/binary-amd64/Packages.gz": gzip.compress(index, mtime=0)}
        for name, data in packages.items():
            _write(folder / name, data)
        _write(folder / "Release", release(suite, packages, dates))
        self._gpg("--clear-sign", "--output", str(folder / "InRelease"), str(folder / "Release"))
        self._gpg("--armor", "--detach-sign", "--output", str(folder / "Release.gpg"), str(folder / "Release"))
        self.close()


def tarball(members: Mapping[str, Content]) -> bytes:
    """A reproducible .tar.gz."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in sorted(members):
            data = _bytes(members[name])
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), EPOCH
            entry.mode = EXECUTABLE if isinstance(members[name], Executable) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)
