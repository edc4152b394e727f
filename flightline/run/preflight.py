"""One preflight from its first word to its verdict, whoever asks the nodes.

Ansible reads the inventory. The launcher asks then, or by the same playbook; and what was measured is judged, also when
the run was interrupted or broke half-way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline_node.model import SettingsError

from ..console import DEBUG_ENV
from ..store import sqlite as stores
from ..store.run_rows import FOLDER_ENV, RunRows
from . import asking, background, late_answers, launchers, playbooks
from . import conclude as ending
from .asking import AskedRun, PreparedRun
from .launchers import Launcher, LaunchError
from .live import RunObserver
from .places import REPORT_ENV, chosen_report_dir
from .play import Play, start, why_not


class CannotRunError(RuntimeError):
    """The preflight itself could not run; the text says why."""


class LauncherWantedError(Exception):
    """The inventory names a launcher (flightline_via): no node was asked yet."""


Together = Callable[[stores.Run, stores.Store, Launcher], "stores.Record | None"]
"""A run, its store and who asked -> the record of what the nodes show together."""


@dataclass(frozen=True)
class Request:
    """What to run. inventory: every source of it. extra: variables for every host, above the inventory's.

    timeout_s: of each host; 0 as they say. report_dir: None for beside the store. together: what tests the nodes
    together once each was judged, and gives a record of it or nothing. publishes: as the inventory or environment says.
    """

    inventory: tuple[str, ...]
    limit: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    store: Path = field(default_factory=stores.default_path)
    report_dir: Path | None = field(default_factory=chosen_report_dir)
    forks: int = 0
    timeout_s: int = 0
    json_path: Path | None = None
    together: Together | None = None
    publishes: bool = True


@dataclass(frozen=True)
class Begun:
    """A run whose inventory was read by the launcher's playbook.

    in_part: of the inventory, so that who was left out is no news. given_up: why the playbook was ended early, or "".
    """

    run_id: str
    inventory: tuple[str, ...]
    in_part: bool
    play: Play
    given_up: str


def run(request: Request, watcher: RunObserver, launcher: Launcher | None = None) -> ending.Conclusion:
    """Run a preflight to its end. launcher: who asks; None as the inventory says.

    Raises CannotRunError when no node was judged because of the tool, SettingsError for what cannot be asked.
    """
    try:
        return _run(request, launcher, watcher)
    except LauncherWantedError as wanted:
        return _run(request, launchers.make(str(wanted)), watcher)


def _run(request: Request, named: Launcher | None, watcher: RunObserver) -> ending.Conclusion:
    launcher = named or launchers.make(launchers.DEFAULT)
    with begin(request, launcher, watcher, is_named=named is not None) as begun:
        asked = _ask(begun, request.store, launcher) if launcher.asks else _was_asked(begun, request.store)
        if request.together and not (asked.broken or asked.interrupted):
            _test_together(request.together, asked.rows, launcher)
        outcome = ending.conclude(asked.rows, request.report_dir, request.json_path, asked.broken)
        outcome.troubles += filter(None, [asked.follow.trouble])
        if request.publishes:
            ending.publish(outcome, asked.rows.path, asked.follow.publish)
        return outcome


@contextmanager
def begin(request: Request, launcher: Launcher, watcher: RunObserver, is_named: bool = True) -> Iterator[Begun]:
    """Play the launcher's playbook to its end; inside, what ends the run without a verdict is a CannotRunError.

    is_named: it asks whatever the inventory says.

    Raises CannotRunError for an inventory that cannot be judged as it is, LauncherWantedError for another's.
    """
    run_id = stores.new_run_id()
    with _explained(run_id), playbooks.workplace("run") as place:
        variables = {
            **request.extra,
            "flightline_timeout_s": request.timeout_s,
            "flightline_calls": launcher.asks,
            **({"flightline_via": launcher.name} if is_named else {"flightline_launches": True}),
        }
        on_reply = _environment(request, run_id, place)
        play = start(launcher.playbook, _arguments(request, variables), on_reply, place, watcher)
        given_up = play.wait()
        if play.follow.via:
            raise LauncherWantedError(play.follow.via)
        if play.follow.refused:
            raise CannotRunError(play.follow.refused)
        yield Begun(run_id, request.inventory, bool(request.limit), play, given_up)


def prepared(begun: Begun, launcher: Launcher) -> PreparedRun:
    """Who is to be asked what.

    Raises CannotRunError where the inventory was not read, SettingsError, LaunchError.
    """
    if begun.given_up:
        raise CannotRunError("interrupted before a node was asked")
    if not begun.play.follow.validated:
        raise CannotRunError(why_not(begun.play, begun.inventory))
    return asking.prepared(begun.run_id, ", ".join(begun.inventory), begun.play.follow, launcher, begun.in_part)


def _ask(begun: Begun, store: Path, launcher: Launcher) -> AskedRun:
    made = prepared(begun, launcher)
    rows = RunRows(store, made.run)
    rows.open()
    for record in made.rows:
        rows.put(record)
    asked = asking.ask(made, rows, begun.play.follow, launcher)
    late_answers.leave_note(rows.path, made.run, [asked.calls[name] for name in sorted(asked.given_up)], launcher)
    return asked


def _was_asked(begun: Begun, store: Path) -> AskedRun:
    """By the playbook itself, whose callback has kept the rows."""
    play = begun.play
    rows = RunRows.find(store, begun.run_id, play.place, create=bool(play.follow.hosts))
    if rows is None:
        raise CannotRunError(why_not(play, begun.inventory))
    broken = "" if begun.given_up else play.broken()
    return AskedRun(rows, play.follow, interrupted=bool(begun.given_up), broken=broken)


def _test_together(together: Together, rows: RunRows, launcher: Launcher) -> None:
    with background.ending_as_interrupt():
        record = together(rows.run, rows.read(), launcher)
        if record is not None:
            rows.put(record)


def _arguments(request: Request, variables: Mapping[str, Any]) -> list[str]:
    found = [part for source in request.inventory for part in ("-i", playbooks.absolute(source))]
    found += ["--forks", str(request.forks)] if request.forks else []
    for name, value in variables.items():
        found += ["-e", json.dumps({name: value})] if value else []
    return found + (["--limit", request.limit] if request.limit else [])


def _environment(request: Request, run_id: str, place: Path) -> dict[str, str]:
    return {
        "FLIGHTLINE_SUMMARY": "off",
        stores.RUN_ID_ENV: run_id,
        stores.STORE_ENV: str(request.store),
        # From where the user stands, because Ansible runs where the playbooks are.
        **({REPORT_ENV: str(request.report_dir)} if request.report_dir else {}),
        FOLDER_ENV: str(place),
    }


@contextmanager
def _explained(run_id: str) -> Iterator[None]:
    """Raises CannotRunError for what ends a run without a verdict."""
    look = f"run {run_id} has no verdict; what was measured: flightline report {run_id}"
    try:
        yield
    except (CannotRunError, LauncherWantedError, SettingsError):
        raise
    except (LaunchError, stores.StoreError) as error:
        raise CannotRunError(str(error)) from error
    except KeyboardInterrupt:
        raise CannotRunError(f"interrupted before the end; {look}") from None
    except Exception as error:
        if os.environ.get(DEBUG_ENV):
            raise
        text = f"internal error: {type(error).__name__}: {error} ({DEBUG_ENV}=1 shows where)"
        raise CannotRunError(f"{text}; {look}") from error
