"""The watcher's way out of service on Kubernetes: the taint of an unclean node. Pods that run there stay."""

from __future__ import annotations

from typing import Mapping

from ..watch.kmsg import boot_id
from ..watch.marker import stamp
from ..watch.report import LEVEL
from ..watch.slurm import DRAINED, PENDING, DrainResult
from . import api
from .own_node import OwnNode
from .standing import NO_GO, Standing


def taint(reason: str, run: str, env: Mapping[str, str], root: str = "/") -> DrainResult:
    """Tell the Node that it is unclean. PENDING says why it could not be done now; it is worth another try.

    reason: "flightline: <check> <device> run <run>", for people.
    """
    word = Standing(NO_GO, LEVEL, run, stamp(), boot_id(root), reason)
    try:
        own = OwnNode(api.access(env), api.own_name(env), lambda: stamp()[:19] + "Z")
        own.tell(word)
    except api.ApiError as error:
        return DrainResult(PENDING, str(error))
    return DrainResult(DRAINED, reason)
