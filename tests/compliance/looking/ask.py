"""What a host's own tools say, each asked once in a run and remembered."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from . import say

LOOK_AT_FILES = """
import fcntl, hashlib, json, os, stat, struct, sys
found = {}
for path in sys.argv[1:]:
    try:
        about = os.lstat(path)
        if stat.S_ISLNK(about.st_mode):
            about = os.stat(path)
    except OSError:
        found[path] = None
        continue
    entry = {'mode': stat.S_IMODE(about.st_mode), 'uid': about.st_uid, 'gid': about.st_gid, 'size': about.st_size,
             'kind': stat.S_IFMT(about.st_mode), 'real': os.path.realpath(path), 'written_s': about.st_mtime,
             'sha256': '', 'head': '', 'attributes': [], 'fixed': False}
    entry['attributes'] = [name for name in os.listxattr(path) if 'posix_acl' in name]
    if stat.S_ISREG(about.st_mode):
        with open(path, 'rb') as file:
            data = file.read()
            entry['sha256'], entry['head'] = hashlib.sha256(data).hexdigest(), data[:4].hex()
            try:
                flags = struct.unpack('l', fcntl.ioctl(file, 0x80086601, struct.pack('l', 0)))[0]
                entry['fixed'] = bool(flags & 0x30)
            except OSError:
                pass
    found[path] = entry
