"""Lines on a terminal: text of unknown origin is text only, and a line is cut or folded where it has to be."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from flightline_node.model import Status, Verdict

from .text import clean

LABEL_WIDTH = 10

STYLES: Mapping[Status, str] = {
    Status.FAIL: "bold red",
    Status.UNREACHABLE: "bold red",
    Status.UNKNOWN: "bold magenta",
    Status.WARN: "yellow",
    Status.INFO: "cyan",
    Status.PASS: "green",
    Status.SKIP: "dim",
}


class Sheet:
    """What a summary is printed with."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def _text(self, text: object, style: str = "") -> Text:
        """Text that cannot steer the terminal and that the console can encode."""
        encoding = self.console.encoding or "utf-8"
        safe = clean(text).encode(encoding, "replace").decode(encoding, "replace")
        return Text(safe, style=style, overflow="fold")

    def _verdict(self, verdict: Verdict) -> Text:
        style = "bold white on green" if verdict is Verdict.GO else "bold white on red"
        return self._text(f" {str(verdict).upper()} ", style)

    def _line(self, *parts: Text) -> None:
        line = Text.assemble(*parts, overflow="fold")
        line.rstrip()
        self.console.print(line, highlight=False)

    def _one_line(self, head: list[Text], text: str, tail: str = "", style: str = "") -> None:
        """A line that is cut in its middle part, never in its tail."""
        used = sum(cell_len(part.plain) for part in head)
        end = self._text(tail).plain
        room = max(self.console.width - used - cell_len(end), 12)
        body = self._text(text, style)
        if cell_len(body.plain) > room:
            body = Text(set_cell_size(body.plain, room - 3).rstrip() + "...", style=style)
        self._line(*head, body, Text(end, style="dim"))

    def _paragraph(self, label: str, text: str, indent: int, style: str = "dim", most: int = 0) -> None:
        """Text in folded lines behind a label. most: of more lines than these the rest is left out; 0 for all."""
        room = max(self.console.width - indent, 20)
        found = self._text(text).wrap(self.console, room)
        for number, line in enumerate(found[: most or None]):
            line.rstrip()
            if most and number == most - 1 < len(found) - 1:
                line = Text(set_cell_size(line.plain, room - 3).rstrip() + "...")
            self._line(self._text(f"{label if number == 0 else '':<{indent}}", style), line)

    def _heading(self, text: str) -> None:
        self._line()
        self._line(self._text(text, "bold"))

    def _left_out(self, number: int, what: str) -> None:
        if number > 0:
            self._line(self._text(f"  +{number:,} {what}", "dim"))

    def _whole(self, name: str, text: str) -> None:
        line = Text.assemble(self._text(f"{name:<{LABEL_WIDTH}} ", "dim"), self._text(text))
        self.console.print(line, highlight=False, soft_wrap=True)
