"""lnetctl net show: the networks of Lustre's LNet, as YAML; and the kernel's own table of them."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .lazy import Lazy
from .log_shape import Unread

FILES = ("lnetctl.txt",)

MAX_INTERFACES = 4096
_TYPE = Lazy(r"\s*-?\s*net type:\s*(\S{1,40})\s*")
_NID = Lazy(r"\s*-?\s*nid:\s*(\S{1,120})\s*")
_STATUS = Lazy(r"\s*status:\s*(\S{1,40})\s*")
_REFUSED = Lazy(r"descr: ?\"?([^\"]{1,200})")
_ROW = Lazy(r"(\S{1,120}@(\S{1,40}))\s+(\S{1,20})\s")


def parse(files: Mapping[str, Data]) -> Facts:
    """{nets{name: {up, down[]}}}: interfaces that are up, and the addresses of those that are not.

    error: what lnetctl says instead, where LNet is loaded without a network. Raises ParseError when it is neither.
    """
    nets: Dict[str, Any] = {}
    name, nid = "", ""
    seen, error, unread = False, "", Unread()
    for line in v.lines(t.only(files)):
        refused = _REFUSED.match(line.strip())
        error = error or (refused.group(1).strip() if refused else "")
        kind, address, status = _TYPE.fullmatch(line), _NID.fullmatch(line), _STATUS.fullmatch(line)
        seen = seen or line.strip() == "net:" or bool(kind)
        if kind:
            name = kind.group(1)
            _net(nets, name)
        elif address:
            nid = address.group(1)
        elif status and name:
            _count(_net(nets, name), nid, status.group(1))
        elif not refused or nets:
            unread.note(line, known_form=True)
    if not seen and not error:
        raise ParseError("no list of networks: not lnetctl net show")
    facts: Facts = {"nets": nets, "error": error} if error and not nets else {"nets": nets}
    return {**facts, **unread.facts()}


def table(text: str) -> Optional[Dict[str, Any]]:
    """The same of the kernel's table (/sys/kernel/debug/lnet/nis); None when it is none."""
    if not text.lstrip().startswith("nid"):
        return None
    nets: Dict[str, Any] = {}
    for line in text.splitlines()[1:]:
        match = _ROW.match(line + " ")
        if match:
            _count(_net(nets, match.group(2)), match.group(1), match.group(3))
    return nets


def _net(nets: Dict[str, Any], name: str) -> Dict[str, Any]:
    if name not in nets and len(nets) >= MAX_INTERFACES:
        raise ParseError(f"more than {MAX_INTERFACES} networks")
    net: Dict[str, Any] = nets.setdefault(name, {"up": 0, "down": []})
    return net


def _count(net: Dict[str, Any], nid: str, status: str) -> None:
    if status == "up":
        net["up"] += 1
    elif len(net["down"]) < MAX_INTERFACES:
        net["down"].append(f"{nid or 'an interface'} {status}")
