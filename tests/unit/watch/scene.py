"""A node for the watcher's tests: a pipe in /dev/kmsg's place, a simulated scontrol, a directory for everything."""

import json
import os
import select
import time

from flightline_node.watch import marker as marking
from flightline_node.watch import program, watcher
from flightline_node.watch.options import Options, site
from flightline_node.watch.verdicts import Rules
from tests.unit.made import node_settings

NODE = node_settings(host="gpu-07", instance_type="p5.48xlarge", instance_id="i-0123456789abcdef0")

# Simulated, after scontrol(1): answers from the files beside it and notes what it was asked.
SCONTROL = """\
#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >> asked
[ -e slow ] && sleep "$(cat slow)"
[ -e down ] && { echo 'slurm_update error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
case "$1 $2" in
  "-o show") printf 'NodeName=gpu-07 State=%s Reason=%s [root@2026-11-22T10:00:00] Extra=%s\\n' "$(cat state)" "$(cat reason)" "$(cat extra)"
    cat others ;;
  "show node") printf 'NodeName=%s State=%s\\n   Reason=%s [root@2026-11-22T10:00:00]\\n' "$3" "$(cat state)" "$(cat reason)" ;;
  "update "*) for word; do case $word in
    Reason=*) echo "${word#Reason=}" > reason ;; Extra=*) echo "${word#Extra=}" > extra ;; State=*) echo IDLE+DRAIN > state ;;
    esac; done ;;
esac
"""

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID_31 = "NVRM: Xid (PCI:0000:64:00): 31, pid=4711, name=python, Ch 00000010, intr 00000000."
QUIET = "eth0: renamed from veth12ab34"


class Scene:
    """One node on disk; `boot()` makes its watcher, `say()` is the kernel."""

    def __init__(self, path):
        self.path = path
        self.tools = path / "bin"
        self.tools.mkdir()
        self.pipe = path / "kmsg"
        os.mkfifo(self.pipe)
        self.kernel = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        self.directory = path / "lib"
        self.sequence = 0
        self.settings = path / "node.json"
        self.settings.write_text(json.dumps(NODE))
        self.watch_settings = path / "watch.json"
        self.options = Options(
            directory=str(self.directory),
            log=str(path / "records.jsonl"),
            heartbeat_log=str(path / "beat.jsonl"),
            kmsg=str(self.pipe),
            tool_path=str(self.tools),
            scheduler="slurm",
            slurm_node="gpu-07",
        )
        self.watcher = None

    def with_slurm(self, state="IDLE", reason="none", others=""):
        self.tool(SCONTROL)
        (self.tools / "state").write_text(state + "\n")
        (self.tools / "reason").write_text(reason + "\n")
        (self.tools / "extra").write_text("\n")
        (self.tools / "others").write_text(others)
        return self

    def tool(self, text):
        """Another scontrol; the one before may be running."""
        draft = self.tools / "draft"
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(self.tools / "scontrol")

    def rules(self, **changes):
        self.settings.write_text(json.dumps({**NODE, **changes}))
        expected, settings, self.who = site(self.settings)
        return Rules(expected, settings, [self.who["host"]])

    def boot(self, feeds=(), **changes):
        rules = self.rules(**changes)
        self.watcher = watcher.Watcher(self.options, rules, self.who, watcher.hands_of(self.options), feeds)
        self.watcher.begin()
        return self

    def say(self, *messages, priority=3):
        for message in messages:
            os.write(self.kernel, f"{priority},{self.sequence},{self.sequence * 1000},-;{message}\n".encode())
            self.sequence += 1
        return self

    def pour(self, record):
        """A record as it is in the buffer, once there is room for it."""
        os.write(self.kernel, record.encode())
        self.sequence += 1

    def waits(self):
        """Is there something that the watcher has not read?"""
        return bool(select.select([self.kernel], [], [], 0)[0])

    def until(self, seen, most_s=60.0):
        """Step until seen() is true; its value, or the last one."""
        end = time.monotonic() + most_s
        while time.monotonic() < end:
            self.watcher.step(0.02)
            found = seen()  # once: what is written beside this may take it back
            if found:
                return found
        return seen()

    def quiet(self, seconds=0.3):
        self.until(lambda: False, seconds)
        return self

    def marker(self):
        return marking.read(self.directory) if self.directory.exists() else None

    def drained(self):
        found = self.marker()
        return found if found and found["scheduler"]["state"] != "pending" else None

    def told(self, records=1):
        """Marker, drain and record are there; none of them waits for another."""
        return self.drained() if len(self.records()) >= records else None

    def records(self):
        log = self.path / "records.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def asked(self):
        path = self.tools / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def release(self, *more):
        own = {"directory": self.options.directory, "kmsg": self.options.kmsg}
        self.watch_settings.write_text(json.dumps(own))
        return program.main(["--watch-settings", str(self.watch_settings), "--release", "proof-1", *more])

    def close(self):
        os.close(self.kernel)
