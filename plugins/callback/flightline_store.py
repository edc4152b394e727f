# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Keep every node's result the moment it ends, and end a preflight with its verdict."""

from __future__ import annotations

DOCUMENTATION = r"""
name: flightline_store
type: aggregate
short_description: Keeps Flightline results in the run store and ends a preflight with its verdict
description:
  - In a playbook with a C(flightline_node) task, opens a run, registers every host that the play selects, and writes
    each host's result as it ends, so that a killed control node loses nothing that was measured.
  - At the end it judges the fleet, writes the report, prints the summary last and sets the exit status,
    0 go, 1 no-go, 2 the preflight itself could not run. However else the playbook ends, it is 2, with one sentence.
  - Does nothing in any other playbook or ad-hoc command.
version_added: "0.1.0"
author:
  - Flightline contributors (@flightline)
requirements:
  - the flightline package in the controller's Python
options:
  summary:
    description: Print the summary, write the report and close the run; V(off) leaves that to the caller.
    type: str
    choices: ["on", "off"]
    default: "on"
    env:
      - name: FLIGHTLINE_SUMMARY
"""

import functools
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ansible import context
from ansible.inventory.manager import IGNORED
from ansible.plugins.callback import CallbackBase

from flightline.run import exit_status, no_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from flightline.store.run_rows import RunRows
    from flightline.store.sqlite import ExpectedHost

MODULE = "flightline_node"
VALIDATE = "flightline_validate"
WATCHING_ENV = "FLIGHTLINE_CALLBACK"


def _has_task(blocks: Any, name: str) -> bool:
    for item in blocks:
        if hasattr(item, "block"):
            if any(_has_task(part, name) for part in (item.block, item.rescue, item.always)):
                return True
        elif _action(item) == name:
            return True
    return False


def _action(task: Any) -> str:
    return str(task.action).rpartition(".")[2]


def _say(how: Callable[[str], None], text: str) -> None:
    """A terminal that is gone is no error."""
    with suppress(OSError, ValueError, AttributeError):
        how(text)


def _guarded(method: Callable[..., None]) -> Callable[..., None]:
    """What goes wrong in a callback is told, and the run ends with 2: Ansible would only warn."""

    @functools.wraps(method)
    def guarded(self: CallbackModule, *args: Any, **named: Any) -> None:
        try:
            method(self, *args, **named)
        except Exception as error:
            self.broke(error)

    return guarded


