"""Are the Lustre file systems (FSx) mounted for writing, and have their servers kept this client?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ...model import Check, Facts, Finding, Reason, Remedy, Repeated, Status, Threshold
from .. import skips
from ..context import Context
from ..kernel_history import UNSPLIT, current, dropped, span, unsplit, when
from ..reasons import STANDS
from ..repetition import judged

NOT_MOUNTED = Reason("not_mounted", "a file system is not mounted", Remedy.FIX_CONFIG, "file system")
READ_ONLY_MOUNT = Reason("read_only_mount", "a file system is mounted read-only", Remedy.FIX_CONFIG, "file system")
NO_FLOCK = Reason("no_flock", "a file system is mounted without flock", Remedy.FIX_CONFIG, "file system")
TROUBLE = Reason("trouble", "the log tells of Lustre's trouble")
DOUBTFUL_LINES = Reason("doubtful_lines", "lines that may be another program's words")

_TARGET = re.compile(r"[\w.-]{1,32}-(?:OST|MDT)[0-9a-fA-F]{4}|MG[CS][\d.]{7,15}")
NOTHING = "no Lustre file system is mounted, and the inventory declares none (a mount and the module lustre)"

_TROUBLE: Mapping[str, Repeated] = {
    "evicted": Repeated("evicted by a Lustre server: open files were lost", Status.WARN, "evictions", "node"),
    "refused": Repeated("operations failed at a Lustre server", Status.WARN, "repeats", "server"),
    "corrupt": Repeated(
        "data arrived with a wrong checksum on its way to or from a Lustre server", Status.WARN, "repeats", "node"
    ),
    "lnet": Repeated("the Lustre network (LNet) timed out or lost a peer", Status.WARN, "repeats", "server"),
    "efa": Repeated("the Lustre network over EFA gave up transfers", Status.WARN, "repeats", "node"),
    "slow": Repeated("requests to a Lustre server timed out", Status.WARN, "repeats", "server"),
    "lost": Repeated("the connection to a server comes and goes", Status.PASS, "repeats", "server"),
}
"""What the kernel says that a person should look at. Servers and network cause it more often than the node."""
_SERVER = re.compile(r"[\w.-]{1,32}-(?:OST|MDT)[0-9a-fA-F]{4}|MG[CS][\d.]{7,15}|\b[\w.:]{3,45}@(?:tcp|efa|o2ib)\d*")

NOT_THERE = {"measured": "not mounted", "expected": "lustre"}


def evaluate(context: Context) -> Iterator[Finding]:
    """The mounts first, then what the kernel says of the connections since boot; a log alone can tell of evictions."""
    table, kernel = context.optional("mounts"), context.optional("kernel")
    mounted = {e["mount"]: e for e in (table or {}).get("mounts", []) if e["fstype"] == "lustre"}
    missing = _missing(context, table)
    findings = [
        context.fail(NOT_MOUNTED, f"{path} is not mounted", device={"mount": path}, measured="none", expected="lustre")
        for path in missing
    ]
    for entry in mounted.values():
        findings += _mount(context, entry)
    if kernel:
        findings += _trouble(context, kernel)
        if mounted or table is None:
            findings += _lost(context, kernel)
        if not mounted:
            findings += _mount_failed(context, kernel)
    yield from findings
    if not mounted and not findings:
        yield context.skip(
            skips.NO_LUSTRE.because(NOTHING)
            if table
            else skips.NOT_PRINTED.because("the mount table was not read, and the kernel log tells of no eviction")
        )
    elif not findings:
        watched = "no eviction since boot" if kernel else "the kernel log was not read"
        yield context.ok(f"mounted: {', '.join(mounted)}; {watched}", measured=len(mounted), unit="mounts")


def _missing(context: Context, table: Optional[Facts]) -> List[str]:
    """Declared mount points with nothing on them, where the inventory says that Lustre is wanted."""
    if table is None or "lustre" not in context.expected.modules:
        return []
    present = {entry["mount"] for entry in table.get("mounts", [])}
    return [path for path in context.expected.mounts if (path.rstrip("/") or "/") not in present]


def _mount(context: Context, entry: Dict[str, Any]) -> Iterator[Finding]:
    mount, options = entry["mount"], entry["options"]
    evidence = [f"{entry['source']} {mount} lustre {','.join(options)}"]
    declared = mount in [path.rstrip("/") for path in context.expected.mounts]
    rest: Dict[str, Any] = {"device": {"mount": mount}, "evidence": evidence}
    if "ro" in options and declared:
        yield context.fail(READ_ONLY_MOUNT, f"{mount} is mounted read-only", measured="ro", expected="rw", **rest)
    elif "ro" in options:
        # Data sets are often mounted so on purpose; the inventory does not say.
        yield context.info(READ_ONLY_MOUNT, f"{mount} is mounted read-only", **rest)
    if not {"flock", "localflock"} & set(options):
        yield context.warn(NO_FLOCK, f"{mount} is mounted without flock: programs that lock files on it fail", **rest)


def _events(kernel: Facts, *kinds: str) -> List[Facts]:
    return [event for event in current(kernel, "lustre") if event.get("kind") in kinds]


def _trouble(context: Context, kernel: Facts) -> Iterator[Finding]:
    for kind, repeated in _TROUBLE.items():
        events = _events(kernel, kind)
        if not events:
            continue
        count, most = len(events) + dropped(kernel, "lustre", kind=kind), _most(kernel, kind, events, repeated.per)
        status = judged(context, repeated, most)
        stands = status is Status.WARN and not _came_back(kernel, events[-1])
        if status is not Status.PASS:
            yield context.because(
                Status.FAIL if stands else status,
                (STANDS if stands else TROUBLE).of(kind),
                f"{repeated.what}, {count} times {span(events)}",
                measured=most,
                expected=f"under {context.threshold(repeated.threshold):g} per {repeated.per}",
                unit="events",
                evidence=[event["text"] for event in events[:4]],
            )
    doubtful = [event for event in unsplit(kernel, ("lustre",)) if event["kind"] not in ("restored", "mounted", "lost")]
    if doubtful:
        evidence = [event["text"] for event in doubtful[:4]]
        yield context.warn(DOUBTFUL_LINES, f"{len(doubtful)} Lustre {UNSPLIT}", evidence=evidence)


def _came_back(kernel: Facts, last: Facts) -> bool:
    """Was a connection restored, or a file system mounted, after the last trouble?"""
    events = _events(kernel, *_TROUBLE, "restored", "mounted")
    after = events[[event is last for event in events].index(True) :]
    return any(event["kind"] in ("restored", "mounted") for event in after)


def _most(kernel: Facts, kind: str, events: List[Facts], per: str) -> int:
    """The events of the server that has most of them; those that a storm's list leaves out are like those listed."""
    left_out = dropped(kernel, "lustre", kind=kind)
    servers = Counter(found.group(0) if found else "" for found in (_SERVER.search(e["text"]) for e in events))
    most = max(servers.values()) if per == "server" else len(events)
    return most + left_out * most // len(events)


