"""The exit status of an ansible-playbook that is a preflight: 2 until a verdict is reached, whatever ends it.

The one place where it is decided, at the interpreter's end: no host, tag, working directory or configuration is needed
for that. plugins/filter/flightline_exit.py brings it in, as early as Ansible reads a file of Flightline's.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import no_verdict

CANNOT_RUN = 2
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CALLBACK = "flightline_store"


class ExitGuard:
    """The exit status until a verdict is reached: 2. Ansible swallows what a callback raises, and then ends with 0.

    status: None until there is a verdict. Go leaves the last word to Ansible: another playbook may follow.
    run_id: of the run, once its nodes are asked.
    """

    def __init__(self) -> None:
        self.pid, self.why, self.run_id = 0, "", ""
        self.status: int | None = None
        self.state = no_verdict.PlaybookState()
        self.workers: dict[int, str] = {}
        self.ansibles: Any = None

    def arm(self, options: Any) -> None:
        """From here on, a process that ends without a verdict says so. Refuses what no inventory is needed for."""
        if self.pid == os.getpid():
            return
        self.pid, self.state.options = os.getpid(), options
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the shell: whatever prints would break on it
                setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # for as long as the process lives
        atexit.register(self.leave)
        self.refuse(no_verdict.empty_limit(options.get("subset")))

    def refuse(self, why: str) -> None:
        """End here, before a node is asked, when there is a reason."""
        if why:
            self.why = why
            sys.exit(CANNOT_RUN)

    def begin(self) -> None:
        """A playbook begins that judges: no verdict yet, and a signal ends it in order."""
        self.status, self.run_id, self.why = None, "", ""
        self.state.began, self.state.hosts = True, None
        self.ansibles = self.ansibles or signal.getsignal(signal.SIGINT)
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, self.interrupt)

    def interrupt(self, _number: int, frame: Any) -> None:
        """All as Ctrl-C: Ansible's own handler passes it to the workers; for a TERM it would end past every guard."""
        from . import process_tree

        # Added: a hang-up may follow a TERM, when workers are gone and what they started is not.
        self.workers |= process_tree.descendants(os.getpid())
        if callable(self.ansibles):
            self.ansibles(signal.SIGINT, frame)
        raise KeyboardInterrupt

    def leave(self) -> None:
        """At the interpreter's end."""
        if os.getpid() != self.pid:
            return  # a worker
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        self.end_workers()
        status = self.last_word()
        if status:
            atexit.unregister(self.leave)
            atexit._run_exitfuncs()  # Ansible's own: its temporary files
        _flush()
        if status:
            os._exit(status)

    def last_word(self) -> int:
        """The status, said where there is no verdict; 0 leaves Ansible's own."""
        if self.status is not None:
            return self.status
        reads = "" if self.why else no_verdict.only_reads(self.state.options)
        self.say(reads)
        return 0 if reads else CANNOT_RUN

    def end_workers(self) -> None:
        """After an interrupt: a signal to a worker's session does not end all of it.

        dash loses what arrives while it starts a command (`if (vforked) return` in its handler, 0.5.12), and what a
        node that is this machine runs may ignore the signal.
        """
        if self.workers:
            from . import process_tree

            process_tree.end_with_sessions(self.workers)

    def say(self, reads: str = "") -> None:
        """One sentence, with the run's id where nodes were asked."""
        why = reads or self.why
        if not why:
            why = "the playbook ended before one was reached" if self.run_id else no_verdict.why(self.state)
        said = f"run {self.run_id} has {no_verdict.MARK}{why}" if self.run_id else f"{no_verdict.MARK}{why}"
        look = f"; what was measured: flightline report {self.run_id}" if self.run_id else ""
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"flightline: {said}{look}\n")
        if no_verdict.FILE_ENV in os.environ:
            with suppress(OSError):
                Path(os.environ[no_verdict.FILE_ENV]).write_text(said, encoding="utf-8")


GUARD = ExitGuard()
"""Of this process; the callback plugin, and what arms it, may be loaded from several paths."""


def watch(constants: Any, options: Any, collection: str) -> None:
    """Arm the guard and switch the callback on, whatever configuration Ansible found. constants: ansible.constants.

    collection: the prefix of the callback's full name. An inventory that is read in part is refused by the callback:
    Ansible's own error for it would come in some configurations only, and names no file of several.
    """
    enabled: Iterable[str] = constants.CALLBACKS_ENABLED or ()
    if not any(name.rpartition(".")[2] == CALLBACK for name in enabled):
        constants.CALLBACKS_ENABLED = [*enabled, f"{collection}{CALLBACK}"]
    constants.INVENTORY_ANY_UNPARSED_IS_FAILED = constants.INVENTORY_UNPARSED_IS_FAILED = False
    GUARD.arm(options)


def unread(inventory: Any, ignored: re.Pattern[bytes]) -> list[str]:
    """What Ansible passed over with a warning. inventory: its InventoryManager. ignored: files that it never reads."""
    read = set(inventory._inventory.processed_sources)
    return [
        leaf for source in inventory._sources if source for leaf in _leaves(str(source), ignored) if leaf not in read
    ]


def _leaves(source: str, ignored: re.Pattern[bytes]) -> Iterator[str]:
    """The files of a directory that is an inventory; a source that is none, or an empty one, itself."""
    place = Path(source)
    names = (
        [name for name in sorted(os.listdir(place)) if not ignored.search(os.fsencode(name))] if place.is_dir() else []
    )
    if not names:
        yield source
    for name in names:
        yield from _leaves(str(place / name), ignored)


def _flush() -> None:
    """A reader that has left must not change the status: Python would end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
