#!/usr/bin/env python3
"""Start a training run on this node, again after each fault, until it is done, told to end, or fails by itself.

torchrun starts the ranks and finds the other nodes; this only asks the gate before each start, hands signals on, and
decides what an end means. Exit status: 0 done; 75 told to end, start it again; 77 the gate refuses the node; 70 the
program's own fault, a restart does not help; 1 failed too often; 2 settings that cannot work.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

DONE, BROKEN, FAILED, OWN_FAULT, REQUEUE, REFUSED = 0, 2, 1, 70, 75, 77
ENDS = {DONE: "finished", FAILED: "failed", OWN_FAULT: "failed", REQUEUE: "running", REFUSED: "refused"}
"""Words of the training table; a run that is to be started again goes on."""
JOB = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
SETTINGS = "/etc/flightline/train.json"
JOBS = "/etc/flightline/train"
ASKED = "/run/flightline/train"
GATE_S = 300.0
MOUNT_S = 60.0
TELL_S = 3600.0
COST_S = 60.0
"""How often the run's cost is told; a run that goes on for months is told of each TELL_S."""
QUARANTINE = "/var/lib/flightline/quarantine.json"
"""Marker of flightline-watch. Slurm's prolog, the gate there, is asked when a job begins, and not before a restart."""
SHM = "/dev/shm"  # noqa: S108
FILES_WANTED = 65_536
"""Open files: a rank has a socket or more to each peer, a file per worker of its loader and per shard. Own choice."""
AWS_S = 600.0
MEET_S = 5.0
TICK_S = 0.01
"""By which a file's time may lag behind the clock: the kernel stamps with that of its last tick."""
OTHERS = re.compile(
    r"connection (?:closed|reset|refused)|broken pipe|remote (?:process|peer)|timed? ?out|ncclRemoteError"
    r"|DistBackendError|watchdog|socket(?:Start|Progress|Poll)|SignalException|peer closed"
    r"|RendezvousTimeout|RendezvousConnection",
    re.I,
)
"""Words of an error that says another rank is gone or late: no reason not to start again."""


class Wrong(Exception):
    """Settings that cannot work."""


class Meeting(NamedTuple):
    """Where the nodes meet, and how: at least so many, each waiting so many seconds. host: '' for one node alone."""

    host: str
    port: int
    least: int
    join_s: int


class LaunchPlan(NamedTuple):
    """What to run. gate: command that must end with 0 before each start; user: '' for the caller's own.

    mounts: directories that must be file systems of their own before each start.
    """

    job: str
    argv: List[str]
    environment: Dict[str, str]
    logs: str
    journal: str
    gate: List[str]
    user: str
    workdir: str
    about: Dict[str, Any]
    meeting: Meeting
    mounts: List[str]
    manifest: str
    restarts: int
    pause_s: float
    grace_s: float
    shm_gib: float


class StartFault(NamedTuple):
    """What a start ended by. text: the first own exception, '' when there is none. step: None where not said."""

    text: str
    step: Optional[int]


