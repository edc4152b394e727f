"""How every start of `playbooks/preflight.yml` ends: the rows of the table in docs/preflight.md, and what its tests run.

A sentence stands here as it is printed, with the file names of the tests; what is not printed alike everywhere is left out.
"""

import sys
from dataclasses import dataclass

GO, NO_GO, CANNOT_RUN = 0, 1, 2
NODE_TASK = "Probe and judge the node"


@dataclass(frozen=True)
class Start:
    """One start of ansible-playbook, and how it ends in each place.

    what: as a person would name it. arguments: beside `-i inventory`, the playbook and its verdict. answers: what is
    typed. same: `flightline preflight` takes the same arguments and ends alike.
    """

    what: str
    arguments: tuple[str, ...]
    status: int
    says: str
    inventory: str = "hosts.json"
    environment: tuple[tuple[str, str], ...] = ()
    answers: str = ""
    same: bool = False


def _empty(limit: str) -> str:
    return (
        f"saw --limit {limit!r}, which names no host; wanted hosts, or no --limit; do: look for an unset variable in it"
    )


def _left_out(options: str) -> str:
    return (
        f"saw {options}, by which no node was asked; wanted the task {NODE_TASK!r} to run; "
        f"do: leave {options.split()[0]} out"
    )


def _listed(option: str) -> str:
    return f"nothing was judged: saw {option}, with which Ansible only reads; wanted a run; do: leave it out"


_GO = "GO 2 of 2 nodes go"
_HOSTLESS = "wanted the nodes to judge; do: correct -i, or what it lists"
_UNREAD = (
    "saw that Ansible cannot read {} of the inventory; wanted all of it, because who is not listed is not judged; "
    "do: correct it, or leave it out"
)
_MISSING = "saw no inventory {}; wanted a file, a directory, or a list of hosts with a comma (host,); do: correct -i"
_GAVE_UP = (
    "saw that Ansible gave up before the first task, with --limit {}; wanted a limit that names hosts of the inventory; "
    "do: correct it, or what Ansible's error names"
)
_NO_SUCH = "--limit 'nosuch': no such host or group in the inventory; correct --limit, or the inventory"

STARTS = (
    Start("every node is go", (), GO, _GO, same=True),
    Start("a node is no-go", (), NO_GO, "NO-GO 1 of 2 nodes go", "sick.json", same=True),
    Start("the inventory is missing", (), CANNOT_RUN, _MISSING.format("missing.yml"), "missing.yml", same=True),
    Start("the inventory is empty", (), CANNOT_RUN, f"saw no host in empty.ini; {_HOSTLESS}", "empty.ini", same=True),
    Start("the inventory cannot be parsed", (), CANNOT_RUN, _UNREAD.format("broken.yml"), "broken.yml", same=True),
    Start("a part of the inventory cannot be parsed", ("-i", "broken.yml"), CANNOT_RUN, _UNREAD.format("broken.yml")),
    Start("a file of an inventory's folder cannot be parsed", (), CANNOT_RUN, _UNREAD.format("part/broken.yml"), "part", same=True),
    Start("a limit that matches nothing", ("--limit", "nosuch"), CANNOT_RUN, _GAVE_UP.format("nosuch"), same=True),
    Start("a limit of which a part matches nothing", ("--limit", "a,nosuch"), CANNOT_RUN, _NO_SUCH, same=True),
    Start("a limit whose file is missing", ("--limit", "@no.txt"), CANNOT_RUN, _GAVE_UP.format("@no.txt"), same=True),
    Start("an empty limit", ("--limit", ""), CANNOT_RUN, _empty(""), same=True),
    Start("a limit of a comma", ("--limit", " , "), CANNOT_RUN, _empty(" , "), same=True),
    Start("a limit of two unset variables", ("--limit", ":"), CANNOT_RUN, _empty(":"), same=True),
    Start("a limit whose file is empty", ("--limit", "@empty.ini"), CANNOT_RUN, _empty("@empty.ini"), same=True),
    Start("`flightline_hosts` names nobody", ("-e", "flightline_hosts=nosuch"), CANNOT_RUN,
          f"saw no host in hosts.json by nosuch; {_HOSTLESS}"),
    Start("`flightline_hosts` is empty", ("-e", "flightline_hosts="), CANNOT_RUN,
          "saw that Ansible gave up before the first task; wanted a start; do: correct what its error names"),
    Start("`--tags` without the judgement", ("--tags", "foo"), CANNOT_RUN, _left_out("--tags foo")),
    Start("`--skip-tags` with the judgement", ("--skip-tags", "all"), CANNOT_RUN, _left_out("--skip-tags all")),
    Start("`--skip-tags` of something else", ("--skip-tags", "foo"), GO, _GO),
    Start("`--start-at-task` of the judgement", ("--start-at-task", NODE_TASK), GO, _GO),
    Start("`--start-at-task` of no task", ("--start-at-task", "foo"), CANNOT_RUN, _left_out("--start-at-task foo")),
    Start("`--step`, answered with yes", ("--step",), GO, _GO, answers="y\ny\n"),
    Start("`--step`, answered with no", ("--step",), CANNOT_RUN, _left_out("--step"), answers="y\nn\n"),
    Start("`--step`, nobody answers", ("--step",), CANNOT_RUN, _left_out("--step")),
    Start("`--check`", ("--check",), GO, _GO),
    Start("`--list-hosts`", ("--list-hosts",), GO, _listed("--list-hosts")),
    Start("`--list-tasks`", ("--list-tasks",), GO, _listed("--list-tasks")),
    Start("`--list-tags`", ("--list-tags",), GO, _listed("--list-tags")),
    Start("`--syntax-check`", ("--syntax-check",), GO, _listed("--syntax-check")),
    Start("`ANSIBLE_CONFIG` of one's own", (), GO, _GO, environment=(("ANSIBLE_CONFIG", "own.cfg"),), same=True),
    Start("the callback is not switched on", (), GO, _GO, environment=(("ANSIBLE_CALLBACKS_ENABLED", "timer"),), same=True),
)  # fmt: skip


def table() -> str:
    """The rows as docs/preflight.md shows them: python -m tests.hostile.endings."""
    lines = ["| start | options | status | what is said | `flightline preflight` |", "|---|---|--:|---|---|"]
    for start in STARTS:
        given = [f"{name}={value}" for name, value in start.environment]
        given += [f"-i {start.inventory}"] if start.inventory not in ("hosts.json", "sick.json") else []
        given += [" ".join(word if word.strip(" ,") and " " not in word else repr(word) for word in start.arguments)]
        shown = " ".join(filter(None, given))
        lines.append(
            f"| {start.what} | {f'`{shown}`' if shown else ''} | {start.status} | {start.says} | {'the same' if start.same else ''} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
