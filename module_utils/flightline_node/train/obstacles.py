"""What stands in the way of a start: '' where nothing does, else what was seen, wanted and is to be done."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
from typing import Sequence

from ..act.program import TIMED_OUT, outputs, ran
from ..ask.files import contents
from ..watch import marker, tool
from .plan import LaunchPlan, Meeting, is_here

GATE_S = 300.0
MOUNT_S = 60.0
SHM = "/dev/shm"  # noqa: S108
FILES_WANTED = 65_536
"""Open files: a rank has a socket or more to each peer, a file per worker of its loader and per shard. Own choice."""
AWS_S = 600.0
MEET_S = 5.0


def refused(plan: LaunchPlan) -> str:
    """Why this node must not train now. No answer is no go."""
    if in_quarantine(plan):
        return f"saw this node in quarantine ({quarantine(plan)}), wanted a healthy one; do: flightline incidents"
    return not_mounted(plan.mounts) or too_small(plan.shm_gib) or _no_go(plan.gate)


def quarantine(plan: LaunchPlan) -> str:
    """The node's marker. Slurm's prolog, the gate there, is asked when a job begins, and not before a restart."""
    return f"{plan.root.rstrip('/')}{marker.DIRECTORY / marker.MARKER}"


def in_quarantine(plan: LaunchPlan) -> bool:
    """Has flightline-watch, this launcher or a person taken this node out of service?"""
    return os.path.exists(quarantine(plan))  # noqa: PTH110  (a user who may not look is not stopped by it)


def _no_go(gate: Sequence[str]) -> str:
    if not gate:
        return ""
    try:
        ended = tool.run(gate, os.environ.get("PATH", os.defpath), GATE_S)
    except OSError as error:
        return f"the gate gave no answer, which is no go: {error}"
    if ended.status is None:
        return f"the gate gave no answer in {GATE_S:.0f} s, which is no go"
    lines = ended.text.splitlines()
    return f"the gate refuses this node ({ended.status}): {'; '.join(lines[:5])[:500]}" if ended.status else ""


def taken(meeting: Meeting) -> str:
    """On the node where the others meet: whether another program has the port; '' where it is free."""
    if not is_here(meeting.host):
        return ""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", meeting.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                wanted = "do: end it, or name another port in rendezvous"
                return f"port {meeting.port} of this node is taken by another program; {wanted}"
    return ""


def apart(meeting: Meeting) -> str:
    """Why a start in which no rank was started came to nothing; '' for one node alone."""
    if not meeting.host:
        return ""
    few = f"fewer than {meeting.least} nodes came within {meeting.join_s} s"
    try:
        socket.create_connection((meeting.host, meeting.port), MEET_S).close()
    except OSError as error:
        # The node of the rendezvous may have given up just before: then too few came.
        return (
            f"no rank was started: {meeting.host}:{meeting.port} gives no answer ({error}), or {few}; "
            f"do: if {meeting.host} is lost, name another node in rendezvous"
        )
    return f"no rank was started: {few}; do: start the job on more nodes"


def not_mounted(places: Sequence[str]) -> str:
    """Which of these directories is no file system of its own now; a run would fill the node's own disk there."""
    for place in places:
        # Mounts on demand come with the first look; one that hangs must not hold the launcher.
        if ran(["stat", "--file-system", f"{place}/."], MOUNT_S)[0] == TIMED_OUT:
            return f"{place}: gives no answer in {MOUNT_S:.0f} s"
        rows = [line.split() for line in (contents("/proc/self/mounts") or "").splitlines()]
        kinds = [row[2] for row in rows if row[1].encode().decode("unicode_escape") == place.rstrip("/")]
        if not kinds or kinds[-1] == "autofs":
            return f"{place}: saw nothing mounted there, wanted the shared file system; do: mount it"
    return ""


def data_changed(address: str) -> str:
    """Why the data set must not be trained on: not what the request's manifest says; '' when it is, or without one.

    No answer of S3 is no proof. Whether the files came onto FSx is flightline-preload's to say.
    """
    if not address:
        return ""
    try:
        manifest = json.loads(_aws("s3", "cp", "--only-show-errors", address, "-"))
        bucket, rows = manifest["bucket"], {row["key"]: row for row in manifest["objects"]}
        query = ["--query", "Contents[].[Key,Size,ETag]", "--output", "json"]
        prefix = os.path.commonprefix(list(rows))  # noqa: RUF071  (so are S3's prefixes: characters)
        listed = json.loads(_aws("s3api", "list-objects-v2", "--bucket", bucket, "--prefix", prefix, *query)) or []
        there = {key: (size, etag.strip('"')) for key, size, etag in listed}
        # A copy in parts has an ETag of its own (S3 API reference, Object).
        copied = manifest.get("mode") == "stage"
        wanted = {key: (row["size"], row["etag"]) for key, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"saw no data set as {address} says ({error}); do: look with aws s3 ls whether this node may read it"
    wrong = [key for key in wanted if there.get(key, ())[: 2 - copied] != wanted[key][: 2 - copied]]
    if not wrong:
        return ""
    found = "size {}, ETag {}".format(*there[wrong[0]]) if wrong[0] in there else "nothing"
    return (
        f"{len(wrong)} of {len(rows)} objects in {bucket} are not what {address} says, first {wrong[0]}: "
        f"saw {found}, wanted size {wanted[wrong[0]][0]}, ETag {wanted[wrong[0]][1]}; do: ask for the run again"
    )


def _aws(*words: str) -> str:
    status, out, err = outputs(["aws", *words], AWS_S)
    if status:
        raise OSError(" ".join(err.split())[-300:])
    return out


def too_small(shm_gib: float) -> str:
    """Whether the ranks' shared memory has room for what the job needs; made larger where root starts it.

    NCCL's and the loader's processes share it: full, a rank ends by SIGBUS or hangs without a word.
    """
    if not shm_gib:
        return ""
    size = os.statvfs(SHM)
    seen = size.f_blocks * size.f_frsize / 1024**3
    if seen < shm_gib and os.geteuid() == 0:
        ran(["mount", "-o", f"remount,size={int(shm_gib * 1024)}M", SHM], MOUNT_S)
        size = os.statvfs(SHM)
        seen = size.f_blocks * size.f_frsize / 1024**3
    if seen < shm_gib:
        return (
            f"{SHM}: saw {seen:.2f} GiB, wanted {shm_gib:g} GiB for the ranks; "
            f"do: mount -o remount,size={int(shm_gib * 1024)}M {SHM}, or lower shm_gib of the job"
        )
    return ""


def raise_files() -> str:
    """Open files up to the hard limit: Slurm hands on the soft one of the shell that asked for the job. Said if few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY or hard >= FILES_WANTED:
        return ""
    return f"open files: saw a hard limit of {hard}, wanted {FILES_WANTED}; do: raise LimitNOFILE of the unit or slurmd"
