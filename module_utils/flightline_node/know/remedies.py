"""The remedies: one row each, from which schemas, reports, the ladder of healing and the docs follow."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Tuple

from ..word import Word

PERSON, NODE, EC2 = "person", "node", "ec2"
"""Who takes a remedy. node: healing, by a step of act/repair.py; ec2: healing, through EC2."""

REPLACE_INSTANCE = "replace"
BOOT = "boot"


@dataclass(frozen=True)
class RemedyRow:
    """What a remedy is.

    rank: in the order to act; the one that makes the others needless comes first. Any number between two others.
    title: for a heading. advice: what to do, in a sentence or two.
    leaves_open: the check says what to do (Check.do), and the advice stands where it does not.
    guide: what docs/checks.md says instead of the advice. hold: why healing leaves the node to a person, in words.
    rung: its height on healing's ladder, any number between two others; 0: no step of it.
    by: who takes it. action: which step of theirs. needs: what must be there for it, of NODE's and EC2's steps: `ec2`,
    or the name of a scheduler.
    proof: what shows that it was done when nobody saw its end. BOOT: another boot of the node.
    """

    word: str
    rank: int
    title: str
    advice: str = ""
    guide: str = ""
    leaves_open: bool = False
    hold: str = ""
    rung: int = 0
    by: str = PERSON
    action: str = ""
    needs: Tuple[str, ...] = ()
    proof: str = ""


@enum.unique
class Remedy(Word):
    """What to do about a finding. Scripts depend on the words, so a rename is a breaking change."""

    row: RemedyRow

    def __new__(cls, row: Any) -> Remedy:
        """A RemedyRow's word, with the row. Remedy(word) does not come here: Enum looks a known word up."""
        made = str.__new__(cls, row.word)
        made._value_ = row.word
        made.row = row
        return made

    NONE = RemedyRow("NONE", 90, "No remedy named", leaves_open=True)
    RESTART_APP = RemedyRow(
        "RESTART_APP",
        70,
        "Restart the application",
        "End the process or job that is named, then judge the node again.",
        "Stop and start the job. The node is good.",
        rung=10,
        by=NODE,
        action="restart",
    )
    RESET_GPU = RemedyRow(
        "RESET_GPU",
        40,
        "Reset the GPU",
        "Drain the node, reset its GPUs (nvidia-smi -r, or a reboot) and judge it again.",
        "Drain, stop what uses the GPU, `nvidia-smi --gpu-reset -i N`; with NVSwitch reset all GPUs, or reboot.",
        rung=20,
        by=NODE,
        action="reset",
    )
    REBOOT = RemedyRow(
        "REBOOT",
        30,
        "Reboot the node",
        "Drain the node, reboot it and judge it again; if the same is found, replace the instance.",
        "Drain, reboot, run the preflight again. The same finding after a reboot: replace.",
        rung=30,
        by=NODE,
        action="reboot",
        proof=BOOT,
    )
    REPLACE = RemedyRow(
        "REPLACE",
        10,
        "Replace the instance",
        "Drain the node, keep its bundle, and replace the instance.",
        "Drain and replace the instance; keep its bundle for the support case.",
        rung=40,
        by=EC2,
        action=REPLACE_INSTANCE,
        needs=(EC2,),
    )
    UPDATE_SOFTWARE = RemedyRow(
        "UPDATE_SOFTWARE",
        50,
        "Update software",
        "Bring the software that is named to the version wanted, then judge the node again.",
        "Install the versions of the site's image and run the preflight again.",
        leaves_open=True,
    )
    FIX_CONFIG = RemedyRow(
        "FIX_CONFIG",
        60,
        "Fix the configuration",
        "Correct what is named, then judge the node again.",
        "Correct the setting (usually in the image or the inventory) and run the preflight again.",
        leaves_open=True,
    )
    CONTACT_SUPPORT = RemedyRow(
        "CONTACT_SUPPORT",
        20,
        "Contact support",
        "Drain the node and open a case with its bundle.",
        "Open a case with AWS, with the bundle and the kernel log.",
        hold="open a case with the bundle",
        rung=50,
    )
    INVESTIGATE = RemedyRow(
        "INVESTIGATE",
        80,
        "Investigate",
        "Read the message and its evidence.",
        "The finding alone does not name the culprit: read its evidence and start with the command below.",
        leaves_open=True,
    )
