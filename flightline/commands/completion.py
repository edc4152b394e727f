"""`flightline completion`: the Tab key in bash, zsh and fish."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import options

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=options.Command,
    example='eval "$(flightline completion bash)"    # in ~/.bashrc; zsh alike in ~/.zshrc\n'
    "flightline completion fish > ~/.config/fish/completions/flightline.fish",
    epilog="Exit status: 0, 2 for a shell that is none of these.",
)
@click.argument("shell", type=options.Choice(SHELLS), metavar="|".join(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what teaches a shell the Tab key: commands, options, runs, hosts of the last run, checks."""
    made = get_completion_class(shell)
    assert made is not None, "click knows these three"
    click.echo(made(context.find_root().command, {}, "flightline", "_FLIGHTLINE_COMPLETE").source())
