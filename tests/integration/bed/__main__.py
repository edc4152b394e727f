"""`scripts/hosts up [N] | down | status`: make, end or list the real hosts."""

import sys
import time

from . import bed, layout


def _up(words: list[str]) -> str:
    count = int(words[0]) if words else layout.DEFAULT_COUNT
    began = time.monotonic()
    inventory = bed.up(count)
    return (
        f"{count} machines in {time.monotonic() - began:.1f} s, inventory {inventory}\n"
        f"try: .venv/bin/ansible -i {inventory} all -m ansible.builtin.ping"
    )


def _down(_words: list[str]) -> str:
    bed.down()
    return "no machine, bridge, mount or process of the bed is left; the image and the package cache stay"


def _status(_words: list[str]) -> str:
    rows = [
        f"{name} {address} {'up' if up else 'down'} {memory_mib} MiB" for name, address, up, memory_mib in bed.status()
    ]
    return "\n".join(rows) or "no machines; `make hosts` makes them"


COMMANDS = {"up": _up, "down": _down, "status": _status}


def main(arguments: list[str]) -> int:
    """Exit status 0, or 2 with one line that says what to do."""
    if not arguments or arguments[0] not in COMMANDS:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        sys.stdout.write(COMMANDS[arguments[0]](arguments[1:]) + "\n")
    except (layout.BedError, OSError, ValueError) as error:
        sys.stderr.write(f"hosts: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
