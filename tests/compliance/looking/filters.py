"""Rules of packet filters that keep packets from this host or in it, of what `nft` and `iptables-save` print. Pure.

What a host only forwards is its containers' matter: Docker lets nothing of strangers through on purpose (packet
filtering and firewalls, docs.docker.com), also where it keeps them from a container's own address.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OF_THE_HOST = ("ingress", "prerouting", "input", "output", "postrouting", "egress")
"""Hooks that the host's own packets pass (nft(8); iptables' chains are called alike, in capitals)."""
_DROPS = re.compile(
    r"\b(drop|reject|queue)\b|-j (DROP|REJECT|QUEUE|NFQUEUE|TARPIT)\b|target \"?(DROP|REJECT|NFQUEUE)\"?"
)
_CALLS = re.compile(r"(?:\b(?:jump|goto)|-[jg]) ([\w.-]+)")
_CONTAINERS = re.compile(r"! -i (docker|br-|cni|podman)\w*|iifname != \"?(docker|br-|cni|podman)")
_WORDS = re.compile(r"(comment|prefix) \"[^\"]*\"|--(comment|log-prefix) (\"[^\"]*\"|\S+)")


@dataclass
class Chain:
    """hook: '' of one that only other chains call."""

    hook: str = ""
    policy: str = "accept"
    rules: list[str] = field(default_factory=list)


def dropped(nft: str, saved: Sequence[str]) -> list[str]:
    """Each rule and each policy by which a packet of the host is dropped, with its table and chain.

    nft: `nft list ruleset`, '' where there is no nft. saved: what each `iptables-save` printed.
    """
    tables = {
        **_nft(nft),
        **{f"{number} {name}": table for number, text in enumerate(saved) for name, table in _saved(text).items()},
    }
    return [row for name, chains in tables.items() for row in _of_table(name.partition(" ")[2], chains)]


def _of_table(table: str, chains: Mapping[str, Chain]) -> list[str]:
    due = [name for name, chain in chains.items() if chain.hook in OF_THE_HOST]
    rows = [f"{table} {name}: policy {chains[name].policy}" for name in due if chains[name].policy != "accept"]
    for name in due:  # grows by the chains that are called
        for rule in chains[name].rules:
            bare = _WORDS.sub("", rule)
            if _DROPS.search(bare) and not _CONTAINERS.search(bare):
                rows.append(f"{table} {name}: {rule}")
            due += [called for called in _CALLS.findall(bare) if called in chains and called not in due]
    return rows


def _nft(text: str) -> dict[str, dict[str, Chain]]:
    tables: dict[str, dict[str, Chain]] = {}
    table, chain = "", None
    for line in map(str.strip, text.splitlines()):
        word, _, rest = line.rstrip("{ ").partition(" ")
        if word == "table":
            table, chain = f"nft {rest}", None
            tables[table] = {}
        elif word in ("chain", "set", "map", "flowtable", "counter", "quota", "limit") and line.endswith("{"):
            chain = tables[table].setdefault(rest, Chain()) if word == "chain" else None
        elif chain is not None and line.startswith("type "):
            chain.hook = (re.findall(r" hook (\w+)", line) or [""])[0]
            chain.policy = (re.findall(r"policy (\w+)", line) or ["accept"])[0]
        elif chain is not None and line not in ("}", ""):
            chain.rules.append(line)
    return tables


def _saved(text: str) -> dict[str, dict[str, Chain]]:
    tables: dict[str, dict[str, Chain]] = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = f"iptables {line[1:]}"
            tables[table] = {}
        elif line.startswith(":") and table:
            name, policy = line[1:].split()[:2]
            # A chain of the user's has no policy: "-".
            tables[table][name] = Chain(name.lower() if policy != "-" else "", policy.lower())
        elif line.startswith("-A ") and table:
            name, _, rule = line[3:].partition(" ")
            tables[table].setdefault(name, Chain()).rules.append(rule)
    return tables
