"""Saving while training goes on, and resuming from the last checkpoint that is whole.

`torch.distributed.checkpoint` writes and reads; the manifest around it (manifest.py) says what is whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from . import copies, manifest
from .journal import who

Say = Callable[..., None]
BROUGHT_S = 0.2
"""Between two looks whether rank 0 has brought a checkpoint back; it may take longer than any collective's timeout."""


class UnsharedError(RuntimeError):
    """The ranks have directories of their own under one name."""


class NoUsableCheckpointError(RuntimeError):
    """There are checkpoints, and none can be resumed from."""


class Saver:
    """One rank's side. group: gloo, for what runs beside the training; say: events with named values; url: of copies.

    What is saved is copied into one buffer, kept from save to save: to make its tensors anew takes several times as
    long as to copy into them. On GPUs it is pinned memory.
    """

    def __init__(self, root: Path, nonce: str, group: Any, say: Say, last: int, every: int, part_wait_s: float,
                 url: str | None = None) -> None:  # fmt: skip
        self._root, self._nonce, self._group, self._say = root, nonce, group, say
        self._last, self._every, self._part_wait_s = last, every, part_wait_s
        self._stager = BlockingAsyncStager(cache_staged_state_dict=True)
        self._rank, self._world = dist.get_rank(), dist.get_world_size()
        self._running: threading.Thread | None = None
        self._failed = ""
        self._copier = copies.Copier(url, say, last, every) if url and self._rank == 0 else None

    def save(self, step: int, model: Any, optimizer: Any, more: Mapping[str, Any]) -> float:
        """Begin to save; returns the seconds that training stood still. One save at a time: an earlier one is ended."""
        began = time.perf_counter()
        self.wait()
        where = manifest.directory(self._root, step, self._nonce)
        # Of an earlier try of this step: rank 0 must not take it for what is written now.
        manifest.part(where, self._rank).unlink(missing_ok=True)
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        if not self._stager.state_dict_cache and not torch.cuda.is_available():
            # PyTorch would pin it, which takes CUDA.
            self._stager.state_dict_cache = BlockingAsyncStager().stage(state)
        writer = dcp.FileSystemWriter(where, single_file_per_rank=True, thread_count=1)
        pending = dcp.async_save(state, storage_writer=writer, async_stager=self._stager, process_group=self._group)
        self._running = threading.Thread(target=self._finish, args=(step, where, pending, dict(more)), daemon=True)
        self._running.start()
        return time.perf_counter() - began

    def wait(self) -> None:
        """Until what was begun is whole, or has failed and said so."""
        if self._running:
            self._running.join()
            self._running = None

    def copied(self) -> None:
        """Until the newest whole checkpoint is in S3 as well, or that has failed and said so."""
        self.wait()
        if self._copier:
            self._copier.finish()

    def last_failed(self) -> str:
        """Why the last save is not whole, on every rank the same; '' when it is."""
        self.wait()
        reasons: list[Any] = [None] * self._world
        dist.all_gather_object(reasons, self._failed, group=self._group)
        return next((reason for reason in reasons if reason), "")

    def _finish(self, step: int, where: Path, pending: Any, more: Mapping[str, Any]) -> None:
        began, self._failed = time.perf_counter(), ""
        try:
            pending.result()
            mine = list(where.glob(f"__{self._rank}_*.distcp"))
            manifest.write_part(where, self._rank, mine + ([where / ".metadata"] if self._rank == 0 else []))
            if self._rank == 0:
                self._commit(step, where, more)
                self._say("checkpoint", step=step, name=where.name, seconds=round(time.perf_counter() - began, 3))
        # DCP's own exception is no Exception. Whatever it is, training goes on from memory, and the one before stays.
        except (Exception, dcp.CheckpointException) as error:
            first = str(error).strip().splitlines() or [""]
            self._failed = f"{type(error).__name__}: {first[-1][:300]}"
            self._say("checkpoint_failed", step=step, name=where.name, why=self._failed)

    def _commit(self, step: int, where: Path, more: Mapping[str, Any]) -> None:
        end = time.monotonic() + self._part_wait_s
        while missing := [rank for rank in range(self._world) if not manifest.part(where, rank).exists()]:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"ranks {missing[:8]} did not say in {self._part_wait_s:.0f} s that they had written"
                )
            time.sleep(0.02)
        manifest.write(where, self._world, {**more, "step": step})
        held = ""
        if self._copier:
            self._copier.want(where)
            held = self._copier.held()
        gone = manifest.tidy(self._root, self._last, self._every, held)
        if gone:
            self._say("checkpoints_removed", names=gone)


def shared(root: Path, nonce: str, group: Any) -> None:
    """Raise UnsharedError unless every rank sees what rank 0 makes: a checkpoint in parts on several disks is none."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    mark = root / f".seen-{nonce}"
    if rank == 0:
        mark.touch()
    dist.barrier(group=group)
    blind: list[Any] = [None] * world
    dist.all_gather_object(blind, "" if mark.exists() else f"rank {rank} on {who()['host']}", group=group)
    if rank == 0:
        mark.unlink(missing_ok=True)
    wrong = [name for name in blind if name]
    if wrong:
        raise UnsharedError(
            f"{root}: {len(wrong)} of {world} ranks do not see what rank 0 writes there, first {wrong[0]}; "
            "wanted storage that all ranks share; do: mount it on every node"
        )


def bring(root: Path, nonce: str, url: str, say: Say) -> None:
    """Where there is no checkpoint, the newest copy from S3, by rank 0; all others wait. Raises CopyError, OSError."""
    mark = root / ".brought"
    if dist.get_rank():
        while not mark.exists() or mark.read_text(encoding="utf-8") != nonce:
            time.sleep(BROUGHT_S)
        return
    copies.bring(root, url, say)
    mark.write_text(nonce, encoding="utf-8")


def find(root: Path, say: Say, group: Any) -> tuple[Path, dict[str, Any]] | None:
    """The newest whole checkpoint, the same on every rank; each that is not is named. Every rank checks its share.

    Raises NoUsableCheckpointError where some were complete once: beginning again would throw away what a person may restore.
    """
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    listed: list[Any] = [_listed(root) if rank == 0 else None]
    dist.broadcast_object_list(listed, src=0, group=group)
    for where, _ in listed[0]:
        why, found = "", {}
        try:
            found = manifest.read(where)
            names = sorted(found["files"])[rank::world]
            manifest.check(where, {name: found["files"][name] for name in names})
        except manifest.DamagedError as error:
            why = str(error)
        reasons: list[Any] = [None] * world
        dist.all_gather_object(reasons, why, group=group)
        wrong = [reason for reason in reasons if reason]
        if not wrong:
            return where, found
        if rank == 0:
            say("checkpoint_refused", name=where.name, why=wrong[0])
    complete = [where.name for where, once in listed[0] if once]
    if complete:
        raise NoUsableCheckpointError(
            f"{root}: none of {len(complete)} checkpoints is whole, newest {complete[0]}; wanted one; "
            "do: restore one, or give the run an empty directory to begin again"
        )
    return None


def _listed(root: Path) -> list[tuple[Path, bool]]:
    return [(where, (where / manifest.NAME).exists()) for where in manifest.candidates(root)]


def load(where: Path, model: Any, optimizer: Any, group: Any) -> None:
    """Fill model and optimizer; DCP reshards when the number of ranks is another."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, storage_reader=dcp.FileSystemReader(where), process_group=group)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
