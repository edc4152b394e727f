"""What a rank of any PyTorch program carries without a changed line: written as sitecustomize.py before each start.

It waits for the program's own import of PyTorch, then keeps a journal by its public hooks (docs/job-contract.md),
counts its steps for the launcher, writes where it stands when the launcher asks, and the flight recorder when an
exception ends the rank. It must never cost a run: what fails here is left out, and the journal is written seldom.
Standard library alone, any Python 3 that PyTorch knows.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Optional

FOLDER = "FLIGHTLINE_CONTRACT"
"""Where this rank's files go; it is set by the launcher."""
FIRST_S, EACH_S = 1.0, 5.0
"""Between two lines of steps: soon at first, and then 2 MB a day."""
BEAT, BEAT_S = struct.Struct("<QQ"), 0.2
"""Steps so far and saves under way: beat-NNNNNN, written over, and at most so often for the steps. No mapped memory:
a page of it that a full disk cannot take ends a program by SIGBUS, a write only fails."""
MOST_CHARS = 2000


class RankJournal:
    """One rank's. step: by its first optimizer's own count, where that is to be had without asking a GPU."""

    def __init__(self, folder: str, rank: int) -> None:
        self.folder, self.rank, self.steps = folder, rank, 0
        self._file: Any = None
        self._beat, self._beats, self._saves, self._beat_at = -1, 0, 0, 0.0
        self._pid, self._first, self._optimizer = 0, 0, None  # type: int, int, Any
        self._said_at, self._said_steps, self._each_s = time.monotonic(), 0, FIRST_S

    def begin(self) -> None:
        """The first process of this rank that imports PyTorch is the rank: its helpers come later."""
        path = os.path.join(self.folder, f"rank-{self.rank:06d}.jsonl")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        self._file, self._pid = os.fdopen(handle, "w", 1, encoding="utf-8"), os.getpid()
        numbers = {
            name: int(os.environ.get(key, "0")) for name, key in (("world", "WORLD_SIZE"), ("device", "LOCAL_RANK"))
        }
        host = os.environ.get("FLIGHTLINE_NODE") or socket.gethostname()
        self.say("start", host=host, pid=self._pid, by="contract", **numbers)
        quietly(self._listen)
        before = sys.excepthook

        def raised(kind: Any, error: Any, trace: Any) -> None:
            if self.mine:
                quietly(self.say, "exception", type=kind.__name__, text=str(error)[:MOST_CHARS], **self.where())
                quietly(self.dump)
            before(kind, error, trace)

        sys.excepthook = raised

    @property
    def mine(self) -> bool:
        """Is this the rank itself, and no process that it has forked?"""
        return self._file is not None and os.getpid() == self._pid

    def _listen(self) -> None:
        """Answer the launcher, which writes into a pipe when it wants to know where this rank stands."""
        beat = os.path.join(self.folder, f"beat-{self.rank:06d}")
        self._beat = os.open(beat, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        path = os.path.join(self.folder, f"ask-{self.rank:06d}.pipe")
        os.mkfifo(path, 0o640)
        # Open for both: it blocks until it is asked, and never sees an end.
        pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC)

        def answer() -> None:
            while os.read(pipe, 1):
                quietly(self.stacks)
                quietly(self.dump, "flight-stall")

        threading.Thread(target=answer, name="flightline", daemon=True).start()

    def stacks(self) -> None:
        """Where each thread stands, the main one first and each one's last call last.

        Without source lines: a file system that hangs would hold this up as well.
        """
        main, texts = threading.main_thread().ident, []
        for ident, top in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
            frame, lines = top, []  # type: Any, list[str]
            while frame is not None:
                code = frame.f_code
                lines.append(f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n')
                frame = frame.f_back
            texts.append(f"Thread {ident}{' (main)' if ident == main else ''}\n" + "".join(reversed(lines)))
        with open(os.path.join(self.folder, f"stack-{self.rank:06d}.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(texts))

    def beat(self, now: float) -> None:
        """Tell the launcher of steps and saves."""
        self._beat_at = now
        if self._beat >= 0:
            os.pwrite(self._beat, BEAT.pack(self._beats, self._saves), 0)

    def say(self, event: str, **values: Any) -> None:
        """One line."""
        # The folder is of one start alone, whose number differs from node to node.
        about = {"event": event, "time": time.time(), "rank": self.rank, "attempt": 0}
        self._file.write(json.dumps({**about, **values}) + "\n")

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """After each step of an optimizer; of several the journal counts the first one's."""
        now = time.monotonic()
        self._beats += 1
        if now - self._beat_at >= BEAT_S and self.mine:
            quietly(self.beat, now)
        if id(optimizer) != self._first:
            if self._first:
                return
            self._first, self._optimizer = id(optimizer), optimizer
        self.steps += 1
        if now - self._said_at >= self._each_s and self.mine:
            took = (now - self._said_at) / (self.steps - self._said_steps)
            self._said_at, self._said_steps, self._each_s = now, self.steps, min(EACH_S, 2 * self._each_s)
            quietly(self.say, "step", step_s=round(took, 6), **self.where())

    def where(self) -> Dict[str, int]:
        """Steps since the start, and the step of the run."""
        found = {"steps": self.steps}
        with contextlib.suppress(Exception):
            for state in self._optimizer.state.values():
                count = state["step"]
                if not getattr(count, "is_cuda", False):
                    found["step"] = int(count)
                break
        return found

    def saving(self, save: Callable[..., Any], place: int) -> Callable[..., Any]:
        """A function that saves, and says so where it saves to a path. place: of the path in its arguments."""

        def saved(*given: Any, **named: Any) -> Any:
            began = time.monotonic()
            quietly(self._saving, 1)
            try:
                result = save(*given, **named)
            finally:
                quietly(self._saving, -1)
            at = named.get("checkpoint_id") or named.get("f") or (given[place] if len(given) > place else None)
            if self.mine and isinstance(at, (str, os.PathLike)):
                values = {"name": os.path.basename(os.fspath(at)), "seconds": round(time.monotonic() - began, 3)}
                quietly(self.say, "checkpoint", **values, **self.where())
            return result

        return saved

    def _saving(self, more: int) -> None:
        self._saves += more
        if self.mine:
            self.beat(time.monotonic())

    def dump(self, name: str = "flight") -> None:
        """PyTorch's flight recorder, of whatever backend."""
        module = sys.modules.get("torch._C._distributed_c10d")
        for source in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
            text = getattr(module, source)() if hasattr(module, source) else b""
            found = json.loads(text) if text else {}
            if found.get("entries"):
                with open(os.path.join(self.folder, f"{name}-{self.rank:06d}.json"), "w", encoding="utf-8") as file:
                    json.dump(found, file)
                return

    def hooks(self) -> Dict[str, Callable[[Any], None]]:
        """What is done after a module of PyTorch was imported."""

        def optimizer(module: Any) -> None:
            self.begin()
            module.register_optimizer_step_post_hook(self.stepped)

        def pickles(module: Any) -> None:
            module.save = self.saving(module.save, 1)

        def distributed(module: Any) -> None:
            for name in ("save", "async_save"):
                setattr(module, name, self.saving(getattr(module, name), 1))

        return {"torch.optim.optimizer": optimizer, "torch.serialization": pickles,
                "torch.distributed.checkpoint.state_dict_saver": distributed}  # fmt: skip


class AfterImport:
    """A finder of modules that does something once one of them was imported, and finds nothing else."""

    def __init__(self, hooks: Dict[str, Callable[[Any], None]]) -> None:
        self._hooks = hooks

    def find_spec(self, name: str, path: Any = None, _: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        """As importlib asks."""
        after = self._hooks.pop(name, None)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if after else None
        if spec is None or spec.loader is None or after is None:
            return None
        run, do = spec.loader.exec_module, after

        def exec_module(module: Any) -> None:
            run(module)
            quietly(do, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def quietly(do: Callable[..., Any], *given: Any, **named: Any) -> None:
    """A rank never fails by this file."""
    with contextlib.suppress(Exception):
        do(*given, **named)


def other_sitecustomize() -> None:
    """Of the program's own environment: Python takes the first one only, which is this."""
    here = Path(__file__).resolve().parent
    path = [one for one in sys.path if Path(one or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def install() -> None:
    """In a rank; elsewhere nothing."""
    folder, rank = os.environ.get(FOLDER, ""), os.environ.get("RANK", "")
    if folder and rank.isdigit():
        sys.meta_path.insert(0, AfterImport(RankJournal(folder, int(rank)).hooks()))


if __name__ == "sitecustomize":
    quietly(install)
    other_sitecustomize()