def plan(job: str, settings: Dict[str, Any], one: Dict[str, Any], asked: Dict[str, Any], manifest: str) -> LaunchPlan:
    """From the node's settings, the job's, and what this run was asked for with. Raises Wrong."""
    command = one.get("command")
    if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise Wrong(f"{job}: saw command {command!r}, wanted a list of words; do: mend training_jobs")
    least, most = one.get("nodes", [1, 1])
    if not 1 <= int(least) <= int(most):
        raise Wrong(f"{job}: saw nodes {least} to {most}, wanted at least one and the smaller number first")
    logs = f"{settings['logs']}/{job}"
    argv = [
        settings["torchrun"],
        f"--nnodes={least}:{most}",
        f"--nproc-per-node={one.get('ranks') or settings['ranks']}",
    ]
    if int(most) > 1:
        if not one.get("rendezvous"):
            raise Wrong(f"{job}: saw no rendezvous for {most} nodes, wanted HOST:PORT of one of them")
        argv += ["--rdzv-backend=c10d", f"--rdzv-endpoint={one['rendezvous']}", f"--rdzv-id={job}",
                 f"--rdzv-conf=join_timeout={int(settings['join_s'])}"]  # fmt: skip
    else:
        argv += ["--standalone"]
    # A restart is decided here: torchrun would repeat the program's own fault as well.
    argv += ["--max-restarts=0", f"--log-dir={logs}", "--tee=3"]
    argv += [f"--numa-binding={settings['numa_binding']}"] if settings.get("numa_binding") else []
    argv += command + [f"--{name}={value}" for name, value in sorted(asked.items())]
    environment = {**settings["environment"], **one.get("environment", {}), "FLIGHTLINE_JOB": job,
                   "FLIGHTLINE_METRICS": f"{logs}/metrics.jsonl",
                   "TORCH_FR_DUMP_TEMP_FILE": f"{logs}/nccl_trace_rank_"}  # fmt: skip
    if manifest:
        environment["FLIGHTLINE_MANIFEST"] = manifest
    journal = one.get("journal") or logs
    return LaunchPlan(
        job, argv, environment, logs, journal, list(settings["gate"]), settings.get("user", ""),
        one.get("workdir", "/"), _about(job, settings, one, manifest),
        _meeting(job, one, int(settings["join_s"])),
        list(one.get("mounts", settings.get("mounts", []))), manifest, int(settings["restarts"]),
        float(settings["pause_s"]), float(settings["grace_s"]), float(one.get("shm_gib", settings.get("shm_gib", 0))),
    )  # fmt: skip


def _meeting(job: str, one: Dict[str, Any], join_s: int) -> Meeting:
    least, most = map(int, one.get("nodes", [1, 1]))
    host, _, port = str(one.get("rendezvous", "")).rpartition(":") if most > 1 else ("", "", "0")
    if most > 1 and not (host and port.isdigit() and 0 < int(port) < 65536):
        raise Wrong(f"{job}: saw rendezvous {one.get('rendezvous')!r}, wanted HOST:PORT of one of the nodes")
    return Meeting(host, int(port), least, join_s)


def _is_here(host: str) -> bool:
    return host in (socket.gethostname(), socket.getfqdn())


