"""nvidia-imex-ctl: -q (this node's state), then -N as JSON (-j) or as the table it prints for people.

After NVIDIA's IMEX guide, command service, and published outputs of both forms (AWS parallel computing guide, GB200).
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .lazy import Lazy
from .log_shape import Unread

FILES = ("imex.json", "imex.txt")

STATES = (
    "INITIALIZING", "STARTING_AUTH_SERVER", "WAITING_FOR_PEERS", "WAITING_FOR_RECOVERY", "INIT_GPU", "READY",
    "SHUTTING_DOWN", "UNAVAILABLE",
)  # fmt: skip
_DOMAIN = Lazy(r"Domain State: *([A-Z_]{2,30})")
_NODE = Lazy(r"Node #(\d{1,5})\s+\*?\s*-\s*(\S{1,120})\s*-\s*([A-Z_]{2,40})")
_ROW = Lazy(r"\s*(\d{1,5})((?:\s+(?:!V!|!M!|[INRDAC])){1,256})\s*$")
_WORDS = {"!V!": "version mismatch", "!M!": "node map mismatch", "N": "never connected", "R": "recovering",
          "D": "disconnected", "A": "authenticating", "I": "invalid", "C": "CONNECTED"}  # fmt: skip
_SAID = Lazy(r".{0,200}(?:not installed|[Ff]ailed|[Ee]rror|[Uu]nable|refused|not running).{0,200}")
_LOGGED = Lazy(r"\[(?:ERROR|CRITICAL|FATAL)\]|nvidia-imex\[\d")
"""The daemon's own log: more than that the control tool got no answer."""
MAX_NODES = 1024


def parse(files: Mapping[str, Data]) -> Facts:
    """{own, domain, nodes[]{host state}, broken[] (connections that are not connected), installed, error}.

    own: this node's state by -q, absent when not asked. domain: UP, DEGRADED or DOWN. error: what was said in place of
    an answer. Raises ParseError for another tool's output.
    """
    text = t.decode(t.only(files))
    facts: Facts = {"nodes": [], "broken": []}
    own = next((line.strip() for line in text.splitlines()[:20] if line.strip() in STATES), None)
    if own:
        facts["own"] = own
    if '"nodes"' in text and "{" in text:
        _json(t.only(files), facts)
    else:
        _table(text, facts)
    if "domain" not in facts and "own" not in facts:
        said = next((line.strip() for line in text.splitlines()[:50] if _SAID.match(line)), "")
        if not said:
            raise ParseError("no state of an IMEX node or domain in it")
        facts.update(error=said[:400], installed="not installed" not in said)
    unread = Unread()
    for line in text.splitlines() if "error" not in facts or _LOGGED.search(text) else ():
        unread.note(line, known_form=True)
    return {**facts, **unread.facts()}


def _json(data: Data, facts: Facts) -> None:
    document = v.json_object(data)
    status, nodes = v.word(document.get("status")), document.get("nodes")
    if status:
        facts["domain"] = status
    listed: List[Dict[str, Any]] = (
        [node for node in nodes.values() if isinstance(node, dict)] if isinstance(nodes, dict) else []
    )
    for node in listed[:MAX_NODES]:
        host = v.word(node.get("host")) or "?"
        facts["nodes"].append({"host": host[:120], "state": v.word(node.get("status")) or "?"})
        links = node.get("connections")
        for link in links.values() if isinstance(links, dict) else ():
            state = v.word(link.get("status")) if isinstance(link, dict) else None
            if state and state != "CONNECTED" and len(facts["broken"]) < MAX_NODES:
                facts["broken"].append(f"{host[:120]} to {str(v.word(link.get('host')))[:120]}: {state[:40]}")


def _table(text: str, facts: Facts) -> None:
    domain = _DOMAIN.search(text)
    if domain:
        facts["domain"] = domain.group(1)
    for line in text.splitlines()[:4096]:
        node, row = _NODE.search(line[:400]), _ROW.match(line[:2000])
        if node and len(facts["nodes"]) < MAX_NODES:
            facts["nodes"].append({"host": node.group(2), "state": node.group(3)})
        elif row and facts["nodes"]:
            for index, word in enumerate(row.group(2).split()):
                if word != "C" and len(facts["broken"]) < MAX_NODES:
                    facts["broken"].append(f"node {row.group(1)} to node {index}: {_WORDS[word]}")
