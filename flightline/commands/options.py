"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Literal

import click
from rich.table import Table

from flightline_node.model import LEVELS, SettingsError
from flightline_node.suggest import meant

from ..console import reader_may_leave
from ..run import no_verdict
from ..store.sqlite import default_path, is_aws
from . import completing


class Command(click.Command):
    """A command whose help ends with an example, printed as it is."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def invoke(self, ctx: click.Context) -> Any:
        """Click would end with status 1, a no-go, when the reader of the output goes away."""
        with reader_may_leave():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Example first, then the exit status."""
        formatter.write("\nExample:\n" + "".join(f"  {line}\n" for line in self.example.splitlines()))
        super().format_epilog(ctx, formatter)


class LateHelp(click.Option):
    """An option whose help is made when somebody asks for it: what it loads costs no other command."""

    def __init__(self, *args: Any, help: Callable[[], str], **kwargs: Any) -> None:  # click's own name
        super().__init__(*args, **kwargs)
        self.says = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Click's own, with the help."""
        self.help = self.says()
        return super().get_help_record(ctx)


class Choice(click.Choice[str]):
    """A choice that guesses what a misspelt word was meant to be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Click's own, with the guess."""
        if value not in self.choices:
            self.fail(f"{value!r} is not one of {', '.join(self.choices)}{meant(value, self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


def _limit(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    why = no_verdict.empty_limit(value)
    if why:
        raise click.UsageError(why)
    return value or ""


limit = click.option(
    "--limit",
    metavar="PATTERN",
    callback=_limit,
    help="Only these hosts of the inventory.",
    shell_complete=completing.hosts,
)


def checks(command: Callable[..., Any]) -> Callable[..., Any]:
    """--check and --skip."""
    offer: dict[str, Any] = {"metavar": "ID", "multiple": True, "shell_complete": completing.check_ids}
    skip = click.option("--skip", help="Leave out this check or tag; repeatable.", **offer)
    return click.option("--check", "select", help="Only this check or tag; repeatable.", **offer)(skip(command))


level = click.option("--level", type=Choice(LEVELS), help="How much to measure or judge.", metavar="|".join(LEVELS))
store = click.option(
    "--store",
    "store_path",
    metavar="FILE|aws[:TABLE]",
    help="Run store; default FLIGHTLINE_STORE, else .flightline/runs.sqlite here.",
)
publish = click.option(
    "--publish",
    "publish_pairs",
    metavar="K=V",
    multiple=True,
    help="Publish to AWS and people, on top of FLIGHTLINE_PUBLISH: table=, topic=, pagerduty=, ...; repeatable.",
)


def print_json(value: Any) -> None:
    """Print a document for scripts."""
    click.echo(json.dumps(value, indent=1, default=str))


def table(*headings: str, right: Collection[str] = (), whole: Collection[str] = ()) -> Table:
    """A plain table. right: columns of figures; whole: those that are never folded."""
    made = Table(box=None, pad_edge=False)
    for heading in headings:
        side: Literal["right", "left"] = "right" if heading in right else "left"
        made.add_column(heading, overflow="fold", no_wrap=heading in whole, justify=side)
    return made


def store_file(given: str | None) -> Path:
    """The run store's file: as given, else the default. Raises SettingsError for a store that is no file."""
    if given and is_aws(given):
        raise SettingsError(
            f"saw --store {given}, wanted a file: results are kept in a file first; do: add --publish table=... for AWS"
        )
    return Path(given).expanduser().absolute() if given else default_path()


def publishing(items: Iterable[str]) -> Any:
    """What --publish and FLIGHTLINE_PUBLISH say together, checked; empty when they say nothing."""
    from ..cloud import publish_settings

    given = publish_settings.from_environment()
    named: dict[str, Any] = dict(pairs(items, "--publish"))
    if named:
        given = {
            **(given if isinstance(given, dict) else {"table": publish_settings.DEFAULT_TABLE} if given else {}),
            **named,
        }
    publish_settings.publish(given)
    return given


def pairs(items: Iterable[str], option: str) -> dict[str, str]:
    """["a=1", "b=2"] as a mapping. Raises SettingsError for an item without a name or a value."""
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not (name.strip() and equals):
            raise SettingsError(f"saw {option} {item!r}, wanted NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