def taken(meeting: Meeting) -> str:
    """On the node where the others meet: whether another program has the port; '' where it is free."""
    if not _is_here(meeting.host):
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
        look = subprocess.Popen(
            ["stat", "--file-system", f"{place}/."], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            look.wait(MOUNT_S)
        except subprocess.TimeoutExpired:
            look.kill()
            return f"{place}: gives no answer in {MOUNT_S:.0f} s"
        rows = [line.split() for line in _text("/proc/self/mounts").splitlines()]
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
    except (OSError, ValueError, KeyError, TypeError, AttributeError, subprocess.SubprocessError) as error:
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
    done = subprocess.run(["aws", *words], capture_output=True, timeout=AWS_S, check=False)
    if done.returncode:
        raise OSError(" ".join(done.stderr.decode("utf-8", "replace").split())[-300:])
    return done.stdout.decode("utf-8")


def too_small(shm_gib: float) -> str:
    """Whether the ranks' shared memory has room for what the job needs; made larger where root starts it.

    NCCL's and the loader's processes share it: full, a rank ends by SIGBUS or hangs without a word.
    """
    if not shm_gib:
        return ""
    size = os.statvfs(SHM)
    seen = size.f_blocks * size.f_frsize / 1024**3
    if seen < shm_gib and os.geteuid() == 0:
        subprocess.run(["mount", "-o", f"remount,size={int(shm_gib * 1024)}M", SHM], timeout=MOUNT_S, check=False)
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


def _about(job: str, settings: Dict[str, Any], one: Dict[str, Any], manifest: str) -> Dict[str, Any]:
    """What is told of the run, by the node of the rendezvous, so that it is told once; {} on the others.

    Into files of the job's own, so that Slurm's runs, which are the user's, are told of as well.
    """
    place = str(one.get("rendezvous", "")).rpartition(":")[0]
    alone = int(one.get("nodes", [1, 1])[1]) == 1
    if not settings.get("package") or not (alone or _is_here(place)):
        return {}
    slurm = os.environ.get("SLURM_JOB_ID", "")
    # The request's own id: what the training input function wrote of this run has it too. Slurm keeps a requeued job's.
    run = os.path.basename(manifest).rpartition(".")[0] or (
        f"{job}-slurm-{slurm}" if slurm else f"{job}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    )
    told = {
        "job": job,
        "dataset": one.get("dataset", "unknown"),
        "model": one.get("model", "unknown"),
        "manifest": manifest,
        "code": one.get("code", "unknown"),
        "nodes": int(os.environ.get("SLURM_JOB_NUM_NODES") or one.get("nodes", [1, 1])[1]),
    }
    logs = f"{settings['logs']}/{job}"
    return {"run": run, "package": settings["package"], "told": told, "records": f"{logs}/records.jsonl",
            "metrics": f"{logs}/metrics.jsonl", "usd_per_hour": float(settings.get("node_usd_per_hour") or 0),
            "namespace": str(settings.get("environment", {}).get("FLIGHTLINE_NAMESPACE", "Flightline"))}  # fmt: skip


def append(path: str, text: str, user: str) -> None:
    """Add lines to a file of the job's directory. It is the user's: no link of theirs is followed. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o644)
    try:
        if user and os.geteuid() == 0:
            os.fchown(file, *_ids(user))
        os.write(file, text.encode("utf-8"))
    finally:
        os.close(file)


def _ids(user: str) -> Tuple[int, int]:
    import pwd

    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


def tell(plan: LaunchPlan, status: str, **more: Any) -> str:
    """Write a step of the run for the storage function, which puts it into the training table; why not, or ''."""
    about = plan.about
    try:
        with _package(about["package"]):
            from flightline_node.tell import logline, training_run

            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            seen = training_run.facts(f"{plan.journal}/rank-000000.jsonl")
            told = {**about["told"], **seen, "status": status, "at": at, **more}
            written = logline.lines("training", about["run"], told)
            append(about["records"], "".join(f"{line}\n" for line in written), plan.user)
    except (ImportError, OSError, ValueError) as error:
        return f"nobody is told that the run is {status}: {error}"
    return ""


@contextlib.contextmanager
def _package(place: str) -> Iterator[None]:
    """The node's library, importable."""
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


class RunCost:
    """What the run has cost: all its nodes at their price since this launcher began, and what was told before that.

    Told before: the last line of this node's own metrics. Where the rendezvous moves to another node it begins anew.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan, self._began, self._told_at = plan, time.monotonic(), 0.0
        self._before = self._last() if plan.about.get("usd_per_hour") else 0.0

    @property
    def usd(self) -> Optional[float]:
        """US dollars so far; None where no price is known."""
        about = self._plan.about
        if not about.get("usd_per_hour"):
            return None
        hours = (time.monotonic() - self._began) / 3600
        return self._before + hours * about["usd_per_hour"] * about["told"]["nodes"]

    def tell(self, now: bool = False) -> None:
        """As a metric, each COST_S. A disk that is full costs the metric and not the run."""
        usd, at = self.usd, time.monotonic()
        if usd is None or (not now and at < self._told_at + COST_S):
            return
        self._told_at, about = at, self._plan.about
        with contextlib.suppress(ImportError, OSError), _package(about["package"]):
            from flightline_node.tell import training_run

            line = training_run.cost_line(about["namespace"], self._plan.job, about["run"], usd)
            append(about["metrics"], line, self._plan.user)

    def _last(self) -> float:
        about, found = self._plan.about, 0.0
        with contextlib.suppress(OSError), open(about["metrics"], encoding="utf-8", errors="replace") as file:
            for one in (_json(line) for line in file if '"TrainCost"' in line):
                usd = one.get("TrainCost")
                found = float(usd) if one.get("run") == about["run"] and isinstance(usd, (int, float)) else found
        return found


def fault(plan: LaunchPlan, since: float) -> StartFault:
    """The first exception of its own that some rank said after a moment: journals, then torchrun's error files."""
    found: List[Tuple[float, str, Optional[int]]] = []
    for path in _files(plan.journal, _is_journal):
        for line in _text(path).splitlines():
            event = _json(line)
            if event.get("event") == "exception":
                found.append((float(event["time"]), f"{event.get('type')}: {event.get('text')}", event.get("step")))
    for path in _files(plan.logs, lambda name: name == "error.json"):
        message = _json(_text(path)).get("message")
        if isinstance(message, dict):
            at = float((message.get("extraInfo") or {}).get("timestamp") or 0)
            # torchrun counts in whole seconds.
            found.append((at + 1, str(message.get("message")), None))
    own = sorted(
        (entry for entry in found if entry[0] >= since and not OTHERS.search(entry[1])), key=lambda entry: entry[0]
    )
    if not own or not own[0][1].strip():
        return StartFault("", None)
    return StartFault(own[0][1].strip().splitlines()[0][:500], own[0][2])


def said(plan: LaunchPlan, event: str, since: float) -> bool:
    """Whether a rank, perhaps of another node, ended so after a moment: requeue (told to, and saved) or finished."""
    for path in _files(plan.journal, _is_journal):
        events = [_json(line) for line in _text(path).splitlines()[-5:]]
        if any(one.get("event") == event and float(one["time"]) >= since for one in events):
            return True
    return False


def elsewhere(plan: LaunchPlan, since: float) -> bool:
    """Whether a rank of another node has written into its journal after a moment."""
    return any(os.path.getmtime(path) >= since - TICK_S for path in _files(plan.journal, _is_journal))  # noqa: PTH204


def _is_journal(name: str) -> bool:
    return name.startswith("rank-") and name.endswith(".jsonl")


def ranks_started(plan: LaunchPlan, since: float) -> bool:
    """Whether torchrun has come as far as to start ranks: it makes their log files then."""
    logs = _files(plan.logs, lambda name: name in ("stdout.log", "stderr.log"))
    return any(os.path.getmtime(path) >= since - 1 for path in logs)  # noqa: PTH204


def _files(folder: str, wanted: Callable[[str], bool]) -> List[str]:
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if wanted(name)]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _json(text: str) -> Dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class JobRun:
    """The starts of one run on this node."""

    def __init__(self, plan: LaunchPlan, say: Callable[[str], None]) -> None:
        self.plan, self.say, self.told = plan, say, 0
        self.interruptions: List[Dict[str, Any]] = []
        self.cost, self._told_at = RunCost(plan), 0.0
        self._process: Optional[subprocess.Popen[bytes]] = None

    def told_of(self) -> int:
        """Run, and tell how it went; the exit status."""
        self._tell("running")
        status = self._until_over()
        self.cost.tell(now=True)
        self._tell(ENDS[status], exit_status=status)
        return status

    def _tell(self, status: str, **more: Any) -> None:
        self._told_at = time.monotonic()
        usd = self.cost.usd
        spent = {} if usd is None else {"cost_usd": round(usd, 2)}
        more = {**more, **spent, "interruptions": self.interruptions}
        why = tell(self.plan, status, **more) if self.plan.about else ""
        if why:
            self.say(why)

    def _until_over(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._hear)
        few = raise_files()
        if few:
            self.say(few)
        meeting = self.plan.meeting
        # Once for all nodes: without the one where they meet no rank is started.
        changed = data_changed(self.plan.manifest) if not meeting.host or _is_here(meeting.host) else ""
        if changed:
            self.say(changed)
            return REFUSED
        before, failed = StartFault("", None), 0
        while failed <= self.plan.restarts:
            refused = self._refused()
            if refused:
                self.say(refused)
                self._let_others_go()
                return REFUSED
            began = time.time()
            obstacle = taken(self.plan.meeting)
            status = FAILED if obstacle else self._start()
            over = self._over(status, began)
            if over is not None:
                return over
            alone = not obstacle and not ranks_started(self.plan, began)
            if alone and self.plan.meeting.host and elsewhere(self.plan, began):
                self.say("no rank was wanted here, and the run goes on: this node waits on as a spare")
            else:
                seen = fault(self.plan, began)
                if seen.text and seen == before:
                    self.say(f"the program's own fault, twice the same at step {seen.step}: {seen.text}; it ends here")
                    return OWN_FAULT
                before = seen
                why = seen.text or obstacle or (apart(self.plan.meeting) if alone else "")
                self._interrupted(failed, status, why, seen.step)
                failed += 1
            time.sleep(self.plan.pause_s)
            if self.told:
                return REQUEUE
        self.say(f"failed {failed} times, wanted fewer; do: flightline blame {self.plan.journal}")
        return FAILED

    def _interrupted(self, start: int, status: int, why: str, step: Optional[int]) -> None:
        self.say(f"start {start} ended with {status}: {why or 'no exception of its own on this node'}")
        # The newest: a record has its limits, and the journals have all.
        one = {"at": int(time.time()), "text": why[:200], "step": step}
        self.interruptions = [*self.interruptions[-49:], one]
        self._tell("running")

    def _over(self, status: int, began: float) -> Optional[int]:
        if (status == 0 or said(self.plan, "finished", began)) and not self.told:
            return DONE
        if self.told:
            self.say(f"ended with {status} after {signal.Signals(self.told).name}")
            return REQUEUE
        if said(self.plan, "requeue", began):
            self.say("a rank of another node was told to end; the run is saved")
            return REQUEUE
        return None

    def _refused(self) -> str:
        """Why this node must not train now; '' when it may. No answer is no go."""
        if os.path.exists(QUARANTINE):  # noqa: PTH110
            return f"saw this node in quarantine ({QUARANTINE}), wanted a healthy one; do: flightline incidents"
        away = not_mounted(self.plan.mounts) or too_small(self.plan.shm_gib)
        if away or not self.plan.gate:
            return away
        try:
            ended = subprocess.run(
                self.plan.gate, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=GATE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the gate gave no answer, which is no go: {error}"
        lines = ended.stdout.decode("utf-8", "replace").strip().splitlines()
        return (
            ""
            if ended.returncode == 0
            else f"the gate refuses this node ({ended.returncode}): {'; '.join(lines[:5])[:500]}"
        )

    def _let_others_go(self) -> None:
        """In a job of Slurm without a spare the others would wait for this sick node: the job starts again elsewhere.

        Only of a node in quarantine, for that one is drained: for any other reason the job could come back here.
        """
        job, nodes = os.environ.get("SLURM_JOB_ID"), int(os.environ.get("SLURM_JOB_NUM_NODES") or 0)
        if job and nodes <= self.plan.meeting.least and os.path.exists(QUARANTINE):  # noqa: PTH110
            self.say(f"no spare in job {job}: it goes back into the queue")
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(["scontrol", "requeue", job], timeout=GATE_S, check=False)

    def _start(self) -> int:
        environment = {**os.environ, **self.plan.environment}
        as_user: Dict[str, Any] = {}
        if self.plan.user and os.geteuid() == 0:
            import pwd

            entry = pwd.getpwnam(self.plan.user)
            os.chown(self.plan.logs, entry.pw_uid, entry.pw_gid)
            groups = os.getgrouplist(self.plan.user, entry.pw_gid)
            as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
            environment.update(HOME=entry.pw_dir, USER=self.plan.user, LOGNAME=self.plan.user)
        self._process = subprocess.Popen(self.plan.argv, cwd=self.plan.workdir, env=environment, **as_user)
        return self._wait(self._process)

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Its exit status. Once told to end, the ranks have the grace; then everything is killed."""
        end: Optional[float] = None
        while True:
            try:
                return process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
            self.cost.tell()
            if time.monotonic() > self._told_at + TELL_S:
                self._tell("running")
            if self.told and end is None:
                end = time.monotonic() + self.plan.grace_s
                self._tell_ranks(process.pid)
            if end is not None and time.monotonic() > end:
                self.say(
                    f"the ranks did not end in {self.plan.grace_s:.0f} s after {signal.Signals(self.told).name}: killed"
                )
                for pid in [*_below(process.pid), process.pid]:
                    _send(pid, signal.SIGKILL)
                return process.wait()

    def _tell_ranks(self, torchrun: int) -> None:
        """The ranks themselves: torchrun would end them 30 s after it was told, saved or not."""
        ranks = [pid for pid in _below(torchrun) if _is_rank(pid)]
        self.say(f"{signal.Signals(self.told).name} to {len(ranks)} ranks")
        for pid in ranks:
            _send(pid, signal.SIGTERM)

    def _hear(self, number: int, _frame: Any) -> None:
        self.told = self.told or number


def _below(root: int) -> List[int]:
    """Processes that a process has started, directly or not."""
    parents: Dict[int, List[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
        except (OSError, IndexError, ValueError):
            continue
    found, rest = [], [root]
    while rest:
        children = parents.get(rest.pop(), [])
        found += children
        rest += children
    return found


def _is_rank(pid: int) -> bool:
    """What torchrun itself has started: its own environment has no LOCAL_RANK, a rank's children share the rank's."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            parent = file.read().rpartition(")")[2].split()[1]
        return _has_rank(str(pid)) and not _has_rank(parent)
    except OSError:
        return False


def _has_rank(pid: str) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return any(entry.startswith(b"LOCAL_RANK=") for entry in file.read().split(b"\0"))


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _say(line: str) -> None:
    sys.stderr.write(f"flightline-train: {line}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def only_one(plan: LaunchPlan) -> Iterator[None]:
    """Hold the run's name on this node. Raises Wrong while another run has it."""
    os.makedirs(plan.logs, mode=0o750, exist_ok=True)  # noqa: PTH103
    # Only to read: the unit's file is root's, and Slurm starts the same job as its user.
    lock = os.open(f"{plan.logs}/.lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Wrong(
            f"{plan.job}: saw that a run of this name is on this node already, wanted none; "
            f"do: end it, or wait for its end"
        ) from None
    finally:
        os.close(lock)


def _read(path: str, needed: bool) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        if not needed:
            return {}
        raise Wrong(f"saw no {path}, wanted it; do: run the role training, with this job in training_jobs") from None
    except (OSError, ValueError) as error:
        raise Wrong(f"{path}: saw {error}, wanted what the role writes; do: run the role training again") from None
    if not isinstance(found, dict):
        raise Wrong(f"{path}: saw {type(found).__name__}, wanted an object")
    return found


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one job."""
    first, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "flightline-train", description=f"{first} {rest}", epilog="Example: flightline-train llama-1"
    )
    parser.add_argument("job", help="its name in the variable training_jobs")
    parser.add_argument("--settings", default=SETTINGS, help="%(default)s")
    parser.add_argument("--jobs", default=JOBS, help="directory with a file of each job; %(default)s")
    parser.add_argument("--asked", default=ASKED, help="directory with what a run was asked for with; %(default)s")
    parser.add_argument("--no-gate", action="store_true", help="somebody else asks it: Slurm's prolog")
    parser.add_argument("--rendezvous", default="", help="HOST:PORT in place of the job's")
    parser.add_argument("--nodes", type=int, help="exactly so many nodes, in place of the job's")
    given = parser.parse_args(arguments)
    try:
        if not JOB.fullmatch(given.job):
            raise Wrong(f"saw job {given.job!r}, wanted small letters, digits and dashes")
        settings, one = _read(given.settings, True), _read(f"{given.jobs}/{given.job}.json", True)
        one.update({"rendezvous": given.rendezvous} if given.rendezvous else {})
        one.update({"nodes": [given.nodes, given.nodes]} if given.nodes else {})
        settings.update({"gate": []} if given.no_gate else {})
        asked = _read(f"{given.asked}/{given.job}.json", False)
        made = plan(given.job, settings, one, asked, _text(f"{given.asked}/{given.job}.manifest").strip())
        with only_one(made):
            return JobRun(made, _say).told_of()
    except KeyError as error:
        _say(f"{given.settings}: saw no {error}; do: run the role training again")
        return BROKEN
    except (Wrong, OSError) as error:
        _say(f"{error}")
        return BROKEN


if __name__ == "__main__":
    sys.exit(main())
