"""What a start ended by, from what its ranks left on this node, and whether it is the program's own fault."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ..tell.training_run import event_of
from . import texts, words
from .journals import files, is_journal, text
from .plan import LaunchPlan, is_here
from .said import REPORT

OWN_WORDS = (words.OWN, words.MEMORY)
TWICE, THRICE = 2, 3
"""Starts in a row with one fault after which it is the program's own: where the step is known, and where it is not."""
TAIL = 1 << 20
STEP = re.compile(r"\b(?:global[_ ]?step|step|iteration|iter)s?\b['\"]?\s*[:=]?\s*(\d+)|\| *(\d+)/\d+ \[", re.I)
"""A step in a program's output: torchtitan's and Lightning's, Megatron's iteration, the bar of tqdm."""
MISUSED = re.compile(r"^\s*exitcode\s*: 2 \(pid", re.M)
"""In torchrun's report: no file of that name, or an option that the program does not know. Neither mends itself."""
LIVE = re.compile(r"0x[0-9a-f]+|\bpid[= ']*\d+|/tmp/\S+", re.I)
"""What differs between two starts of one fault."""


class StartFault(NamedTuple):
    """What a start ended by. text: the exception, '' when there is none. step: None where not said. where: a frame.

    here: a rank of this node said it. local: its number on this node, where that is known.
    """

    text: str
    step: Optional[int]
    word: str = ""
    where: str = ""
    here: bool = True
    local: Optional[int] = None

    @property
    def own(self) -> bool:
        """May it be the program's own?"""
        return self.word in OWN_WORDS

    def same(self, other: StartFault) -> bool:
        """One fault at one step, but for what differs between any two starts."""
        return bool(self.text) and _key(self) == _key(other)


def _key(fault: StartFault) -> Tuple[str, str, Optional[int]]:
    return LIVE.sub("", fault.text), LIVE.sub("", fault.where), fault.step


class Repeats:
    """How often one fault came in a row."""

    def __init__(self) -> None:
        self.last, self.times = StartFault("", None), 0

    def add(self, fault: StartFault) -> None:
        """The next start's."""
        self.times = self.times + 1 if fault.same(self.last) else 1
        self.last = fault

    def own(self) -> str:
        """Why the program itself is to blame; '' as long as that is not known."""
        fault = self.last
        if not fault.own or self.times < (TWICE if fault.step is not None else THRICE):
            return ""
        times = "twice" if fault.step is not None else f"{self.times} times"
        step = f"at step {fault.step}" if fault.step is not None else "at a step that it does not say"
        return f"the program's own fault, {times} the same {step}: {fault.text}"


def fault(plan: LaunchPlan, since: float, folder: str = "") -> StartFault:
    """What a start since a moment ended by: a word of hardware, a full disk, else the first exception of its own.

    From journals, torchrun's error files, and what each rank printed (folder: of this start), so that a program that
    neither keeps a journal nor has torchrun's `@record` is judged as well.
    """
    found = sorted(
        (one for one in _all(plan, since, folder) if one[1].word not in words.OTHERS and one[1].text.strip()),
        key=lambda one: (one[0], one[1].text),
    )
    for word in (words.HARDWARE, words.SPACE):
        found = [one for one in found if one[1].word == word] or found
    if not found:
        return StartFault("", None)
    first = found[0][1]
    step = first.step if first.step is not None else _last_step(folder)
    return first._replace(text=first.text.strip().splitlines()[0][:500], step=step)


def _all(plan: LaunchPlan, since: float, folder: str) -> Iterator[Tuple[float, StartFault]]:
    """With their moments; what has none comes last."""
    for path in files(plan.journal, is_journal):
        host = ""
        for line in text(path).splitlines():
            event = event_of(line)
            host = str(event.get("host") or "") if event.get("event") == "start" else host
            if event.get("event") == "exception" and float(event["time"]) >= since:
                said = f"{event.get('type')}: {event.get('text')}"
                yield (
                    float(event["time"]),
                    StartFault(said, event.get("step"), words.word_of(said), here=not host or is_here(host)),
                )
    for path in files(plan.logs, lambda name: name == "error.json"):
        message = event_of(text(path)).get("message")
        if isinstance(message, dict):
            # torchrun counts in whole seconds.
            at, said = float((message.get("extraInfo") or {}).get("timestamp") or 0) + 1, str(message.get("message"))
            if at >= since:
                yield at, StartFault(said, None, words.word_of(said))
    yield from _of_folder(folder)


def _of_folder(folder: str) -> Iterator[Tuple[float, StartFault]]:
    if folder and MISUSED.search(_tail(f"{folder}/{REPORT}")):
        yield float("inf"), StartFault("a rank ended with 2, as Python and argparse do at wrong words", None, words.OWN)
    for path in _printed(folder):
        for one in texts.read(_tail(path), rank=0).seen:
            if one.word in (*OWN_WORDS, words.HARDWARE, words.SPACE):
                local = Path(path).parent.name
                yield (
                    float("inf"),
                    StartFault(one.text, None, one.word, one.where, local=int(local) if local.isdigit() else None),
                )


def _printed(folder: str) -> List[str]:
    return sorted(files(folder, lambda name: name in ("stdout.log", "stderr.log"))) if folder else []


def _last_step(folder: str) -> Optional[int]:
    """The last step that some rank printed."""
    last = [found[-1] for path in _printed(folder) for found in [STEP.findall(_tail(path))] if found]
    return max((int(one or other) for one, other in last), default=None)


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read().decode("utf-8", "replace").replace("\r", "\n")
    except OSError:
        return ""
