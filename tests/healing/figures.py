"""What the programs of `make healing` print: a table for the docs."""

import os
from datetime import date


def at(ordered: list[float], share: float) -> float:
    """The nearest-rank percentile."""
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))] if ordered else float("nan")


def where(load: list[float]) -> str:
    """When and where it ran."""
    return f"{date.today()}, {os.cpu_count()} cores, load {min(load):.0f} to {max(load):.0f}"


def table(rows: list[tuple[str, str]], head: str = "measure | value") -> str:
    """A Markdown table."""
    return f"| {head} |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows)
