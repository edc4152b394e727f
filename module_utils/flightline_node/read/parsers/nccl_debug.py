"""NCCL_DEBUG=INFO output: which network, which provider, which paths NCCL took.

Reads a job's nccl-debug.log and the NCCL lines inside nccl-tests logs. Wording after NCCL 2.10
to 2.31 and aws-ofi-nccl 1.5 to 1.21.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from ...know.catalog import cuda, job_faults
from ...know.catalog import nccl_warnings as words
from ...know.catalog.harmless_logs import is_harmless
from ...model import Facts, ParseError
from ..bundle import Data
from . import kernel_shape, nccl_files, ranks
from .lazy import Lazy
from .log_shape import Unread
from .nccl_files import JOB_LOG

FILES = (nccl_files.JOB_LOG, *nccl_files.FILES)
LATER = True

MAX_TEXTS, MAX_TEXT_CHARS = 200, 600

_ORIGIN = re.compile(r"([^\s:]{1,255}):\d+:\d+ \[(\d+)\]")
_VERSION = re.compile(r"NCCL version (\d[\w.]*)(?:\+cuda([\d.]+))?")
_PLUGIN = re.compile(r"aws-ofi-nccl(?: version)? (\S+)")
_NETWORK = re.compile(r"Using network (\S.*)|Assigned NET plugin (\S.*?) to comm")
_PROVIDER = re.compile(r"Selected [Pp]rovider is ([\w;-]+)\*?(?:, fabric is ([\w-]+))?(?: ?\(found (\d+) nics?\))?")
_VIA = re.compile(r" via (NET/([\w ]+?)/\d+\S*|[A-Z]\w*(?:/[A-Za-z]\w*)*)")
_HCA = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for HCA")
_RANKS = re.compile(r"n[Rr]anks (\d+)")
_FAILURE = re.compile(
    r"\b(?:CUDA|Cuda) failure\b|[Uu]ncorrectable (?:ECC|NVLink) error"
    r"|Failed to (?:initialize any NET plugin|bind NVLink SHARP)"
)
_COMPLETION = re.compile(r"efa:cq:\w{0,40}?_error\(\):\d{1,6}<(?:warn|info)> (?!.{0,40}message: Flushed ).*")
"""A request that libfabric gave up. One flushed is what a queue pair that is closed leaves."""
_TIMEOUT = re.compile(r"collective operation timeout: WorkNCCL\(SeqNum=\d{1,18}, OpType=\w{1,40}")
"""PyTorch's watchdog, once a rank: the operation names what hung, whichever rank it was."""
_NVLS = "transport/nvls.cc"
_JOB = re.compile(
    r"Watchdog caught collective operation timeout|watchdog thread terminated with exception|watchdog got stuck"
    r"|detected by watchdog at work|Some NCCL operations have failed|taking the entire process down|NCCLABORTEDCOMM:"
    r"|flight recorder dump signal|\bnccl(?:Invalid\w{2,30}|\w{2,30}Error)\b|NCCL [Ee]rror"
    r"|Dist(?:Backend|Store|Network)Error|OutOfMemoryError|reached monitoredBarrier, but|\bLast error:|CUDA error"
    r"|NCCL communicator .{0,40}\baborted\b|CUDA unknown error|ChildFailedError|closing signal SIG"
    r"|failed \(exitcode: -?[1-9]|Fatal Python error|Heartbeat monitor timed out|Timeout at NCCL work"
    r"|\bSIG(?:ABRT|SEGV|BUS|KILL)\b|Segmentation fault|terminate called after throwing|Test (?:NCCL|CUDA) failure"
    r"|(?:mpirun|prterun) noticed that process|srun: error: |exited on signal \d|non-zero exit code"
    r"|^(?:\[\S{1,40}\]:? ?)?(?:\w{1,40}\.){0,9}\w{1,60}(?:Error|Exception): "
    r"|(?:Child|forked) process .{0,60}\bdied\b|Terminating the process after"
)
"""How PyTorch, nccl-tests and the launchers say that the job failed. Whose fault it is, other lines may tell."""
_HINTS = (
    "rror", "imeout", "imed out", "bort", "BORT", "atchdog", "SIG", "egmentation", "exit", "terminate ", "ail", "nccl",
    "signal", "Barrier", "entire process", "CANCEL", "Interrupt", "out of mem", "size of tensor", "DataLoader",
    "Xid", "nvidia-smi", "NVIDIA", "NVML", "nvml", "NVLink", "file system", "file handle", "nable to", "ibv_",
    "devices ",
    "NODE", "Node ", "route to", "reach", "communication", "Duplicate", "mismatch", "ang", "lost", "off the", " down",
    "flap", "Killed", "illed", "reset", "unavail", "No space", "cudaE", "not found", "not known", "libfabric",
    "initialized", "arguments", "resolution", "rails", "oom", "slots", "endpoint", "No CUDA", "unrecog", "illegal",
    "xceed", "xception", "kernel ABI", "UCX", "Permission denied", "unexpectedly", "PMIX_ERR", "know how to route",
)  # fmt: skip
_LIBFABRIC = re.compile(r"libfabric:\d+:.{0,80}?:(efa:.{0,60}<(?:warn|error|critical)>.*)")
_RETURNED = re.compile(r"[\w/.]+\.(?:cc|cu|h):\d+ -> [1-6]\b")
"""NCCL passes an error up: each caller prints where it was and the result (7 is no error: in progress)."""
_GOES_ON = ("Init COMPLETE", "Destroy COMPLETE")
_TEST_ENDED = "Avg bus bandwidth"
_AFTER_LAST_ERROR = 3
"""Lines after PyTorch's "Last error:" that may hold NCCL's own words."""
_PLUGIN_TROUBLE = (
    "No eligible providers", "Could not find any optimal provider", "Couldn't find any optimal provider",
    "fi_getinfo() call failed", "No plugin found", "provider efa output empty list",
    "NET/IB : No device found",
)  # fmt: skip
_RAS = re.compile(
    r"\d+ job process(?:es)? (?:is|are) considered dead|\bPEER_DEAD: |Missing communicator data|The missing rank"
    r"|\"(?:considered_dead|unresponsive)\": true|\"async_error\": [1-6]\b|Process \d+ on node \S+ managing GPU"
)
"""What NCCL's RAS (docs/userguide/source/troubleshooting/ras.rst) says of processes. A MISMATCH alone is a moment."""
_RAS_REPORT = ("Communicators... (", "RAS Monitor Mode", '"communicators_count"')
_AT_WORK = re.compile(
    r"\b(?:step|iter(?:ation)?s?|epoch|batch|loss|lr|tokens?|samples?|train\w*|world[_ ]size|rank|warm-?up\w*"
    r"|ckpt|checkpoint\w*"
    r"|Traceback|\w{3,40}Error|UCX|ib_\w+|model|dataset|throughput|tflops|mpirun|torchrun|srun)\b"
    r"|\b(?:it|tok|samples)/s|\bGPUs?\b|CUDA|torch", re.IGNORECASE,
)  # fmt: skip
"""What tells a job's log without a line of NCCL from any other text."""
_ADVICE = "https://docs.nvidia.com/cuda/"
"""PyTorch 2.10 and later say below each CUDA error where NVIDIA explains it, and name the error again."""
_PARTS = Lazy(
    r"NET/|NCCL|nccl[A-Z_]|\bOFI\b|libfabric|\befa|rdmap\d|\bibv_|mlx5|NVLink|NVSwitch|nvml|NVML|NVRM|\bXid\b|\bECC\b"
    r"|CUDA[ _](?:error|ERROR|driver)|\bcuda[A-Z]\w+|\bGPU ?#?\d.{0,40}(?:[Ff]ail|lost|hung|fallen|dead|respon)"
    r"|[Ff]abric ?[Mm]anager|IMEX"
)
"""What a line of a job's log must name: most of it is the program's own, which speaks of errors of other kinds."""


