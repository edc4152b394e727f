"""What a job's log says when the node, its fabric or its installation is broken, and the job is not to blame.

Sources: the error strings of NVML, the CUDA runtime, rdma-core, UCX and the kernel's errno; NVIDIA/nccl src/misc/socket.cc
and src/transport/net_ib; aws/aws-ofi-nccl; libfabric's providers; PyTorch's c10d and torch/cuda; Open MPI's and Slurm's
launchers. What a program does to itself is nccl_warnings.OWN_FAULT.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Iterable, Iterator, List, NamedTuple, Tuple

from ...model import Facts, Remedy


class JobFault(NamedTuple):
    """One kind of fault: the pattern of its lines."""

    id: str
    remedy: Remedy
    meaning: str
    pattern: str


FAULTS: Tuple[JobFault, ...] = (
    JobFault(
        "driver", Remedy.UPDATE_SOFTWARE, "the NVIDIA driver does not answer",
        r"nvidia-smi['\"]?: (?:command )?not found|(?:No such file or directory"
        r"|executable file not found).{0,20}nvidia-smi"
        r"|[Cc]ould(?:n't| not) (?:talk|communicate) (?:to|with) the NVIDIA driver|[Ff]ound no NVIDIA driver"
        r"|NVIDIA driver on your system is too old|[Ff]ailed to initialize NVML|nvmlInit\w*(?:\(\))? *(?:failed"
        r"|error|returned [1-9])"
        r"|NVMLError_(?:DriverNotLoaded|LibRmVersionMismatch|LibraryNotFound|Unknown)|NVML: (?:Driver Not Loaded"
        r"|Unknown Error)"
        r"|[Dd]river/library version mismatch|CUDA driver initialization failed"
        r"|could not select device driver|nvidia-container-cli: (?:initialization|nvml|driver) error",
    ),
    JobFault(
        "gpu", Remedy.REBOOT, "a GPU is gone or does not work",
        r"[Uu]nable to determine the device handle|[Nn]o CUDA-capable device|No CUDA GPUs are available"
        r"|busy or unavailable"
        r"|CUDA(?: error:)? unknown error|CUDA_ERROR_(?:UNKNOWN|DEVICE_UNAVAILABLE|NO_DEVICE|HARDWARE_STACK_ERROR)"
        r"|cudaError(?:DevicesUnavailable|NoDevice|HardwareStackError)|[Hh]ardware stack error"
        r"|NVMLError_(?:GpuIsLost|ResetRequired)"
        r"|GPU (?:is lost|has fallen off)|fallen off the bus|HW Exception by GPU|GPU [Hh]ang\b|GPU.{0,20}requires reset"
        r"|nrt_init.{0,20}fail|\bNRT:.{0,120}(?:hardware error|uncorrect|hang)"
        r"|\bXid\b(?: \(PCI:[^)]{1,20}\))?[ :=]{1,3}(?!(?:13|31|43|45|63|92|94|154)\b)\d{2,3}\b",
    ),
    JobFault(
        "nvlink", Remedy.REBOOT, "NVLink or an NVSwitch failed",
        r"NVLink (?:error|failure|link \d+ (?:is )?(?:down|inactive))(?!s?[:=]? *0\b)|peer GPU memory over nvlink|NVSwitch (?:fatal|error)"
        r"|\bSXid\b",
    ),
    JobFault(
        "peer_access", Remedy.FIX_CONFIG, "GPUs of the node cannot share memory: P2P, NVLink SHARP or the container's set-up",
        r"\b(?:cuda|hip)Ipc\w{3,30}(?:\(\))? ?(?:failed|returned|error)|Failed to bind NVLink SHARP",
    ),
    JobFault(
        "file_system", Remedy.INVESTIGATE, "a file system failed under the job",
        r"Stale (?:NFS )?file handle|Errno (?:5|28|30|107|108|112|116|121)\]|(?<!ucx send failed: )Input/output error"
        r"|Read-only file system|[Tt]ransport endpoint (?:is not connected|shutdown)|Remote I/O error"
        r"|No space left on device",
    ),
    JobFault(
        "rdma", Remedy.INVESTIGATE, "the RDMA device, its set-up or its fabric failed",
        r"\bibv_\w+.{0,80}(?:[Ff]ail|[Ee]rror|Bad address|Cannot allocate)|[Ff]ailed to register address"
        r"|Unable to open device"
        r"|UCX +ERROR.{0,120}(?:ibv_|mlx5|rdma|regist|unreach|[Tt]ransport retry|[Ee]ndpoint timeout"
        r"|no .{0,20}transports?)"
        r"|[Tt]ransport retry c(?:ounter|ount) exceeded|[Rr]etry exceeded|\b(?:local|remote) (?:QP |)operation error"
        r"|(?<!non-fatal )\bport error\b|[Aa]sync event ?:? ?(?:device fatal|local catastrophic)|link flap"
        r"|Failed to register CUDA buffer with the EFA|Unexpected number of remote rails"
        r"|\bcxip?\w*:.{0,80}\berror \(err"
        r"|\bno (?:EFA|RDMA|Infini[Bb]and) devices? (?:was |were )?(?:found|detected|available)"
        r"|does not support the kernel ABI|UCX +ERROR.{0,80}failed to insert region|Failed: UCX error"
        r"|NET/OFI (?:Unexpected status|.{0,40}unexpected request type)"
        r"|UCX +WARN +transports? .{0,40}(?:cuda|rocm|rc|dc|ud)\w*'.{0,40}not available",
    ),
    JobFault(
        "peer", Remedy.INVESTIGATE, "a host of the job cannot be reached",
        r"connect to \S{1,80} (?:returned|failed).{0,40}(?:timed out|[Nn]o route|unreachable)"
        r"|exceeded error retry count"
        r"|[Nn]o route to host|Network is unreachable|[Hh]ost is down|ssh: connect to host \S+ port"
        r"|Host key verification failed"
        r"|lost communication with|unable to reliably start"
        r"|nable to complete a TCP connection|[Ss]oftware caused connection abort|Destination is unreachable|[Ss]lurmd could not connect"
        r"|NODE[ _]FAIL|[Nn]ode failure on"
        r"|client socket has (?:timed out|failed to connect).{0,200}connect to|name resolution"
        r"|Name or service not known|Permission denied \(publickey|unable to reach each other for MPI"
        r"|(?:ORTE|PRTE) (?:does not know how to route|has lost)|PMIX_ERR_(?:UNREACH|LOST_CONNECTION|COMM_FAILURE)"
        r"|daemon (?:\(pid \d+\) )?died unexpectedly",
    ),
    JobFault(
        "memory", Remedy.FIX_CONFIG, "the host's shared or locked memory is too small",
        r"insufficient shared memory|RLIMIT_MEMLOCK|max locked memory|memlock limit",
    ),
    # graph/xml.h: what it looks for stands in every machine's /sys.
    JobFault(
        "topology", Remedy.FIX_CONFIG, "NCCL cannot read the node's topology from /sys or its file",
        r"\bAttribute \S{1,40} of node \S{1,40} not found|^XML Parse ",
    ),
    JobFault(
        "library", Remedy.FIX_CONFIG, "a library of the installation is missing",
        r"error while loading shared libraries|(?:orted|prted|mpirun|mpiexec|srun): (?:command )?not found",
    ),
)  # fmt: skip

ONE_DEVICE = re.compile(r"ibv_open_device failed|Unable to open device")
"""One of the host's RDMA devices: a container without it, or one that is not of the fabric. A job that then works has others."""


