"""The host that is looked at and changed: files below one root, and programs as argument lists."""

from __future__ import annotations

import glob
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

_NOT_FOUND = 127
_LAST_CHARACTERS = 1500


class ProgramResult(NamedTuple):
    """What a program answered."""

    rc: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The end of what it printed, for a message; errors first."""
        return (self.err.strip() or self.out.strip())[-_LAST_CHARACTERS:]


Run = Callable[[Sequence[str], Optional[str], Mapping[str, str]], ProgramResult]
"""argv, working directory, extra environment -> answer."""


class Problem(Exception):
    """Something that stops the work: what was seen, what was wanted, what to do."""

    def __init__(self, seen: str, wanted: str, do: str) -> None:
        super().__init__(f"saw: {seen}; wanted: {wanted}; do: {do}")
        self.seen, self.wanted, self.do = seen, wanted, do


class Problems(Exception):
    """Several at once, so that one run shows all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)


def run_program(argv: Sequence[str], cwd: Optional[str], env: Mapping[str, str]) -> ProgramResult:
    """Run a program without a shell; one that is not there answers 127 as a shell would say it."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except (FileNotFoundError, PermissionError) as error:
        return ProgramResult(_NOT_FOUND, "", f"{argv[0]}: {error.strerror}")
    return ProgramResult(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


class Host:
    """Reads below `root`; remembers every program that changed something."""

    def __init__(self, run: Run = run_program, root: str = "/") -> None:
        self._run = run
        self.root = root
        self.commands: List[List[str]] = []

    def path(self, path: str) -> str:
        """The place of an absolute path below the root."""
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> Optional[str]:
        """The text of a file, or None when it cannot be read."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as handle:
                return handle.read()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Is there anything at this path?"""
        return os.path.lexists(self.path(path))

    def mode(self, path: str) -> Optional[int]:
        """Permission bits of what is at this path, or None when there is nothing."""
        try:
            return Path(self.path(path)).stat().st_mode & 0o7777
        except OSError:
            return None

    def glob(self, pattern: str) -> List[str]:
        """Paths, as the host calls them, that match; sorted."""
        cut = len(self.root.rstrip("/"))
        return sorted(found[cut:] for found in glob.glob(self.path(pattern)))

    def link(self, path: str) -> str:
        """The last name of a link's target, or an empty text."""
        try:
            return os.path.basename(os.readlink(self.path(path)))
        except OSError:
            return ""

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Replace a file whole: nobody ever reads half of it."""
        target = Path(self.path(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent)
        os.close(handle)
        scratch = Path(name)
        try:
            scratch.write_text(text, encoding="utf-8")
            scratch.chmod(mode)
            scratch.replace(target)
        except OSError:
            scratch.unlink()
            raise

    def ask(self, argv: Sequence[str], cwd: Optional[str] = None) -> ProgramResult:
        """Run a program that only reads."""
        return self._run(argv, cwd, {})

    def change(
        self, argv: Sequence[str], wanted: str, do: str, cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None
    ) -> ProgramResult:
        """Run a program that changes the host; its failure is a problem that quotes it."""
        self.commands.append(list(argv))
        answer = self._run(argv, cwd, env or {})
        if answer.rc != 0:
            raise Problem(
                f"{' '.join(argv)} ended with {answer.rc}: {answer.said or 'no output'}", wanted, _advice(answer, do)
            )
        return answer


def _advice(answer: ProgramResult, do: str) -> str:
    if "No space left on device" in answer.out + answer.err:
        return "free space on the disk it names (df -h), then run again"
    return do