class _DebugLog:
    """What has been seen so far; texts are bounded, whatever the log's size."""

    def __init__(self) -> None:
        self.info_lines = self.lines = 0
        self.at_work = False
        self.one: Dict[str, str] = {}
        self.networks: List[str] = []
        self.providers: List[str] = []
        self.fabrics: List[str] = []
        self.warnings: List[str] = []
        self.failures: List[str] = []
        self.plugin_trouble: List[str] = []
        self.evidence: List[str] = []
        self.transports: Counter[str] = Counter()
        self.hosts: Set[str] = set()
        self.libfabric: List[str] = []
        self.job: List[str] = []
        self.ras: List[str] = []
        self.reports = 0
        self.unread = Unread(_PARTS)
        self.pending: Dict[str, List[str]] = {}
        self.quoted = 0
        self.of_a_job = True
        self.nics = self.ranks = self.gpus = self.net_gdr = self.net_plain = 0
        self.hca_gdr: Optional[bool] = None
        self.nvls: Optional[bool] = None

    def feed(self, line: str) -> None:
        self.lines += self.of_a_job and bool(line.strip())
        if "NCCL INFO" not in line and "NCCL WARN" not in line:
            self._other(line)
        if "NCCL" not in line:
            return
        version = _VERSION.search(line) if "NCCL version" in line else None
        if version:
            self.one.setdefault("nccl_version", version.group(1))
            if version.group(2):
                self.one.setdefault("nccl_cuda_version", version.group(2))
        where = line.find("NCCL WARN")
        if where >= 0:
            self.info_lines += 1
            text = line[where + len("NCCL WARN") :].strip()
            _add(self.warnings, text)
            self._suspend(line, where, text)
            # An 'invalid argument' means a fault of the fabric there, and any mistake elsewhere.
            if text.startswith("Cuda failure") and line.find(_NVLS, max(0, where - 80), where) >= 0:
                _add(self.failures, f"{_NVLS}: {text}")
            return
        where = line.find("NCCL INFO")
        if where < 0:
            return
        self._info_line(line, where)

    def _info_line(self, line: str, where: int) -> None:
        self.info_lines += 1
        origin = _ORIGIN.search(line, max(0, where - 400), where)
        before = line[: origin.start()].rstrip() if origin else ""
        # After a piece of an nccl-tests row the host name has a number glued to it: not a host.
        if origin and (not before or before[-1] in "]|:>") and len(self.hosts) < MAX_TEXTS:
            self.hosts.add(origin.group(1))
        self.gpus = max(self.gpus, int(origin.group(2)[:9]) + 1 if origin else 0)
        text = line[where + len("NCCL INFO") :].strip()
        if " -> " in text and _RETURNED.match(text):
            self._suspend(line, where, text)
        elif "COMPLETE" in text and text.endswith(_GOES_ON):
            self.pending.pop(_process(line, where), None)
        if " via " not in text:
            self.unread.note(text, known_form=True)
        self._info(text)

    def _suspend(self, line: str, where: int, text: str) -> None:
        """An error of a process is open until the same process is seen to go on."""
        who = _process(line, where)
        if who in self.pending or len(self.pending) < MAX_TEXTS:
            _add(self.pending.setdefault(who, []), text)

    def _other(self, line: str) -> None:
        """What the program, libfabric and the launcher print themselves."""
        self.at_work = self.at_work or (self.of_a_job and _AT_WORK.search(line) is not None)
        if self.quoted:
            self.quoted -= 1
            if line.strip():
                _add(self.job, line.strip())
        if _TEST_ENDED in line:
            self.pending.clear()
        taken = self._efa(line) if "efa:" in line else False
        taken |= self._failed(line) if any(hint in line for hint in _HINTS) else False
        if not (taken or self._ofi(line) or self._ras(line) or self._plugin_trouble(line)):
            self.unread.note(line, known_form=not self.of_a_job)

    def _ofi(self, line: str) -> bool:
        """A line of the EFA plugin that lost NCCL's head."""
        text = line[line.find(words.OFI) :].strip() if words.OFI in line else ""
        if text and kernel_shape.speaks_of_failure(text) and not is_harmless(text):
            _add(self.warnings, text)
            self._suspend(line, 0, text)
        elif text:
            self.info_lines += 1
            self._info(text)
        return bool(text)

    def _ras(self, line: str) -> bool:
        self.reports += any(mark in line for mark in _RAS_REPORT)
        found = _RAS.search(line) is not None
        _add(self.ras, line.strip()[:MAX_TEXT_CHARS] if found else "")
        return found

    def _efa(self, line: str) -> bool:
        completion, said = _COMPLETION.search(line), _LIBFABRIC.search(line)
        if completion:
            _add(self.failures, completion.group(0).strip())
        elif said and "message: Flushed" not in line:
            _add(self.libfabric, said.group(1).strip())
        return bool(completion or said)

    def _failed(self, line: str) -> bool:
        failure = bool(_FAILURE.search(line)) or job_faults.names_fault(line) or any(cuda.faults_in([line]))
        failure = failure or (not self.of_a_job and job_faults.SYSTEM.search(line) is not None)
        if failure:
            _add(self.failures, line.strip())
        timeout = _TIMEOUT.search(line) if "operation timeout" in line else None
        found = None if timeout else _JOB.search(line) or words.OWN_FAULT.search(line)
        if self.of_a_job and (timeout or found):
            _add(self.job, timeout.group(0) if timeout else line.strip()[:MAX_TEXT_CHARS])
        if self.of_a_job and found and "Last error:" in line:
            self.quoted = _AFTER_LAST_ERROR
        return bool(failure or timeout or found or _ADVICE in line)

    def _info(self, text: str) -> None:
        via = _VIA.search(text) if " via " in text else None
        if via:
            self._channel(via)
        elif "etwork" in text or "NET" in text or "ofi" in text:
            self._network(text)
        elif "NVLS" in text:
            if "not available" in text or "not supported" in text:
                self.nvls = self.nvls or False
            elif "available" in text or "Creating Multicast" in text or "Connected NVLS" in text:
                self.nvls = True
        ranks = _RANKS.search(text) if "anks" in text else None
        if ranks:
            self.ranks = max(self.ranks, int(ranks.group(1)[:9]))

    def _channel(self, via: re.Match[str]) -> None:
        path, network = via.group(1), via.group(2)
        if not network:
            self.transports[path] += 1
            return
        self.transports["NET/" + network] += 1
        if "/GDRDMA" in path:
            self.net_gdr += 1
        else:
            self.net_plain += 1

    def _network(self, text: str) -> None:
        plugin = _PLUGIN.search(text) if "aws-ofi-nccl" in text else None
        network = _NETWORK.search(text) if "network" in text or "plugin" in text else None
        provider = _PROVIDER.search(text) if "rovider is" in text else None
        hca = _HCA.search(text) if "GPU Direct" in text else None
        if plugin and ("Using" in text or "Initializing" in text):
            self.one.setdefault("ofi_plugin_version", plugin.group(1).rstrip(",;"))
        if network:
            _add(self.networks, (network.group(1) or network.group(2)).strip())
        if provider:
            _add(self.providers, provider.group(1))
            if provider.group(2):
                _add(self.fabrics, provider.group(2))
            self.nics = max(self.nics, int((provider.group(3) or "0")[:9]))
        if hca:
            self.hca_gdr = self.hca_gdr is not False and hca.group(1) == "Enabled"
        trouble = self._plugin_trouble(text)
        if (network or provider or trouble) and len(self.evidence) < MAX_TEXTS:
            _add(self.evidence, text)

    def _plugin_trouble(self, text: str) -> bool:
        trouble = any(mark in text for mark in _PLUGIN_TROUBLE)
        if trouble:
            _add(self.plugin_trouble, text)
        return trouble

    def size(self) -> Tuple[int, ...]:
        """How much has been read of what this parser is for."""
        read = (self.failures, self.libfabric, self.job, self.ras, self.warnings)
        return (self.info_lines, self.reports, *map(len, read))

    def facts(self) -> Facts:
        facts: Facts = {"info_lines": self.info_lines, "warnings": self.warnings, **self.one}
        if self.networks:
            facts["network"] = next((n for n in self.networks if "libfabric" not in n.lower()), self.networks[0])
            facts["networks"] = self.networks
        if self.providers:
            facts["provider"] = next((p for p in self.providers if p != "efa"), self.providers[0])
        lists: Dict[str, Any] = {
            "failures": self.failures,
            "libfabric": self.libfabric,
            "job": self.job,
            "ras": self.ras,
            "unfinished": list(dict.fromkeys(text for texts in self.pending.values() for text in texts)),
            "fabrics": self.fabrics,
            "plugin_trouble": self.plugin_trouble,
            "evidence": self.evidence,
            "transports": dict(sorted(self.transports.items())),
        }
        numbers = {"nics": self.nics, "ranks": self.ranks, "gpus": self.gpus, "lines": self.lines}
        numbers["hosts"] = len(self.hosts)
        facts.update({name: value for name, value in {**lists, **numbers}.items() if value})
        facts["gdrdma"] = self._gdrdma()
        if self.nvls is not None:
            facts["nvls"] = self.nvls
        return {**facts, **self.unread.facts()}

    def _gdrdma(self) -> Optional[bool]:
        """Channels decide, since they are the paths taken; one without GPUDirect RDMA makes it False."""
        if self.net_gdr or self.net_plain:
            return not self.net_plain
        return self.hca_gdr


