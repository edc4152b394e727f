"""Why an ansible-playbook has no verdict, in one sentence, and what is refused before it begins.

Pure, but that it looks at the files of a limit and an inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = "no verdict: "
FILE_ENV = "FLIGHTLINE_NO_VERDICT"
"""A file that takes the sentence as well."""
NODE_TASK = "Probe and judge the node"
ONLY_READS = {
    "listhosts": "--list-hosts",
    "listtasks": "--list-tasks",
    "listtags": "--list-tags",
    "syntax": "--syntax-check",
}
"""What ansible-playbook is asked for in place of a run, by its option's name in context.CLIARGS."""


@dataclass
class PlaybookState:
    """How far a playbook came. options: context.CLIARGS. hosts: those of the play that judges, once it began.

    patterns: what that play takes of the inventory.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    began: bool = False
    hosts: int | None = None
    patterns: list[str] = field(default_factory=list)


def empty_limit(limit: str | None) -> str:
    """Why a --limit cannot be meant, or "": Ansible takes one that names nobody as none, and judges every node."""
    if limit is None or any(_names(limit)):
        return ""
    return (
        f"saw --limit {limit!r}, which names no host; wanted hosts, or no --limit; do: look for an unset variable in it"
    )


def _names(limit: str) -> Iterable[str]:
    for part in (text.strip(" :&!") for text in limit.split(",")):
        if not part.startswith("@"):
            yield part
        elif not Path(part[1:]).is_file():
            yield part  # Ansible's own error
        else:
            yield from (
                line.strip() for line in Path(part[1:]).read_text(encoding="utf-8", errors="replace").split("\n")
            )


def missing(source: str) -> bool:
    """Is an inventory's source neither a list of hosts nor a path that is there?"""
    return "," not in source and not Path(source).exists()


def no_inventory(source: str) -> str:
    """The sentence for one that is missing."""
    wanted = "a file, a directory, or a list of hosts with a comma (host,)"
    return f"saw no inventory {source}; wanted {wanted}; do: correct -i"


def unread_inventory(unread: list[str]) -> str:
    """The sentence for sources that Ansible only warned of, or ""."""
    gone = [source for source in unread if missing(source)]
    if gone:
        return no_inventory(gone[0])
    if unread:
        return (
            f"saw that Ansible cannot read {', '.join(unread)} of the inventory; wanted all of it, because who is not "
            "listed is not judged; do: correct it, or leave it out"
        )
    return ""


def only_reads(options: Mapping[str, Any]) -> str:
    """The sentence for an ansible-playbook that is not asked to run, or ""."""
    seen = [text for name, text in ONLY_READS.items() if options.get(name)]
    if not seen:
        return ""
    return f"nothing was judged: saw {' '.join(seen)}, with which Ansible only reads; wanted a run; do: leave it out"


def why(state: PlaybookState) -> str:
    """The sentence for a run in which no node was asked."""
    options = state.options
    if not state.began:
        return _gave_up(options.get("subset"))
    if state.hosts == 0:
        limit = [f"--limit {options['subset']}"] if options.get("subset") else []
        chosen = [*(name for name in state.patterns if name != "all"), *limit]
        by = f" by {' and '.join(chosen)}" if chosen else ""
        return f"saw no host in {_sources(options)}{by}; wanted the nodes to judge; do: correct -i, or what it lists"
    chosen = list(_chosen(options))
    if chosen:
        return (
            f"saw {', '.join(chosen)}, by which no node was asked; wanted the task {NODE_TASK!r} to run; "
            f"do: leave {chosen[0].split()[0]} out"
        )
    return _gave_up(None) if state.hosts is None else "the playbook ended before one was reached"


def _gave_up(limit: str | None) -> str:
    if limit is None:
        return "saw that Ansible gave up before the first task; wanted a start; do: correct what its error names"
    return (
        f"saw that Ansible gave up before the first task, with --limit {limit}; wanted a limit that names hosts of the "
        "inventory; do: correct it, or what Ansible's error names"
    )


def _sources(options: Mapping[str, Any]) -> str:
    return ", ".join(map(str, options.get("inventory") or ())) or "the inventory"


def _chosen(options: Mapping[str, Any]) -> Iterable[str]:
    """Options by which tasks are left out."""
    tags = [tag for tag in options.get("tags") or () if tag != "all"]
    if tags:
        yield f"--tags {','.join(tags)}"
    if options.get("skip_tags"):
        yield f"--skip-tags {','.join(options['skip_tags'])}"
    if options.get("start_at_task"):
        yield f"--start-at-task {options['start_at_task']}"
    if options.get("step"):
        yield "--step"
