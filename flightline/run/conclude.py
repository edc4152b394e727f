"""End a run: judge it, write its report, print the summary. Callback and command line both end here."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from flightline_node.model import SettingsError, Verdict

from .. import report as reports
from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, reader_may_leave
from ..fleet.judgement import judge_run
from ..fleet.proofs import ages
from ..fleet.result import Report
from ..report import html, jsonfile, junit
from ..report.terminal import print_summary
from ..store.atomic import draft_of
from ..store.run_rows import RunRows
from ..store.sqlite import Record, StoreError, default_path, now_stamp
from .places import is_special

PUBLISH_ENV = "FLIGHTLINE_PUBLISH"
FORMATS = ("json", "junit", "html")


@dataclass
class Conclusion:
    """What a run came to. links: report files. troubles: what could not be kept or told; notes: what was published.

    store: where the run can be looked up again; None when no file has all of it.
    broken: why the run did not end in order, whatever was measured; then it has no verdict.
    """

    report: Report
    store: Path | None = None
    links: dict[str, Path] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    broken: str = ""

    @property
    def exit_status(self) -> int:
        """0 go, 1 no-go, 2 when it did not end in order."""
        if self.broken:
            return EXIT_BROKEN
        return EXIT_GO if self.report.verdict is Verdict.GO else EXIT_NO_GO


def own_report_dir(store_path: Path, run_id: str) -> Path:
    """The directory beside the store in which a run's report is unless another was chosen."""
    return store_path.parent / "reports" / run_id


def conclude(
    rows: RunRows, report_dir: Path | None = None, json_path: Path | None = None, broken: str = ""
) -> Conclusion:
    """Judge a run, close it in the store and write its report.

    report_dir: None for beside the store. json_path: a second place for the JSON report. broken: why the run did not
    end in order, which is no go whatever was measured. Never raises for a store or a directory that cannot be used:
    what could not be kept is in the outcome's troubles.
    """
    troubles = rows.settle()
    try:
        store = rows.read()
        # What came after the nodes were given up is judged when the run is looked at again.
        report = judge_run(store, rows.run.run_id, late=False)
        with suppress(StoreError):
            report.incidents = store.incidents()
            report.proofs = ages(store, report)
        if broken:
            report.verdict = Verdict.NO_GO
        finished = now_stamp()
        report.run = replace(report.run, finished_at=report.run.finished_at or finished)
        try:
            store.finish(rows.run.run_id, finished, str(report.verdict))
        except StoreError as error:
            troubles.append(str(error))
        outcome = Conclusion(report, rows.store, {}, troubles, broken=broken)
        _write(outcome, rows, report_dir or own_report_dir(rows.path, rows.run.run_id), json_path)
        return outcome
    finally:
        rows.close()


def publish(outcome: Conclusion, path: Path, given: Any) -> None:
    """Send a concluded run where the inventory says, else FLIGHTLINE_PUBLISH; what fails is in the outcome's troubles.

    The verdict stands whatever comes of it.
    """
    if not given and not os.environ.get(PUBLISH_ENV):
        return
    from ..cloud import publish as publisher
    from ..cloud import publish_settings

    run_id = outcome.report.run.id
    try:
        wanted = publish_settings.publish(given or publish_settings.from_environment())
        if wanted:
            done = publisher.publish_run(path, run_id, wanted)
            outcome.notes += done.notes
            outcome.troubles += done.troubles
    except SettingsError as error:
        outcome.troubles.append(f"nothing was published: {error}")
    except KeyboardInterrupt:
        outcome.troubles.append("publishing was interrupted; go on with: flightline publish")
    except Exception as error:  # an error of ours must not cost the verdict, which is printed after this
        text = f"run {run_id} was not published: internal error: {type(error).__name__}: {error}"
        outcome.troubles.append(f"{text}; try again with: flightline publish {run_id}")


def _write(outcome: Conclusion, rows: RunRows, directory: Path, json_path: Path | None) -> None:
    run_id, beside = rows.run.run_id, rows.path.parent

    def records() -> Iterator[Record]:
        return rows.read().records(run_id)

    try:
        # Of the folders that were named the last one alone is made: the report's, or the store's when it lies in that.
        (beside if directory.is_relative_to(beside) else directory).mkdir(exist_ok=True)
        outcome.links = reports.write_all(outcome.report, records, directory)
    except (OSError, StoreError) as error:
        where = f"in the store: flightline report {run_id}" if outcome.store else "only in this summary"
        outcome.troubles.append(f"{directory}: the report could not be written ({error}); the results are {where}")
    if json_path:
        try:
            with reader_may_leave():
                write_one("json", outcome.report, records, json_path)
        except (OSError, StoreError) as error:
            outcome.troubles.append(f"{json_path}: the JSON report could not be written ({error})")


def show(outcome: Conclusion, console: Console) -> None:
    """Print the summary, and what could not be kept before it: the verdict comes last."""
    for note in outcome.notes:
        console.print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    for trouble in outcome.troubles:
        console.print(f"warning: {trouble}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    print_summary(outcome.report, console, outcome.links, look_back(outcome.store))
    if outcome.broken:
        said = f"flightline: run {outcome.report.run.id} has no verdict: {outcome.broken}"
        console.print(said, style="red", markup=False, highlight=False, soft_wrap=True)


def look_back(store: Path | str | None) -> str | None:
    """What a command needs to find the store: nothing for the default one; None when there is no store to look in."""
    if store is None:
        return None
    return "" if store == default_path() else f" --store {shlex.quote(str(store))}"


def write_one(kind: str, report: Report, records: reports.Records, path: Path) -> None:
    """Write one format of a report; "-" is standard output. Raises OSError."""

    def write(stream: IO[str]) -> None:
        if kind == "json":
            jsonfile.write(report, records(), stream)
        elif kind == "junit":
            junit.write(report, stream)
        else:
            html.write(report, stream, {})

    if str(path) == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # what the formats promise, whatever the terminal speaks
        write(sys.stdout)
        return
    if is_special(path):
        with reports.opened(path, path.suffix == ".gz") as stream:
            write(stream)
        return
    path.parent.mkdir(exist_ok=True)
    with draft_of(path) as draft, reports.opened(draft, path.suffix == ".gz") as stream:
        write(stream)