print(json.dumps(found))
"""
"""Run on the host. 0x80086601 is FS_IOC_GETFLAGS, 0x30 FS_IMMUTABLE_FL and FS_APPEND_FL (linux/fs.h)."""


RUN_ALL = """
import concurrent.futures, json, subprocess, sys
def run(line):
    done = subprocess.run(['/bin/sh', '-c', line], stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(json.dumps(list(pool.map(run, json.loads(sys.argv[1])))))
"""
"""Run on the host: several commands at once."""


MOST_CHARACTERS = 20_000
"""Of one argument, whose limit is 128 KiB (execve(2)), before it is quoted for two shells."""


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    rc: int
    out: str
    err: str


class Asked:
    """One host's answers. Tests of one run look at one moment: nothing is asked twice."""

    def __init__(
        self, host: Any, others: Mapping[str, Asked] = MappingProxyType({}), always: Iterable[str] = ()
    ) -> None:
        """`always`: files that are looked at together with the first that is asked for."""
        self._host, self._others, self._always = host, others, sorted(always)
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._files: dict[str, dict[str, Any] | None] = {}

    def answer(self, command: str, *arguments: str) -> Answer:
        """Run a command as root, whatever its exit status. `%s` in it are quoted arguments."""
        key = (command, *arguments)
        if key not in self._answers:
            asked = (
                {known for other in self._others.values() for known in other._answers} - self._answers.keys() - {key}
            )
            for keys in _portions([key, *sorted(asked)]):
                self._run(keys)
        return self._answers[key]

    def _run(self, keys: list[tuple[str, ...]]) -> None:
        """What the other hosts were asked is asked here in the same connection: a connection costs more than a command."""
        if len(keys) == 1:
            done = self._host.run(*keys[0])
            self._answers[keys[0]] = Answer(done.rc, done.stdout, done.stderr)
            return
        done = self._host.run("python3 -c %s %s", RUN_ALL, json.dumps([_line(key) for key in keys]))
        if done.rc:
            say.finding(
                f"python3 ended with {done.rc} ({done.stderr[-200:]})", "an answer", "look at python3 on the host"
            )
        rows = json.loads(done.stdout)
        self._answers.update({key: Answer(*row) for key, row in zip(keys, rows)})

    def __call__(self, command: str, *arguments: str) -> str:
        """What a command printed; a tool that fails is a finding, never an empty answer."""
        done = self.answer(command, *arguments)
        if done.rc:
            said = (done.err or done.out).strip()[-300:]
            say.finding(
                f"{command.split()[0]} ended with {done.rc} ({said})", "its answer", f"run on the host: {command}"
            )
        return done.out.rstrip("\n")

    def lines(self, command: str, *arguments: str) -> list[str]:
        """The lines of an answer, without empty ones."""
        return [line for line in self(command, *arguments).splitlines() if line.strip()]

    def found(self, command: str, *arguments: str) -> list[str]:
        """The lines of a command that may find nothing: what is not there ends it badly, and is no finding."""
        return self.lines(f"{command} 2>/dev/null || true", *arguments)

    def has(self, program: str) -> bool:
        """Is the program on root's PATH?"""
        return self.answer("command -v %s", program).rc == 0

    def files(self, *paths: str) -> dict[str, dict[str, Any]]:
        """Mode, owner, kind, SHA-256, ACL and attributes of the files that exist among `paths`."""
        unknown = [path for path in paths if path not in self._files]
        if unknown:
            unknown += [path for path in self._always if path not in self._files and path not in unknown]
            quoted = " ".join(["%s"] * len(unknown))
            self._files.update(json.loads(self(f"python3 -c %s {quoted}", LOOK_AT_FILES, *unknown)))
        return {path: entry for path in paths if (entry := self._files[path]) is not None}

    def file(self, path: str) -> dict[str, Any]:
        """One file; a finding when it is not there."""
        found = self.files(path)
        say.holds(found, f"no {path}", "the file")
        return found[path]

    def text(self, path: str) -> str:
        """A file's content; a finding when it cannot be read."""
        return self("cat %s", path)

    def unit(self, name: str) -> dict[str, str]:
        """What systemd itself has of a unit, drop-ins included."""
        rows = self(f"systemctl show --property={','.join(UNIT_PROPERTIES)} %s", name).splitlines()
        found: dict[str, str] = {}
        for key, mark, value in (row.partition("=") for row in rows):
            if mark:
                found[key] = f"{found[key]} | {value}" if key in found else value
        return found

    def family(self) -> str:
        """'Debian' or 'RedHat', as Ansible calls them."""
        return "Debian" if self.answer("test -e /etc/debian_version").rc == 0 else "RedHat"

    def unowned(self, paths: Iterable[str]) -> list[str]:
        """The paths among these that no installed package brought."""
        asked = sorted(set(paths))
        if not asked:
            return []
        if self.family() == "RedHat":
            quoted = " ".join(["%s"] * len(asked))
            rows = self(f'for p in {quoted}; do rpm -qf "$p" >/dev/null 2>&1 || echo "$p"; done', *asked)
            return rows.splitlines()
        names = sorted({name for path in asked for name in _merged(path)})
        quoted = " ".join(["%s"] * len(names))
        rows = self.answer(f"dpkg-query --search {quoted} 2>/dev/null", *names).out.splitlines()
        owned = {row.partition(": ")[2] for row in rows}
        return [path for path in asked if not owned & set(_merged(path))]

    def altered(self, packages: Iterable[str]) -> list[str]:
        """Files of installed packages that are gone or not what the package brought; patterns of package names."""
        names = sorted(set(packages))
        quoted = " ".join(["%s"] * len(names))
        if self.family() == "RedHat":
            verify = f"rpm -qa {quoted} | xargs --no-run-if-empty rpm -V --nodeps --nomtime 2>&1 || true"
        else:
            form = "'${db:Status-Abbrev}|${Package}:${Architecture}\\n'"
            listed = f"dpkg-query --show -f {form} {quoted} 2>/dev/null | sed -n 's/^.i |//p'"
            verify = f"{listed} | xargs --no-run-if-empty dpkg --verify 2>&1 || true"
        rows = [row.split() for row in self(verify, *names).splitlines()]
        # Documentation may be left out on purpose (dpkg's path-exclude, rpm's nodocs).
        return [
            row[-1] for row in rows if not row[-1].startswith(("/usr/share/doc", "/usr/share/man", "/usr/share/info"))
        ]

    def facts(self) -> dict[str, str]:
        """The few of Ansible's facts that the roles' templates use."""
        rows = (line.partition("=") for line in self.lines("cat /etc/os-release"))
        release = {key: value.strip('"') for key, _, value in rows}
        version = release.get("VERSION_ID", "")
        return {
            "os_family": self.family(),
            "distribution": {"debian": "Debian", "ubuntu": "Ubuntu", "amzn": "Amazon"}.get(release.get("ID", ""), ""),
            "distribution_version": version,
            "distribution_major_version": version.partition(".")[0],
            "distribution_release": release.get("VERSION_CODENAME", "NA"),
            "architecture": self("uname -m"),
            "kernel": self("uname -r"),
            "hostname": self("hostname -s"),
        }


def _line(key: tuple[str, ...]) -> str:
    return key[0] % tuple(map(shlex.quote, key[1:])) if len(key) > 1 else key[0]


def _portions(keys: list[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Lists of commands that are short enough for one argument each."""
    found: list[list[tuple[str, ...]]] = [[]]
    size = 0
    for key in keys:
        size += len(_line(key))
        if size > MOST_CHARACTERS and found[-1]:
            found.append([])
            size = len(_line(key))
        found[-1].append(key)
    return found


def _merged(path: str) -> list[str]:
    """A path as a package may call it where /lib and /bin are links into /usr."""
    for folder in ("/lib/", "/lib64/", "/bin/", "/sbin/"):
        if path.startswith(f"/usr{folder}"):
            return [path, path.removeprefix("/usr")]
        if path.startswith(folder):
            return [path, f"/usr{path}"]
    return [path]


UNIT_PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "FragmentPath", "DropInPaths", "NeedDaemonReload"),
    *("ExecStart", "ExecStartPre", "ExecCondition", "Before", "After", "Environment", "EnvironmentFiles"),
    *("StateChangeTimestampMonotonic", "ConditionResult", "What", "Where", "Options", "Type", "WatchdogUSec"),
    *("MainPID", "FreezerState"),
)