class CallbackModule(CallbackBase):
    """Inert until a playbook turns out to be a preflight; flightline and SQLite are imported only then."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "flightline_store"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._preflight = False
        self._refused = ""
        self._play: Any = None
        self._validated: dict[str, Any] = {}
        self._rows: RunRows | None = None
        self._hosts: dict[str, ExpectedHost] = {}
        self._exit = exit_status.GUARD

    def broke(self, error: Exception) -> None:
        """Remember what went wrong here first."""
        self._exit.why = self._exit.why or f"the results could not be kept: {type(error).__name__}: {error}"

    @_guarded
    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Is this a preflight?"""
        self._preflight = any(_has_task(play.tasks, MODULE) for play in playbook.get_plays())
        if self._preflight:
            self._exit.arm(context.CLIARGS)  # where a playbook of one's own has the task
            self._exit.begin()
            self._rows, self._refused = None, ""
            from flightline.store import sqlite  # noqa: F401  # broken: told before a node is touched

            os.environ[WATCHING_ENV] = "1"  # tasks run in children of this process and inherit it

    @_guarded
    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Remember the play; its hosts are registered when its node task begins. Refuse an inventory read in part."""
        self._play = play
        if self._preflight:
            inventory = play.get_variable_manager()._inventory
            self._exit.refuse(no_verdict.unread_inventory(exit_status.unread(inventory, IGNORED)))
            if _has_task(play.tasks, MODULE):
                self._exit.state.hosts, self._exit.state.patterns = len(self._names()), list(play.hosts)

    @_guarded
    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Open the run before the first node is touched."""
        if self._preflight and _action(task) == MODULE and self._rows is None:
            self._open()

    @_guarded
    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Tell who follows the run."""
        if self._rows and _action(task) == MODULE:
            from flightline.run import live

            live.say(live.BEGUN, host.get_name())

    @_guarded
    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep a node's record, or what validation found out about the hosts."""
        if not self._preflight:
            return
        action = _action(result.task)
        if action == VALIDATE:
            self._validated = dict(result.result)
        elif action == MODULE and self._rows:
            self._keep(result.host.get_name(), result.result)

    @_guarded
    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Keep a module that broke as UNKNOWN; remember that validation refused."""
        if not self._preflight:
            return
        action = _action(result.task)
        if action == MODULE:
            self._broken(result.host.get_name(), _why(result.result))
        elif not ignore_errors and self._rows is None:
            self._refused = _why(result.result)

    @_guarded
    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Keep an unreachable host with the connection's message."""
        if self._preflight and _action(result.task) == MODULE and self._rows:
            from flightline.store.rows import unreachable_record

            host = self._host(result.host.get_name())
            self._put(unreachable_record(host, str(result.result.get("msg", ""))))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Judge, report, print the summary, and on no-go leave with its status.

        SystemExit, because ansible-playbook itself would end with 0 for a no-go (a bad node is an answer, not
        a failed task), 2 for failed and 4 for unreachable hosts. On go it goes on: another playbook may follow.
        """
        if not self._preflight:
            return
        status = exit_status.CANNOT_RUN
        try:
            if self._rows is not None:
                status = self._conclude(self._rows)
        except Exception as error:
            self.broke(error)
        if self._exit.why:
            status = exit_status.CANNOT_RUN
        if self._exit.why or not (self._refused or self._rows):
            self._exit.say()
        self._exit.status = status
        if status:
            sys.exit(status)

    def _open(self) -> None:
        from flightline.store import sqlite as store
        from flightline.store.rows import absent_record
        from flightline.store.run_rows import RunRows

        self._exit.run_id = os.environ.get(store.RUN_ID_ENV) or store.new_run_id()
        known = self._validated.get("hosts") or {}
        self._hosts = {name: store.ExpectedHost(name, **known.get(name, {})) for name in self._names()}
        absent = {
            store.ExpectedHost(one["host"], one["instance_type"]): one for one in self._validated.get("absent") or ()
        }
        run = store.Run(
            self._exit.run_id,
            store.now_stamp(),
            str(self._validated.get("level") or "quick"),
            self._inventory(),
            (*self._hosts.values(), *absent),
        )
        self._rows = RunRows(store.default_path(), run)
        self._rows.open()
        for host, one in absent.items():
            self._put(absent_record(host, one["message"]))
        ends_at = self._validated.get("ends_at")
        if ends_at and self.get_option("summary") == "on":
            by = time.strftime("%H:%M:%S", time.localtime(ends_at))
            _say(self._display.display, f"run {run.run_id}: {len(self._hosts)} hosts, ends at {by} at the latest")

    def _names(self) -> list[str]:
        """Every host the play selects under --limit, whatever batch or failure it is in."""
        if self._play is None:
            return []
        inventory = self._play.get_variable_manager()._inventory
        return [host.get_name() for host in inventory.get_hosts(self._play.hosts, ignore_restrictions=True)]

    def _inventory(self) -> str:
        if self._play is None:
            return ""
        return ", ".join(self._play.get_variable_manager()._inventory._sources)

    def _host(self, name: str) -> ExpectedHost:
        from flightline.store.sqlite import ExpectedHost

        return self._hosts.get(name) or ExpectedHost(name)

    def _identity(self, name: str, record: dict[str, Any]) -> dict[str, str]:
        """The inventory's name is the row's key, whatever the node calls itself."""
        return {"host": name, "instance_id": str(record.get("instance_id") or self._host(name).instance_id)}

    def _keep(self, name: str, answer: dict[str, Any]) -> None:
        """The action plugin has let the record through the gate; without it, none is taken."""
        from flightline.record.intake import NOT_LET_THROUGH, let_through

        record = let_through(answer.get("record"))
        if not (self._rows and record):
            self._broken(name, NOT_LET_THROUGH)
            return
        self._put({**record, **self._identity(name, record)})
        if answer.get("bundle_refused"):
            _say(self._display.warning, f"{name}: {answer['bundle_refused']}")
        if answer.get("bundle"):
            from flightline.store.bundles import keep

            encoded = answer["bundle"]
            why = keep(self._rows.path, self._rows.run.run_id, name, str(encoded))
            if why:
                _say(self._display.warning, why)

    def _broken(self, name: str, why: str) -> None:
        if self._rows:
            from flightline.store.rows import broken_record

            self._put(broken_record(self._host(name), why))

    def _put(self, record: dict[str, Any]) -> None:
        """Keep a row, then tell who follows the run: what was told is kept."""
        from flightline.run import live

        if self._rows:
            self._rows.put(record)
            live.answered(record)

    def _conclude(self, rows: RunRows) -> int:
        from flightline.run import conclude

        rows.close()
        from flightline.console import EXIT_GO, Console

        if self.get_option("summary") == "off":
            return EXIT_GO

        run = rows.run
        outcome = conclude.conclude(rows, conclude.report_dir(rows.path, run.run_id), broken=self._exit.why)
        outcome.broken = ""  # said once, at the end
        conclude.publish(outcome, rows.path, self._validated.get("publish"))
        try:
            conclude.show(outcome, Console())
        except Exception as error:  # a terminal that is gone changes no verdict
            with suppress(OSError, ValueError, AttributeError):
                verdict = outcome.report.verdict
                sys.stderr.write(f"flightline: run {run.run_id} is {verdict}, and could not be shown: {error}\n")
        return outcome.exit_status


def _why(result: Any) -> str:
    texts = [str(result.get(key) or "") for key in ("msg", "module_stderr", "exception")]
    return next((text for text in texts if text), "no message")
