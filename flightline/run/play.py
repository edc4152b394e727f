"""One ansible-playbook of a run: started through ansible-runner, listened to, and ended with all that it started."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..console import EXIT_BROKEN
from . import ansible_errors, background, live, no_verdict, playbooks, process_tree
from .background import Background
from .live import RunObserver

VALIDATE_TASK = "flightline_validate"
LIVE_FILE = "live.jsonl"
NO_VERDICT_FILE = "no-verdict"
"""In the workplace of a run: how the guard of its exit status ended it."""
POLL_S = 0.2
OVERDUE_S = 30.0
"""Every host's deadline has passed and Ansible still runs: the run is ended and judged."""
INTERRUPT_GRACE_S = 5.0
INTERRUPTED = "it was interrupted"


@dataclass
class Follow:
    """What is known of a run while it goes, from its own lines. pid: of the ansible-playbook process, once it spoke."""

    watcher: RunObserver
    lines: live.LiveLines | None = None
    pid: int = 0
    refused: str = ""
    via: str = ""
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    level: str = "quick"
    publish: Any = None
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0
    deaf: bool = False
    trouble: str = ""
    validated: Mapping[str, Any] = field(default_factory=dict)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take the process's number from an event of the runner; False, because nobody needs its file.

        And why validation broke off where it could not say so itself. Never raises: that would end the runner's thread.
        """
        with suppress(AttributeError, TypeError, ValueError):
            self.pid = int(event.get("pid") or self.pid)
            data = event.get("event_data") or {}
            task = str(data.get("task_action")).rpartition(".")[2]
            if task == VALIDATE_TASK and event.get("event") == "runner_on_failed":
                self.refused = self.refused or str(data.get("res", {}).get("msg") or "no message")
        return False

    def listen(self) -> None:
        """Take what the run has said since the last time. Never raises."""
        try:
            for kind, what in self.lines.new() if self.lines else ():
                self._hear(kind, what)
        except Exception as error:
            self.trouble = self.trouble or f"a line was not understood: {type(error).__name__}: {error}"

    def tell(self, say: Callable[[RunObserver], None]) -> None:
        """Tell who watches. A terminal that is gone must not end the run."""
        if not self.deaf:
            try:
                say(self.watcher)
            except (OSError, ValueError):
                self.deaf = True

    def _hear(self, kind: str, what: Any) -> None:
        if kind == live.VALIDATED:
            self.validated = what
            self.hosts = dict(what.get("hosts") or {})
            self.level = str(what.get("level") or self.level)
            self.publish = what.get("publish")
            self.ends_at = float(what.get("ends_at") or 0)
            self.tell(lambda watcher: watcher.expect(tuple(self.hosts), self.ends_at or None))
        elif kind == live.REFUSED:
            self.refused, self.via = str(what["msg"]), str(what.get("via") or "")
        elif kind == live.BEGUN:
            self.tell(lambda watcher: watcher.begin(str(what)))
        elif kind == live.ANSWERED and what["host"] in self.hosts:  # else of a node that nobody listed
            self.tell(lambda watcher: watcher.answer(live.outcome_in(what)))


@dataclass
class Play:
    """A playbook that was started. place: where its files are."""

    place: Path
    follow: Follow
    work: Background
    runner: Any

    def wait(self) -> str:
        """Wait for the playbook; returns why it was given up, or "".

        On Ctrl-C, SIGTERM, a hang-up, or when every deadline has long passed, it and its children are ended first. A
        second Ctrl-C changes nothing: what was measured is judged.
        """
        why = self._until_ended()
        if self.work.broken and not why:
            said = f"ansible-runner broke off: {background.why(self.work.broken)}"
            self.follow.trouble = self.follow.trouble or said
        return why

    def _until_ended(self) -> str:
        why = "it was still running when every host's deadline had passed"
        with background.ending_as_interrupt():
            try:
                while not self._is_overdue():
                    ended = self.work.wait(POLL_S)
                    self.follow.listen()
                    if ended:
                        return ""
            except KeyboardInterrupt:
                why = INTERRUPTED
            with background.deaf_to_signals():
                self._stop()
                self.follow.listen()
        if why == INTERRUPTED:
            background.ignore_interrupts()
        return why

    def _is_overdue(self) -> bool:
        return bool(self.follow.ends_at) and time.time() > self.follow.ends_at + OVERDUE_S

    def _stop(self) -> None:
        if self.follow.pid:
            # Not the runner's own cancelling: it kills ansible-playbook alone, whose workers lead process groups
            # of their own and would go on. Nor does ansible-playbook always end them when it is interrupted.
            below = process_tree.descendants(self.follow.pid)
            with suppress(OSError):
                os.kill(self.follow.pid, signal.SIGINT)
            self.work.wait(INTERRUPT_GRACE_S)
            process_tree.end_with_sessions(below)
        self.follow.stop.set()
        self.work.wait(INTERRUPT_GRACE_S)

    def broken(self) -> str:
        """Why the playbook has no verdict, in the guard's words or Ansible's; "" when it ended in order.

        2 is the callback's guard: hosts that fail do not end a play.
        """
        if self.runner.rc != EXIT_BROKEN:
            return ""
        own = self.guards_words().partition(no_verdict.MARK)[2]
        return own or self.ansible_said() or "ansible-playbook did not end in order"

    def guards_words(self) -> str:
        """Not from what ansible-playbook printed: ansible-runner can lose the end of it."""
        with suppress(OSError):
            return (self.place / NO_VERDICT_FILE).read_text(encoding="utf-8")
        return ""

    def ansible_said(self) -> str:
        """Its own errors and warnings."""
        return ansible_errors.why(self.runner.stdout.read().splitlines())


def start(
    playbook: str, arguments: Sequence[str], environment: Mapping[str, str], place: Path, watcher: RunObserver
) -> Play:
    """Start a playbook, with arguments and an environment on top of those that each of a run has."""
    own = playbooks.find()
    follow = Follow(watcher, live.LiveLines(place / LIVE_FILE))
    work, runner = background.play(
        private_data_dir=str(place),
        project_dir=str(own.root),
        playbook=str(own.playbook(playbook)),
        cmdline=shlex.join(arguments),
        envvars={
            **playbooks.environment(own),
            # ansible-runner puts its own directory here.
            **({"ANSIBLE_CALLBACK_PLUGINS": str(own.callbacks)} if own.callbacks else {}),
            no_verdict.FILE_ENV: str(place / NO_VERDICT_FILE),
            live.LIVE_ENV: str(place / LIVE_FILE),
            **environment,
        },
        event_handler=follow.event,
        only_failed_event_data=True,
        quiet=True,
        # Its own would catch Ctrl-C, kill ansible-playbook alone and leave the nodes' processes running.
        cancel_callback=follow.stop.is_set,
    )
    return Play(place, follow, work, runner)


def why_not(play: Play, sources: Iterable[str]) -> str:
    """Why no node was judged: the guard's sentence and what Ansible itself said, its errors first, without an event."""
    gone = [source for source in sources if no_verdict.missing(source)]
    if gone:
        return no_verdict.no_inventory(gone[0])
    own, said = play.guards_words(), play.ansible_said()
    if own and said:
        return f"{own} (Ansible said: {said})"
    return own or said or f"ansible-playbook ended with status {play.runner.rc} before any node was judged"