def _mount_failed(context: Context, kernel: Facts) -> Iterator[Finding]:
    """The last try to mount, when nothing is mounted now."""
    tries = _events(kernel, "mounted", "mount_failed")
    if tries and tries[-1]["kind"] == "mount_failed":
        evidence = [event["text"] for event in tries[-4:] if event["kind"] == "mount_failed"]
        message = f"a Lustre file system could not be mounted, at {when(tries[-1])}"
        yield context.fail(STANDS.of("mount"), message, "not mounted", "mounted", evidence=evidence)


def _lost(context: Context, kernel: Facts) -> Iterator[Finding]:
    """Servers whose connection was lost and, by the log, not restored."""
    last: Dict[str, Facts] = {}
    for event in _events(kernel, "lost", "restored"):
        target = _TARGET.search(event["text"])
        if target:
            last[target.group(0)] = event
    for name, event in last.items():
        if event["kind"] == "lost":
            message = f"the connection to {name} was lost and not restored"
            yield context.fail(
                STANDS.of("lost"), message, "lost", "restored", device={"name": name}, evidence=[event["text"]]
            )


CHECK = Check(
    id="lustre",
    order=590,
    title="Lustre (FSx)",
    what="Lustre mounts: present where declared, writable, with flock; evictions, "
    "failed operations, LNet time-outs and lost servers since boot.",
    why="An evicted client loses what it had not written, a lost server blocks every checkpoint of the job.",
    remedy="Mount it (rw,flock). Evictions: security group, ports 988 and 1018-1023, load, then remount.",
    out_of_service="Yes where the site declares the mount, and after trouble until a connection was restored.",
    first="lfs check all; journalctl -k -b | grep -i lustre",
    source="AWS FSx for Lustre user guide, mounting and troubleshooting; Lustre 2.15 client messages",
    needs_any=("mounts", "kernel"),
    tags=("storage", "lustre"),
    skips=(skips.NO_LUSTRE, skips.NOT_PRINTED),
    informs=True,
    thresholds=(
        Threshold(
            "evictions",
            5,
            "evictions",
            "evictions since boot that block the node",
            "one follows a failover or a pause of the network; a client that is thrown out again and again is sick",
            1,
            100000,
        ),
        Threshold(
            "repeats",
            20,
            "events",
            "events of one kind and server since boot that block the node",
            "as kernel_errors.repeats: maintenance of a server leaves a handful",
            1,
            100000,
        ),
    ),
    repeated=tuple(_TROUBLE.values()),
    evaluate=evaluate,
)