def left_out(facts: Facts) -> List[str]:
    """What NCCL said of RDMA devices before the job did its steps without them."""
    return [line for line in facts.get("outlived", []) if ONE_DEVICE.search(line)]


_DOES_WITHOUT = re.compile(r"[Hh]ost id|[Ff]alling back|not (?:specified|supported)|[Dd]isabl")


def libfabric_alone(facts: Facts) -> List[str]:
    """What libfabric's EFA provider complains of in a log in which neither NCCL nor a step of the job follows."""
    passed = facts.get("outlived", [])
    said = [] if facts.get("info_lines") else facts.get("libfabric", [])
    return [line for line in said if line not in passed and not _DOES_WITHOUT.search(line)]


SYSTEM = re.compile(r"unhandled system error|\bncclSystemError\b")
"""NCCL's word for a system call or a library outside it that failed; for remote and CUDA errors it has others."""


@lru_cache(maxsize=1)
def _any() -> re.Pattern[str]:
    return re.compile("|".join(fault.pattern for fault in FAULTS))


NO_IB, NODE_GPUS = "NET/IB : No device found", 8


def names_fault(line: str) -> bool:
    """Does a line of a job's log name a fault of the node, the fabric or the installation?"""
    return _any().search(line) is not None


def faults_in(lines: Iterable[str]) -> Iterator[Tuple[JobFault, List[str]]]:
    """The faults that are named, each with the lines that name it; a line counts for the first alone."""
    left = [line for line in lines if names_fault(line)]
    for fault in FAULTS if left else ():
        named = [line for line in left if re.search(fault.pattern, line)]
        left = [line for line in left if line not in named]
        if named:
            yield fault, named


def sockets_alone(facts: Facts) -> str:
    """Where sockets are a fault on any type: between hosts, and on a node of eight GPUs, which is built for a cluster.

    A workstation has no other network.
    """
    looked = any(line.startswith(NO_IB) for line in facts.get("plugin_trouble", []))
    if not looked or facts.get("provider") or facts.get("networks", ["Socket"]) != ["Socket"]:
        return ""
    if facts.get("hosts", 0) > 1 or "NET/Socket" in facts.get("transports", {}):
        return "between hosts"
    return "on a node of eight GPUs" if facts.get("gpus", 0) >= NODE_GPUS and facts.get("network") else ""
