"""What an earlier command left of a stack: a lock, operations that nobody knows the end of; and the way out of both.

Read by what Pulumi offers programs: the state's `pending_operations`, the lock files of a `file://` backend
(pulumi/pkg/backend/diy/lock.go), `updateInProgress` of Pulumi's service. Its sentences are matched nowhere.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from flightline.console import EXIT_BROKEN, EXIT_GO
from infra import describe


@dataclass(frozen=True)
class Lock:
    """Who holds a stack. pid 0: not told."""

    who: str
    host: str = ""
    pid: int = 0
    since: str = ""

    @property
    def runs(self) -> bool | None:
        """Whether its process runs; None where that is another machine's to say."""
        if not self.pid or self.host != socket.gethostname():
            return None
        try:
            os.kill(self.pid, 0)
            # A killed process that nobody has waited for yet still has its number.
            return Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        except ProcessLookupError:
            return False
        except OSError:
            return True

    def sentence(self, stack: str) -> str:
        """What was seen, what was wanted, the way out."""
        since = f" since {self.since}" * bool(self.since)
        process = f", process {self.pid} on {self.host}" * bool(self.pid)
        runs = {True: ", which runs", False: ", which is no more", None: ""}[self.runs]
        wait, recover = "wait for that command to end", f"make recover STACK={stack}"
        do = f"{wait}; if it is no more on {self.host or 'its machine'}: {recover}" if self.runs is None else wait
        do = recover if self.runs is False else do
        return f"saw the stack locked by {self.who}{since}{process}{runs}; wanted it free; do: {do}"


@dataclass(frozen=True)
class Standing:
    """What is left. locks None: not known. pending: (what was being done, name of the resource)."""

    locks: tuple[Lock, ...] | None
    pending: tuple[tuple[str, str], ...]

    def sentences(self, stack: str) -> Iterator[str]:
        """Each with the way out."""
        yield from (lock.sentence(stack) for lock in self.locks or ())
        if self.pending and not self.locks:
            names = ", ".join(f"{doing} {name}" for doing, name in self.pending)
            yield (
                f"saw {len(self.pending)} operations that a command left half done ({names}); wanted their end known: "
                f"AWS may have done them or not; do: make recover STACK={stack}"
            )


class PulumiError(Exception):
    """What was seen of Pulumi and what was wanted."""


def ask(*arguments: str) -> Any:
    """What Pulumi prints as JSON. Raises PulumiError."""
    command = ["pulumi", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        _refuse(command, done.stderr.strip() or f"status {done.returncode}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        _refuse(command, str(error))


def _refuse(command: list[str], said: str) -> NoReturn:
    raise PulumiError(f"saw {said}; wanted an answer to `{' '.join(command)}`; do: what it says, then the same again")


def standing(stack: str) -> Standing:
    """What is left of a stack. Raises PulumiError."""
    pending = (ask("stack", "export", "--stack", stack).get("deployment") or {}).get("pending_operations") or ()
    left = tuple((one["type"], str(one["resource"]["urn"]).rsplit("::", 1)[-1]) for one in pending)
    return Standing(locks(str(ask("whoami", "--json").get("url") or ""), stack), left)


def locks(backend: str, stack: str) -> tuple[Lock, ...] | None:
    """The locks that a backend holds of a stack; None where it is one that is not read here."""
    if backend.startswith("http"):
        mine = [one for one in ask("stack", "ls", "--json") if one["name"].rsplit("/", 1)[-1] == stack]
        return tuple(Lock("somebody") for one in mine if one.get("updateInProgress"))
    if not backend.startswith("file:"):
        return None
    root = Path(backend.removeprefix("file://")).expanduser() / ".pulumi" / "locks"
    folder = root / "organization" / describe.PREFIX[:-1] / stack
    return tuple(_lock(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json")))


def _lock(text: str) -> Lock:
    """A lock file; one that is cut off is a lock all the same."""
    try:
        found = json.loads(text)
        return Lock(found["username"], found["hostname"], int(found["pid"]), str(found["timestamp"])[:19])
    except (ValueError, KeyError, TypeError):
        return Lock("somebody")


def recover(stack: str, yes: bool) -> str:
    """Free a stack of what a dead command left; answers what is to be done after. Raises PulumiError."""
    left = standing(stack)
    if any(lock.runs for lock in left.locks or ()):
        raise PulumiError(next(left.sentences(stack)))
    if left.locks or left.locks is None:
        _run("cancel", "--stack", stack, *["--yes"] * yes)
    if left.pending:
        # Without --yes Pulumi asks of each creation whether to import, clear or skip it.
        _run("refresh", "--stack", stack, *["--yes", "--clear-pending-creates"] * yes)
    for sentence in standing(stack).sentences(stack):
        raise PulumiError(f"{sentence} again and answer its questions; YES=1 forgets creations of unknown end")
    made = ", ".join(name for doing, name in left.pending if doing == "creating")
    if not made:
        return f"nothing is locked and nothing pending; make up STACK={stack} goes on"
    given = describe.values(stack, Path())
    where = f"flightline leftovers {given['clusterName']} --region {given.get('aws:region', '')}"
    stands = f"{made} may stand in AWS and in no state: {where} names it; `pulumi import` takes it in, or delete it"
    return f"nothing is locked and nothing pending. {stands}, before make up STACK={stack}"


def _run(*arguments: str) -> None:
    if subprocess.run(["pulumi", *arguments], check=False).returncode:
        _refuse(["pulumi", *arguments], "what it said above")


@click.command(epilog="Example: python -m infra.standing dev")
@click.argument("stack")
@click.option("--after", "ended", default="", help="The command that has just ended badly.")
@click.option("--recover", "recovers", is_flag=True, help="Free the stack.")
@click.option("--yes", is_flag=True, help="Pulumi's questions are answered already.")
def main(stack: str, ended: str, recovers: bool, yes: bool) -> None:
    """Say what an earlier command left of STACK; ends with 2 when something stands in the way."""
    try:
        if recovers:
            click.echo(f"cluster: {recover(stack, yes)}")
            sys.exit(EXIT_GO)
        found = standing(stack)
    except (PulumiError, OSError, ValueError) as error:
        click.echo(f"cluster: {error}", err=True)
        sys.exit(EXIT_BROKEN)
    said = list(found.sentences(stack))
    if ended and not said:
        named = "" if found.locks is not None else f" (where Pulumi named a lock: make recover STACK={stack})"
        seen = (
            f"{ended} that did not end well, nothing locked and nothing pending"
            if not named
            else f"{ended} that did not end well"
        )
        said = [f"saw {seen}; wanted it whole; do: make {ended} STACK={stack} goes on from what is there{named}"]
    for sentence in said:
        click.echo(f"cluster: {sentence}", err=True)
    sys.exit(EXIT_BROKEN if said else EXIT_GO)


if __name__ == "__main__":
    main()
