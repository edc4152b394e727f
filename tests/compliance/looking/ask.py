"""What a host's own tools say, each asked once in a run and remembered."""

from __future__ import annotations

import json
import os
import shlex
import threading
import time
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
import json, os, signal, subprocess, sys, tempfile, threading, time
lines, each_s, end = json.loads(sys.argv[1]), float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
found, turn = [[0, '', '', True] for _ in lines], iter(range(len(lines)))
def work():
    for place in turn:
        left = min(each_s, end - time.monotonic())
        if left <= 0:
            continue
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(['/bin/sh', '-c', lines[place]], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            try:
                rc, late = child.wait(left), False
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                rc, late = 0, True
            out.seek(0), err.seek(0)
            found[place] = [rc, out.read().decode(errors='replace'), err.read().decode(errors='replace'), late]
workers = [threading.Thread(target=work, daemon=True) for _ in range(4)]
[worker.start() for worker in workers]
[worker.join(max(0, end + 2 - time.monotonic())) for worker in workers]
sys.stdout.write(json.dumps(found) + chr(10))
sys.stdout.flush()
os._exit(0)
"""
"""Run on the host: several commands at once, each with its own time. Output goes to files: a child that does not die when it
is killed would hold a pipe open, and is left behind.
"""
QUESTION_S = 45
"""One question may take so long: dpkg reads a driver's gigabyte, find the root disk."""
HOST_S = float(os.environ.get("FLIGHTLINE_COMPLIANCE_S", 170))
"""All questions to one host together; with what pytest does itself a host's suite ends in three minutes."""
GRACE_S = 15
"""For the connection, beyond the time that the host was given."""


MOST_CHARACTERS = 20_000
"""Of one argument, whose limit is 128 KiB (execve(2)), before it is quoted for two shells."""


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    rc: int
    out: str
    err: str
    late: bool = False
    """It had not ended when its time was over: neither rc nor out mean anything."""


class Asked:
    """One host's answers. Tests of one run look at one moment: nothing is asked twice."""

    def __init__(
        self,
        host: Any,
        others: Mapping[str, Asked] = MappingProxyType({}),
        always: Iterable[str] = (),
        limits_s: tuple[float, float, float] = (QUESTION_S, HOST_S, GRACE_S),
    ) -> None:
        """`always`: files that are looked at together with the first that is asked for."""
        self._host, self._others, self._always = host, others, sorted(always)
        self._each_s, self._all_s, self._grace_s = limits_s
        self._left_s = self._all_s
        self._lost = self._hung = ""
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
        answer = self._answers[key]
        if answer.late:
            tool, why = command.split()[0], f"did not end within {self._each_s:g} s"
            if self._left_s <= 0:
                why = f"was not waited for: the {self._all_s:g} s of this host were used up{self._hung}"
            do = f"run it on the host and look where it stands (/proc/PID/stack, dmesg): {_line(key)[:200]}"
            say.finding(f"{tool} {why}", "an answer in time", do)
        return answer

    def answers(self) -> bool:
        """Can the host be asked at all?"""
        try:
            return self.answer("true").rc == 0
        except say.Finding:
            return False

    def _run(self, keys: list[tuple[str, ...]]) -> None:
        """What the other hosts were asked is asked here in the same connection: a connection costs more than a command."""
        arguments = (json.dumps([_line(key) for key in keys]), str(self._each_s), f"{max(self._left_s, 0):.1f}")
        began = time.monotonic()
        text = self._connected("python3 -c %s %s %s %s", RUN_ALL, *arguments) if self._left_s > 0 else ""
        self._left_s -= time.monotonic() - began
        try:
            rows = json.loads(text or "null") or [[0, "", "", True]] * len(keys)
        except ValueError:
            say.finding(f"python3 answered {text[-200:]!r}", "an answer", "look at python3 on the host")
        self._answers.update({key: Answer(*row) for key, row in zip(keys, rows)})
        late = [key[0].split()[0] for key in keys if self._answers[key].late]
        self._hung = self._hung or (f", {late[0]} never answered" if late else "")

    def _connected(self, command: str, *arguments: str) -> str:
        """What a command printed, over a connection that may be lost, or hang for ever. Once lost it stays so in this run."""
        said: list[Any] = []

        def call() -> None:
            try:
                said.append(self._host.run(command, *arguments))
            except (RuntimeError, OSError, ValueError) as error:  # testinfra's and Ansible's words for no connection
                said.append(error)

        if not self._lost:
            worker = threading.Thread(target=call, daemon=True)
            worker.start()
            worker.join(self._left_s + self._grace_s)
            if not said:
                self._lost = f"no answer over ssh within {self._left_s + self._grace_s:.0f} s"
            elif isinstance(said[0], Exception):
                self._lost = " ".join(str(getattr(said[0].args[0], "stderr", "") or said[0]).split())[-300:]
        if self._lost:
            say.unreachable(self._lost)
        if said[0].rc:
            say.finding(
                f"python3 ended with {said[0].rc} ({said[0].stderr[-200:]})", "an answer", "look at python3 on the host"
            )
        return str(said[0].stdout)

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

    def json(self, path: str) -> Any:
        """A file of settings; a finding when it is no JSON: written half, or by somebody else."""
        text = self.text(path)
        try:
            return json.loads(text)
        except ValueError as error:
            say.finding(f"{path} of {len(text)} characters is no JSON ({error})", "whole settings", say.CONFIGURE)

    def version(self, package: str) -> str:
        """The version of an installed package; empty where it is not installed."""
        if self.family() == "RedHat":
            return self("rpm -q --qf '%{VERSION}-%{RELEASE}' %s 2>/dev/null || true", package)
        shown = self("dpkg-query -W -f '${db:Status-Abbrev}|${Version}' %s 2>/dev/null || true", package)
        return shown.partition("|")[2] if shown[1:2] == "i" else ""

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
        found = self.answer(f"dpkg-query --search {quoted} 2>/dev/null", *names).out.splitlines()
        owned = {row.partition(": ")[2] for row in found}
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