def _process(line: str, where: int) -> str:
    """host:pid of an NCCL line, by which its errors and its going on belong together."""
    origin = _ORIGIN.search(line, max(0, where - 400), where)
    return origin.group(0).rsplit(":", 1)[0] if origin else ""


def _add(texts: List[str], text: str) -> None:
    if text and len(texts) < MAX_TEXTS and text not in texts:
        texts.append(text)


def parse(files: Mapping[str, Data]) -> Facts:
    """{nccl_version, ofi_plugin_version, network, provider, gdrdma, warnings[], ...} of all the logs.

    network: as NCCL names it ('AWS Libfabric', 'Libfabric', 'Socket', 'IB'); when ranks differ, one
    that is not libfabric (all are in networks[]). provider: likewise one that is not efa. gdrdma:
    True when every network channel shows GDRDMA, False when one does not, None when the log shows no
    network channel. warnings: distinct NCCL WARN texts. failures[]: what the program itself printed of a CUDA error
    or of NCCL's last one, and libfabric of a request that failed; libfabric[]: its other warnings. job[]: how PyTorch
    or the launcher say that the job failed (not of a test's log, which nccl_tests reads). ras[]: what NCCL's RAS says
    of processes that are dead or do not answer. unfinished[]: NCCL's warnings and errors after which the process that
    printed them was not seen to go on. Also info_lines (number of NCCL lines; 0 for a test run without NCCL_DEBUG),
    nccl_cuda_version, fabrics[] ('efa', 'efa-direct'), nics, hosts, ranks,
    gpus (of a node, at least), transports{path: channels}, nvls,
    plugin_trouble[], evidence[].
    lines: how many nccl-debug.log has. Raises ParseError when that is no job's log.
    """
    reading = _DebugLog()
    for file, data in files.items():
        before = reading.size()
        reading.of_a_job = file == JOB_LOG
        for line in ranks.lines(data):
            reading.feed(line)
        untold = reading.size() == before and "nccl_version" not in reading.one
        if file == JOB_LOG and untold and not reading.at_work:
            raise ParseError(f"{file}: no NCCL INFO or WARN line in it, and no word of a job at work")
    return reading.facts()
