"""The `flightline` command: one module per command, imported when it is used."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from flightline_node.model import SettingsError
from flightline_node.suggest import meant

from .console import DEBUG_ENV, EXIT_BROKEN, forgive_encoding, reader_may_leave
from .store.sqlite import StoreError

GROUPS: dict[str, dict[str, str]] = {
    "Judge": {
        "preflight": "Judge a fleet: live progress, verdict, report.",
        "judge": "Judge a bundle of tool outputs offline.",
        "collect": "Run the probes of this machine into a bundle.",
        "fabric": "Run a collective over all nodes and name who is slow.",
        "baseline": "Learn what known-good nodes reach, and judge by it.",
        "checks": "List the checks, or explain one.",
    },
    "Look back": {
        "report": "Show a run again, or write its report elsewhere.",
        "runs": "List the runs, newest first.",
        "diff": "Compare two runs: new, gone, still there.",
        "history": "Show what a node, instance or GPU answered before.",
        "waivers": "List waivers: expired, soon to expire, active.",
    },
    "Heal": {
        "watch": "Watch this machine as a node, or end its quarantine.",
        "remediate": "Say what to do about sick nodes, and do it.",
        "incidents": "Show sick nodes from detection to return.",
        "publish": "Send results and alerts that wait to AWS and the channels.",
    },
    "Train": {
        "train": "Run what torchrun starts, watched, and again after faults.",
        "blame": "Name the rank, GPU and node that a training run failed by.",
    },
    "Cluster": {
        "adopt": "Put the gate and the watcher behind the cluster that is here.",
        "ready": "Ask the account whether a stack can start.",
        "kube": "Write the manifests of a cluster on Kubernetes.",
        "leftovers": "List what of a cluster still costs, and remove it.",
    },
    "Money": {
        "cost": "Say what a stack costs.",
        "capacity": "Rank where nodes of a type are to be had.",
    },
    "Set up": {
        "demo": "Write a simulated inventory, or list its faults.",
        "completion": "Teach bash, zsh or fish the Tab key.",
    },
}
"""Commands by what a person wants, in the order of use."""

COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}

ELSEWHERE = {"cost": "infra.cost", "leftovers": "infra.leftovers", "ready": "infra.ready"}
"""Commands that live with the Pulumi program, because they read a stack's settings."""


class Commands(click.Group):
    """Finds a command in flightline.commands.<name> when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's click object."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"No such command {cmd_name!r}{meant(cmd_name, COMMANDS)}.")
        module = importlib.import_module(ELSEWHERE.get(cmd_name, f"{__package__}.commands.{cmd_name}"))
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help without importing every command."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The Tab key, without importing every command."""
        return [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: flightline preflight -i inventory/aws_ec2.yml --level standard. "
    "Exit status: 0 go, 1 no-go, 2 the tool itself could not run.",
)
@click.version_option(package_name="flightline")
def cli() -> None:
    """Clear GPU nodes for training: go or no-go, with a reason for every node."""


def main() -> None:
    """Entry point: every error ends in one sentence and status 2, never in a traceback."""
    forgive_encoding()
    sys.exit(run(lambda: cli.main(standalone_mode=False)))


def run(command: Callable[[], Any]) -> int:
    """Call a command; its exit status. Click returns what ctx.exit() was given."""
    try:
        status = command()
        with reader_may_leave():
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
    except click.Abort:
        click.echo("flightline: interrupted", err=True)
    except (SettingsError, StoreError) as error:
        click.echo(f"flightline: {error}", err=True)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"flightline: {where}{error.strerror or error}", err=True)
    except Exception as error:
        if os.environ.get(DEBUG_ENV):
            traceback.print_exc()
        message = f"internal error: {type(error).__name__}: {error} ({DEBUG_ENV}=1 shows where)"
        click.echo(f"flightline: {message}", err=True)
    return EXIT_BROKEN
