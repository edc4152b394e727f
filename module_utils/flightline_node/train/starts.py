"""The evidence of each start: a folder with the ranks' logs, error files and dumps, of which the newest are kept."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import pwd
import re
import shutil
import socket
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

from . import injected
from .faults import StartFault
from .plan import LaunchPlan

FOLDER, ABOUT, CONTRACT = "starts", "start.json", "contract"
KEPT = 10
MOST_BYTES = 4 << 30
"""Of all kept starts; the newest stays however large it is. Own choices."""
MOST_DUMP_BYTES = 64 << 20
DUMP = re.compile(r"(?:flight|fr|nccl_trace|trace)[a-z_-]*?_?\d+(?:\.json)?")
"""Flight recorder dumps that a program writes beside its journal, as flightline/training/flight.py knows them."""


@contextlib.contextmanager
def as_user(user: str) -> Iterator[None]:
    """Handle the job's directory with its user's rights: it is theirs, and no link in it may lead root elsewhere."""
    if not user or os.geteuid() != 0:
        yield
        return
    entry, group = pwd.getpwnam(user), os.getegid()
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)


class StartEvidence:
    """The folders of a job's starts on this node. folder: the present one's, '' where none could be made."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan, self._root, self.folder = plan, f"{plan.logs}/{FOLDER}", ""
        self._about: Dict[str, Any] = {}

    @property
    def ranks(self) -> Dict[str, int]:
        """By local rank, as far as they were seen."""
        return dict(self._about.get("ranks", {}))

    def begin(self) -> List[str]:
        """Make the folder of a start; the command, which logs into it."""
        with as_user(self._plan.user):
            try:
                number = max([-1, *map(int, self._numbers())]) + 1
                self.folder = f"{self._root}/{number:05d}"
                Path(self.folder).mkdir(mode=0o750, parents=True)
                self._about = {"start": number, "began": time.time(), "host": socket.gethostname()}
                self._write()
            except OSError:
                # A disk that is full costs the evidence and not the start.
                self.folder = ""
        logs = f"--log-dir={self._plan.logs}"
        return [f"--log-dir={self.folder}" if word == logs and self.folder else word for word in self._plan.argv]

    def environment(self, given: Mapping[str, str]) -> Dict[str, str]:
        """What lets any PyTorch program leave its dumps, stacks and journal in the folder. given: what it has already.

        What the job has set stays.
        """
        if not self.folder:
            return {}
        # PyTorch makes a pipe only where it is asked to: a run must not fail for want of one.
        pipe = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{self.folder}/pipe_"} if self._plan.on_stall != "tell" else {}
        usual = {"TORCH_FR_BUFFER_SIZE": "2000", "NCCL_INSPECTOR_DUMP_DIR": f"{self.folder}/inspector",
                 "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "1000000"}  # fmt: skip
        wanted = usual if given.get("NCCL_INSPECTOR_ENABLE") == "1" else {"TORCH_FR_BUFFER_SIZE": "2000"}
        return {
            **{name: value for name, value in wanted.items() if name not in given},
            "TORCH_FR_DUMP_TEMP_FILE": f"{self.folder}/nccl_trace_rank_", "PYTHONFAULTHANDLER": "1", **pipe,
            "FLIGHTLINE_START": str(self._about["start"]), **self._contract(given),
        }  # fmt: skip

    def _contract(self, given: Mapping[str, str]) -> Dict[str, str]:
        """Lay down what each rank carries; a job that names its journal keeps its own."""
        place = f"{self.folder}/{CONTRACT}"
        if self._plan.journal != self._plan.logs:
            return {"FLIGHTLINE_JOURNAL": self._plan.journal}
        try:
            with as_user(self._plan.user):
                Path(place).mkdir(mode=0o750)
                Path(place, "sitecustomize.py").write_bytes(pkgutil.get_data(__package__, "injected.py") or b"")
        except OSError:
            return {}
        path = os.pathsep.join(filter(None, [place, given.get("PYTHONPATH")]))
        return {injected.FOLDER: place, "PYTHONPATH": path}

    def note(self, **more: Any) -> None:
        """Add what is known of the start, such as its ranks by local rank."""
        if self.folder and any(self._about.get(key) != value for key, value in more.items()):
            self._about.update(more)
            with as_user(self._plan.user), contextlib.suppress(OSError):
                self._write()

    def keep(self, name: str, content: bytes) -> None:
        """Put a file beside the ranks' logs; nothing where there is nothing."""
        if self.folder and content:
            with as_user(self._plan.user), contextlib.suppress(OSError):
                Path(self.folder, name).write_bytes(content)

    def end(self, status: int, fault: StartFault) -> None:
        """Complete the folder, and forget the oldest ones."""
        self.note(
            ended=time.time(), status=status, word=fault.word, text=fault.text, where=fault.where, step=fault.step
        )
        with as_user(self._plan.user), contextlib.suppress(OSError):
            if self.folder and self._plan.about:
                self._take_dumps()
            self._forget()

    def _write(self) -> None:
        with open(f"{self.folder}/{ABOUT}", "w", encoding="utf-8") as file:
            json.dump(self._about, file)

    def _numbers(self) -> List[str]:
        try:
            return sorted(name for name in os.listdir(self._root) if name.isdigit())
        except FileNotFoundError:
            return []

    def _take_dumps(self) -> None:
        """Copy what the program itself dumped beside its journal: the next start writes over it."""
        for name in sorted(os.listdir(self._plan.journal)):
            path = Path(self._plan.journal, name)
            if DUMP.fullmatch(name) and path.is_file():
                about = path.stat()
                if about.st_mtime >= self._about["began"] and about.st_size <= MOST_DUMP_BYTES:
                    shutil.copyfile(path, f"{self.folder}/{name}")

    def _forget(self) -> None:
        total = 0
        for place, number in enumerate(reversed(self._numbers())):
            folder = f"{self._root}/{number}"
            total += sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)
            if place and (place >= KEPT or total > MOST_BYTES):
                shutil.rmtree(folder, ignore_errors=True)
