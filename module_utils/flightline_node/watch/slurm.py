"""Take a node out of Slurm, and only what is ours to take: scontrol(1), `show node` and `update`.

A reason that is a claim (claim.py) is ours. Every other reason of a drained node is somebody else's and stays as it is.
Marks of the rule (rule.py) stand in a node's Extra, a text that Slurm has had since 21.08 and does nothing with by
itself. A site's own Extra stays: there a node has no mark that others see, and two at once may both leave.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Callable, Collection, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from . import claim, rule
from .rule import HELD, NONE, OUT, TOLD, Row, RulePolicy
from .tool import Said, run

DRAINED, PENDING, ABSENT, FOREIGN, SUSPECT = "drained", "pending", "absent", "foreign", "suspect"
DEADLINE_S = 10.0
"""For each call. scontrol waits MessageTimeout (10 s, slurm.conf(5)) for a controller that does not answer."""
LISTED_BYTES = 32 << 20
"""Of 10,000 nodes, some 800 each, and more. A list that was cut off is no answer."""
LOST = frozenset({"Not responding", "Node unexpectedly rebooted"})
"""Reasons that slurmctld itself writes beside a DOWN node that it lost. Source: Slurm 22.05, slurmctld/node_mgr.c."""
CONFIGURATION = "etc/slurm/slurm.conf"
CONFIGURATIONS = (f"/{CONFIGURATION}", "/etc/slurm-llnl/slurm.conf", "/opt/slurm/etc/slurm.conf", "/run/slurm/conf")
"""The last is a node's whose controller hands it out. Source: slurm.conf(5), configless Slurm."""
GONE = frozenset({"DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "ERROR", "FUTURE"})
"""States of a node that takes no new jobs."""
POLICY = RulePolicy()
SERVE, DRAIN = "serve", "drain"
"""What a suspect does: it stays in service, or takes no new jobs either."""
_FIELD = re.compile(r"(?:^|\s)(NodeName|NodeHostName|NodeAddr|State|ReservationName|Partitions|Gres|CPUTot|Port)=(\S*)")
_REASON = re.compile(r"\sReason=(?:(.*) \[[^\[\]@]*@([^\[\]]*)\]|(.*?)(?=\s\w+=|$))")
"""Its end is who set it and when; without that the next field, because a reason may have any character."""
_EXTRA = re.compile(r"\sExtra=(.*?)(?=\sInstance(?:Id|Type)=|$)")
"""The last field; from 25.05 on the instance's come after it. Source: Slurm, src/api/node_info.c."""

_SHOWN = re.compile(r"^\s*Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?\s*$", re.MULTILINE)
_STATE = re.compile(r"\bState=(\S+)")


class SlurmNode(NamedTuple):
    """A line of `scontrol -o show node`. since: when the reason was set, as printed. kind: nodes alike are a group."""

    name: str
    names: Tuple[str, ...]
    states: FrozenSet[str]
    reason: str
    since: str
    reservation: str
    silent: bool
    extra: str
    kind: Tuple[str, str]
    partitions: FrozenSet[str] = frozenset()
    port: str = "6818"
    """slurmd's; shown where it is not the default. Source: Slurm, slurm.conf(5), SlurmdPort."""

    @property
    def out(self) -> bool:
        """Does it take no new jobs?"""
        return bool(self.states & GONE)


class DrainResult(NamedTuple):
    """What became of a drain: state and, for a person, why. says: what it has to say of all that are suspects."""

    state: str
    reason: str
    says: str = ""


class AwayError(Exception):
    """Slurm gave no answer that can be used: nothing is decided, and it is worth another try."""


class SettledError(Exception):
    """There is nothing to decide: the node is out already."""


def is_there(path: str, root: str = "/") -> bool:
    """Does this node belong to a Slurm cluster? By its tool or its configuration: one alone may be broken."""
    return shutil.which("scontrol", path=path) is not None or Path(root, CONFIGURATION).exists()


def configured(environment: Mapping[str, str]) -> bool:
    """Is there a cluster that Slurm's commands would ask? Without a configuration they ask nobody."""
    return bool(environment.get("SLURM_CONF")) or any(Path(path).exists() for path in CONFIGURATIONS)


def listed(text: str) -> List[SlurmNode]:
    """The nodes of `scontrol -o show node`."""
    found = []
    for line in text.splitlines():
        values: Dict[str, str] = {}
        for name, value in _FIELD.findall(line.partition(" Reason=")[0]):
            values.setdefault(name, value)
        if "NodeName" not in values:
            continue
        state = values.get("State", "UNKNOWN").upper()
        reason, extra = _REASON.search(line.partition(" Extra=")[0]), _EXTRA.search(line)
        found.append(
            SlurmNode(
                values["NodeName"],
                (values["NodeName"], values.get("NodeHostName", ""), values.get("NodeAddr", "")),
                frozenset(re.split(r"[+*~#!%$@^-]+", state)) - {""},
                (reason.group(1) or reason.group(3) or "").strip() if reason else "",
                (reason.group(2) or "") if reason else "",
                values.get("ReservationName", ""),
                "*" in state or "NOT_RESPONDING" in state,
                extra.group(1).strip() if extra else "",
                (values.get("Gres", "").partition("(S:")[0], values.get("CPUTot", "")),
                frozenset(values.get("Partitions", "").split(",")),
                values.get("Port", "6818"),
            )
        )
    return found


def named(nodes: Sequence[SlurmNode], hosts: Collection[str]) -> Dict[str, SlurmNode]:
    """Host -> node: by its name, else by its host name or address where only one node has it."""
    wanted = set(hosts)
    found: Dict[str, SlurmNode] = {}
    for place in range(3):
        given: Dict[str, List[SlurmNode]] = {}
        for node in nodes:
            given.setdefault(node.names[place], []).append(node)
        for name in wanted - found.keys():
            if len(given.get(name, ())) == 1:
                found[name] = given[name][0]
    return found


def asking(path: str, deadline_s: float = DEADLINE_S) -> Callable[[Sequence[str]], str]:
    """How this node asks: the answer of a tool. Raises AwayError, OSError."""

    def ask(argv: Sequence[str]) -> str:
        answer = run(argv, path, deadline_s, LISTED_BYTES)
        if answer.status != 0 or len(answer.text) >= LISTED_BYTES:
            raise AwayError(_not_done(" ".join(argv[:3]), answer))
        return answer.text

    return ask


class SlurmMarks:
    """A node's mark, and those of the nodes like it, for a claim's reason. ask: runs scontrol, gives its answer."""

    def __init__(self, node: str, wanted: claim.Claim, ask: Callable[[Sequence[str]], str]) -> None:
        self.me, self.wanted, self._ask = node, wanted, ask
        self._alone: List[str] = []
        """The mark that only this process knows of, where the site has an Extra of its own."""

    def rows(self) -> Tuple[List[Row], int]:
        """One call. Raises SettledError for a node that is out."""
        nodes = listed(self._ask(["scontrol", "-o", "show", "node"]))
        own = named(nodes, [self.me]).get(self.me)
        if own is None:
            raise AwayError(f"scontrol show node: no node {self.me} among {len(nodes)}")
        self.me, ours = own.name, claim.read(own.reason)
        if "DRAIN" in own.states and not (ours and ours.mark and ours.reason == self.wanted.reason):
            raise SettledError(DRAINED if ours else FOREIGN, own.reason)
        group = [node for node in nodes if node.kind == own.kind]
        rows = [Row(node.name, mark, age_s) for node in group for mark, age_s in [self._mark_of(node)] if mark]
        if own.extra and not claim.read(own.extra) and not own.out:
            self._alone = self._alone or [NONE]
            rows = [row for row in rows if row.node != self.me] + [Row(self.me, self._alone[0])]
        return rows, len(group)

    def _mark_of(self, node: SlurmNode) -> Tuple[str, float]:
        ours = claim.read(node.reason) if node.out else None
        if ours:
            return (ours.mark or OUT, _age_s(node.since)) if ours.reason == self.wanted.reason else (NONE, 0.0)
        there = claim.read(node.extra)
        # What somebody else took out, or was lost, is not on its way; this node may be, while Slurm thinks it is lost.
        on_its_way = there and there.reason == self.wanted.reason and (not node.out or node.name == self.me)
        return (there.mark, 0.0) if there and on_its_way else (NONE, 0.0)

    def mark(self, mark: str) -> None:
        """Set this node's."""
        if self._alone:
            self._alone[0] = mark
            return
        text = self.wanted._replace(mark=mark).text if mark else ""
        self._ask(["scontrol", "update", f"NodeName={self.me}", f"Extra={text}"])

    def drain(self, mark: str = NONE) -> None:
        """Drain it. Only what the controller itself now says counts: a request may be taken and not carried out."""
        extra = [] if self._alone or mark else ["Extra="]
        reason = f"Reason={self.wanted._replace(mark=mark).text}"
        self._ask(["scontrol", "update", f"NodeName={self.me}", "State=DRAIN", reason, *extra])
        state = parsed(self._ask(["scontrol", "show", "node", self.me]))["state"]
        if state and "DRAIN" not in state:
            raise AwayError(f"scontrol update was taken, and the node is {state[:80]}")


def _age_s(since: str) -> float:
    """Seconds since a stamp of Slurm's, this machine's time; 0 for what cannot be read, which is recent."""
    try:
        return time.time() - time.mktime(time.strptime(since, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return 0.0


def drain(
    node: str,
    reason: str,
    ask: Callable[[Sequence[str]], str],
    policy: RulePolicy = POLICY,
    suspects: str = SERVE,
    sleep: Callable[[float], object] = time.sleep,
    again: bool = False,
    eager: bool = False,
) -> DrainResult:
    """Take a node out by the rule, unless it is out already. again: it was a suspect, and may tell of all of them.

    PENDING says why nothing could be decided now: then nothing is changed either. While Slurm does not answer it starts
    no job there, and a node that left on its own count would leave with all others.
    """
    # Of words that are no claim the node leaves all the same.
    wanted = claim.read(reason) or claim.Claim("node", f": {reason}", claim.CHECK, "quick", claim.NO_GO)
    marks = SlurmMarks(node, wanted, ask)
    try:
        found, rows, size = rule.follow(marks, policy, sleep, eager=eager and not again)
        if found.do == rule.DRAIN:
            return DrainResult(DRAINED, wanted.text)
        if suspects == DRAIN:
            marks.drain(HELD)
            return DrainResult(DRAINED, wanted._replace(mark=HELD).text)
        if not again or not rule.tells(marks.me, rows):
            return DrainResult(SUSPECT, found.why)
        marks.mark(TOLD)
        names = sorted(row.node for row in rows if row.mark != OUT)
        return DrainResult(
            SUSPECT,
            found.why,
            f"{wanted.reason} on {len(rows)} of {size} nodes: {found.why}; {', '.join(names[:20])} stay in service",
        )
    except SettledError as settled:
        if eager:
            lift(marks.me, ask, lambda there: there == wanted._replace(mark=rule.GOING))
        return DrainResult(*settled.args)
    except (AwayError, rule.MarkLostError) as away:
        return DrainResult(PENDING, str(away))
    except OSError as error:
        return DrainResult(PENDING, f"scontrol could not be run: {error.strerror or error}")


def lift(node: str, ask: Callable[[Sequence[str]], str], ends: Callable[[claim.Claim], bool]) -> bool:
    """Take away this node's mark, where its claim has ended; may it get one at once? Raises AwayError, OSError."""
    own = named(listed(ask(["scontrol", "-o", "show", "node"])), [node]).get(node)
    there = claim.read(own.extra) if own else None
    if own and there and ends(there):
        ask(["scontrol", "update", f"NodeName={own.name}", "Extra="])
        return True
    return own is not None and not own.extra and not own.out


def parsed(text: str) -> Dict[str, str]:
    """{state, reason} of `scontrol show node NAME`; empty values where it prints none."""
    state, reason = _STATE.search(text), _SHOWN.search(text)
    return {"state": state.group(1) if state else "", "reason": reason.group(1).strip() if reason else ""}


def show(node: str, path: str, deadline_s: float = DEADLINE_S) -> Dict[str, str]:
    """What the controller says of a node, as `parsed`; empty values while it does not answer. Raises OSError."""
    shown = run(["scontrol", "show", "node", node], path, deadline_s)
    return parsed(shown.text if shown.status == 0 else "")


def resume(node: str, path: str, deadline_s: float = DEADLINE_S) -> None:
    """Put a node back into service. Raises OSError; what the controller refuses stays as it is."""
    run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], path, deadline_s)


def _not_done(what: str, answer: Said) -> str:
    last = answer.text.rpartition("\n")[2].strip()[:200]
    ended = "no answer in time" if answer.status is None else f"exit status {answer.status}"
    return f"{what}: {ended}" + (f" ({last})" if last else "")
