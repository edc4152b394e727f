"""What stands before a line in the logs that people bring. Made lines, after each carrier's own format.

`{line}` is the message; `{s:02d}` a second that rises, `{up:.6f}` seconds since boot. A head of UNCLEAR is one that cannot
be told from a program's own words: what blocks must then be UNKNOWN, never a pass.
"""

from __future__ import annotations

KERNEL = (
    "[{up:12.6f}] {line}",
    "2026-11-21T09:00:{s:02d}+0000 ip-10-0-0-7 kernel: {line}",
    "Nov 21 09:00:{s:02d} ip-10-0-0-7 kernel: [{up:12.6f}] {line}",
)
"""A kernel log: dmesg, journalctl, syslog, and what carries their lines."""

HEADS: dict[str, tuple[str, ...]] = {"kernel.log": KERNEL}
UNCLEAR: dict[str, tuple[str, ...]] = {}
OPENING: dict[str, str] = {"kernel.log": "Linux version 6.8.0-1015-aws (buildd@x) #16-Ubuntu SMP"}
"""A healthy first line of the file, so that a log of one harmless message is a log."""
