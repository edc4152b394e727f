"""The faults that a simulated node can have. To add one, add an entry to `_ALL`; nothing else.

A fault turns the stored outputs of a healthy node into those of a broken one. It is named in the host
variable `demo_faults` and by `flightline demo --fault NAME=NODE`. A simulated fault proves the way from
a tool's output to the verdict; that a real fault is recognised is proven on recorded outputs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from flightline_node.model import Remedy, SettingsError, Status

from . import active, host, kernelfs, smi
from . import neuron_faults as nf
from .hardware import HOSTNAME, Machine
from .tree import Entry, Files, Tool, healthy, paths_below, text, without_efa

Change = Mapping[str, Optional[Entry]]
"""Paths that a fault alters; None takes a file away."""

Apply = Callable[[Mapping[str, Entry], Machine], Change]

ACTIVE = (
    "dcgm_diag", "nccl_correctness", "nccl_busbw", "nccl_transport", "gpu_load", "gpu_compute", "gpu_bandwidth",
    "efa_loopback", "fs_io", "fio_disk", "nccom_test", "nccom_busbw",
)  # fmt: skip
"""Checks of active tests: none of them starts on a node in use."""

GPU = 3
"""The GPU that faults of one GPU are about (the only one on a type that has one)."""

NODE, FLEET, CONNECTION = "node", "fleet", "connection"


class DoesNotApply(ValueError):
    """The instance type lacks what the fault is about."""


@dataclass(frozen=True)
class Fault:
    """A fault and what must become of it.

    check: the check whose finding must not be PASS. status and remedy: of that finding. also: checks
    that may answer with FAIL or UNKNOWN besides, because the same fault shows there. blinds: parsers
    whose output it spoils, so that every check resting on them may be UNKNOWN. scope: NODE, FLEET (each
    node is go, the comparison of the fleet finds it) or CONNECTION (the node does not answer).
    type: an instance type it can be shown on. level: the lowest level that looks for it.
    """

    name: str
    what: str
    check: str
    remedy: Remedy
    apply: Apply
    status: Status = Status.FAIL
    also: Tuple[str, ...] = ()
    blinds: Tuple[str, ...] = ()
    scope: str = NODE
    type: str = "p5.48xlarge"
    level: str = "quick"

    @property
    def blocks(self) -> bool:
        """Whether it makes the node no-go."""
        return self.status in (Status.FAIL, Status.UNKNOWN, Status.UNREACHABLE)


def _target(machine: Machine) -> int:
    if machine.neuron:
        raise DoesNotApply("it has no GPU")
    return min(GPU, machine.gpu_count - 1)


def _sub(content: str, pattern: str, new: str, what: str) -> str:
    changed, count = re.subn(pattern, lambda _: new, content, count=1, flags=re.DOTALL)
    if not count:
        raise DoesNotApply(f"no {what} in the output of this instance type")
    return changed


def _smi(*edits: Tuple[str, str]) -> Apply:
    """Set elements of one GPU in nvidia-smi's XML; each is ('section/tag', value), the section optional."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        content = text(files, "out/nvidia-smi.xml")
        blocks = content.split("\t<gpu id=")
        block = blocks[1 + _target(machine)]
        for path, value in edits:
            section, _, tag = path.rpartition("/")
            before, found, rest = block.partition(f"<{section}>") if section else ("", "", block)
            if section and not found:
                raise DoesNotApply(f"no {section} in the output of this instance type")
            old = re.search(f"<{tag}>([^<]*)</{tag}>", rest)
            # An N/A says that the part has no such thing to break.
            if not old or (old.group(1) == "N/A" and value != "N/A"):
                raise DoesNotApply(f"{machine.gpu.name} has no {tag}")
            block = before + found + rest[: old.start(1)] + value + rest[old.end(1) :]
        blocks[1 + _target(machine)] = block
        return {"out/nvidia-smi.xml": "\t<gpu id=".join(blocks).encode()}

    return apply


def _smi_all(tag: str, value: str) -> Apply:
    """Set an element of every GPU."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        content, count = re.subn(f"<{tag}>[^<]*</{tag}>", f"<{tag}>{value}</{tag}>", text(files, "out/nvidia-smi.xml"))
        if not count:
            raise DoesNotApply(f"{machine.gpu.name} has no {tag}")
        return {"out/nvidia-smi.xml": content.encode()}

    return apply


def _log(*messages: str) -> Apply:
    """Kernel messages some minutes after boot; {pci} is the GPU without function, {pcif} with it."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        full = machine.gpu_pci()[_target(machine)]
        lines = [
            f"{host.stamp(0)[:11]}09:1{index // 60}:{index % 60:02d}+0000 {HOSTNAME} kernel: "
            + message.format(pci=full[:-2], pcif=full, index=_target(machine))
            for index, message in enumerate(messages)
        ]
        return {"out/kernel.log": (text(files, "out/kernel.log") + "\n".join(lines) + "\n").encode()}

    return apply


def _xid(code: int, rest: str, process: str = "pid='<unknown>', name=<unknown>") -> Apply:
    return _log(f"NVRM: Xid (PCI:{{pci}}): {code}, {process}, {rest}")


def _edit(path: str, pattern: str, new: str) -> Apply:
    """Replace the first match of a pattern in a stored file."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if path not in files:
            raise DoesNotApply(f"no {path} on this instance type")
        return {path: _sub(text(files, path), pattern, new, path.rpartition("/")[2]).encode()}

    return apply


def _all(*steps: Apply) -> Apply:
    """Several changes, each seeing those before it."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        done: Dict[str, Optional[Entry]] = {}
        for step in steps:
            done.update(step({**files, **{path: entry for path, entry in done.items() if entry is not None}}, machine))
        return done

    return apply


def _tool(name: str, **fields: Any) -> Apply:
    """Change fields of a simulated tool."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        tool = files[f"tools/{name}"]
        return {f"tools/{name}": replace(tool, **fields) if isinstance(tool, Tool) else tool}

    return apply


def _without_line(content: str, pci: str) -> str:
    return _sub(content, rf"(?<=\n){re.escape(pci)} [^\n]*\n", "", f"device {pci}")


def _unlisted(files: Mapping[str, Entry], machine: Machine) -> Dict[str, str]:
    """nvidia-smi's answers without one GPU; those after it move up in the numbering."""
    index = _target(machine)
    head, *gpus = text(files, "out/nvidia-smi.xml").split("\t<gpu id=")
    if machine.gpu_count == 1:
        raise DoesNotApply("it has one GPU, and nvidia-smi prints nothing without any")
    tail = gpus[-1].partition("\t</gpu>\n")[2] if index == len(gpus) - 1 else ""
    del gpus[index]
    found = {
        "out/nvidia-smi.xml": "\t<gpu id=".join([head, *gpus]) + tail,
        "out/nvidia-smi-topo.txt": smi.topo(machine, frozenset({index})),
    }
    for path in ("out/nvlink-status.txt", "out/nvlink-errors.txt", "out/nvidia-smi-list.txt"):
        blocks = re.split(r"^GPU \d+", text(files, path), flags=re.MULTILINE)[1:]
        kept = [block for position, block in enumerate(blocks) if position != index]
        found[path] = "".join(f"GPU {position}{block}" for position, block in enumerate(kept))
    return found


def _gpu_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    found, count = _unlisted(files, machine), machine.gpu_count
    found["out/nvidia-smi.xml"] = _sub(
        found["out/nvidia-smi.xml"], f">{count}</attached_gpus>", f">{count - 1}</attached_gpus>", "GPU count"
    )
    found["out/lspci.txt"] = _without_line(text(files, "out/lspci.txt"), machine.gpu_pci()[_target(machine)])
    return {path: content.encode() for path, content in found.items()}


def _gpu_fallen_off(files: Mapping[str, Entry], machine: Machine) -> Change:
    """nvidia-smi names the device it cannot reach and goes on; lspci reads all ones, revision ff."""
    index = _target(machine)
    pci = machine.gpu_pci()[index]
    error = f"Unable to determine the device handle for GPU{index}: {pci}: Unknown Error\n"
    change: Dict[str, Optional[Entry]] = {
        path: (error + content).encode() for path, content in _unlisted(files, machine).items() if content
    }
    part = f"3D controller [0302]: NVIDIA Corporation {machine.gpu.lspci} [10de:{machine.gpu.pci_id.lower()}]"
    lost = _sub(text(files, "out/lspci.txt"), rf"(?<={re.escape(pci)} )[^\n]*", f"{part} (rev ff)", "GPU")
    change["out/lspci.txt"] = lost.encode()
    log = _log(
        "NVRM: GPU at PCI:{pci}: GPU-00000000-0000-0000-0000-000000000000",
        "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: GPU {pcif}: GPU has fallen off the bus.",
    )
    return {**change, **log(files, machine)}


def _nvlink(link: int, state: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if not machine.links:
            raise DoesNotApply(f"{machine.expected.instance_type} has no NVLink")
        blocks = text(files, "out/nvlink-status.txt").split("GPU ")
        index = 1 + _target(machine)
        blocks[index] = _sub(blocks[index], f"Link {link}: [^\n]*", f"Link {link}: {state}", "link")
        return {"out/nvlink-status.txt": "GPU ".join(blocks).encode()}

    return apply


def _service(unit: str, active: str, sub: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        units: List[Dict[str, str]] = json.loads(text(files, "out/services.json"))
        if not any(entry["unit"] == unit for entry in units):
            raise DoesNotApply(f"{machine.expected.instance_type} does not run {unit}")
        units = [{**entry, "active": active, "sub": sub} if entry["unit"] == unit else entry for entry in units]
        return {"out/services.json": (json.dumps(units) + "\n").encode()}

    return apply


def _efa_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Detach the last EFA device: no PCI device, no RDMA device, no libfabric domain."""
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    pci, device = machine.efa_pci()[-1], machine.efa_devices()[-1]
    change: Dict[str, Optional[Entry]] = dict.fromkeys(paths_below(files, f"root/sys/class/infiniband/{device}"))
    blocks = [
        block for block in text(files, "out/fi-info.txt").split("provider: ") if f"domain: {device}-rdm" not in block
    ]
    change["out/fi-info.txt"] = "provider: ".join(blocks).encode()
    change["out/lspci.txt"] = _without_line(text(files, "out/lspci.txt"), pci).encode()
    if machine.efa_count == 1:
        change["tools/fi_info"] = without_efa(files["tools/fi_info"])
    return change


def _efa_no_provider(files: Mapping[str, Entry], machine: Machine) -> Change:
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    return {"tools/fi_info": without_efa(files["tools/fi_info"]), "out/fi-info.txt": b""}


def _driver(version: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        paths = ("out/nvidia-smi.xml", "out/kernel.log", "root/sys/module/nvidia/version")
        return {path: text(files, path).replace(machine.driver, version).encode() for path in paths}

    return apply


def _nccl(version: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        change: Dict[str, Optional[Entry]] = dict.fromkeys(f"root/{path}" for path in host.nccl_files())
        change.update((f"root/{path}", b"") for path in host.nccl_files(version))
        return change

    return apply


def _cpu_offline(files: Mapping[str, Entry], machine: Machine) -> Change:
    last = machine.vcpus - 1
    tree = json.loads(text(files, "out/cpuinfo.json"))
    cpus = next(entry for entry in tree["lscpu"] if entry["field"] == "CPU(s):")
    cpus["children"] = [
        {"field": "On-line CPU(s) list:", "data": f"0-{last - 1}"},
        {"field": "Off-line CPU(s) list:", "data": str(last)},
    ]
    return {"out/cpuinfo.json": (json.dumps(tree, indent=3) + "\n").encode()}


def _memory(percent: int) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        memory_mib = (machine.expected.memory_mib or 0) * percent // 100
        smaller = replace(machine, expected=replace(machine.expected, memory_mib=memory_mib))
        return {"root/proc/meminfo": host.meminfo(smaller).encode()}

    return apply


def _nvme_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    count = machine.expected.nvme_count or 0
    if not count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no instance store")
    fewer = replace(machine, expected=replace(machine.expected, nvme_count=count - 1))
    pci = f"0000:{host.FIRST_NVME_BUS + count - 1:02x}:00.0"
    lspci = _without_line(text(files, "out/lspci.txt"), pci)
    return {"out/lsblk.json": host.lsblk(fewer).encode(), "out/lspci.txt": lspci.encode()}


def _read_only(mount: str) -> Apply:
    return _all(
        _edit("root/proc/mounts", rf"(?<= {re.escape(mount)} )(\S+ )rw,", "xfs ro,"),
        _log(
            "XFS (nvme0n1p1): log I/O error -5",
            "XFS (nvme0n1p1): Filesystem has been shut down due to log error (0x2).",
        ),
    )


def _nccl_log(collective: str, **how: Any) -> Apply:
    """Write another log of one of nccl-tests' programs; see active.nccl for how."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if machine.gpu_count == 1:
            raise DoesNotApply("one GPU has nothing to send")
        if machine.neuron:
            raise DoesNotApply("it has no GPU")
        return {f"out/nccl-{collective}.log": active.nccl(machine, collective, **how).encode()}

    return apply


def _dcgm_failed(files: Mapping[str, Entry], machine: Machine) -> Change:
    document = json.loads(text(files, "out/dcgm-diag.json"))
    index = _target(machine)
    warning = {
        "error_category": 10,
        "error_id": 4,
        "error_severity": 2,
        "warning": f"Detected 2 volatile double-bit ECC error(s) in GPU {index}. Drain the GPU and reset it or reboot.",
    }
    tests = [test for group in document["DCGM Diagnostic"]["test_categories"] for test in group["tests"]]
    memory = next(test for test in tests if test["name"] == "memory")
    memory["results"][index].update(status="Fail", warnings=[warning])
    memory["test_summary"] = {"status": "Fail", "warnings": [warning]}
    return {
        "out/dcgm-diag.json": (json.dumps(document, indent="\t") + "\n").encode(),
        # dcgmi ends with DCGM_ST_NVVS_ERROR (-30) as a byte when a test failed.
        **_tool("dcgmi", rc=226)(files, machine),
    }


def _switched(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Change nothing, but ask for NVSwitches that this kernel's driver reports on."""
    if not machine.switched or machine.bridged or machine.arm:
        raise DoesNotApply("it has no NVSwitch of its own")
    return {}


def _smi_says(message: str, rc: int) -> Apply:
    """Answer every question to nvidia-smi with one message and fail."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        tool = files["tools/nvidia-smi"]
        outputs = tool.answers.values() if isinstance(tool, Tool) else ()
        said: Dict[str, Optional[Entry]] = {f"out/{file}": (message + "\n").encode() for file in outputs}
        return {**said, **_tool("nvidia-smi", rc=rc)(files, machine)}

    return apply


def _smi_warns(message: str) -> Apply:
    """Print a line about one GPU after nvidia-smi's XML, as NVML's warnings are."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        line = message.format(pci=machine.gpu_pci()[_target(machine)])
        return {"out/nvidia-smi.xml": (text(files, "out/nvidia-smi.xml") + line + "\n").encode()}

    return apply


def _stored(file: str, change: Callable[[Dict[str, Any], int], None]) -> Apply:
    """Change the stored JSON of a test of our own; `change` gets the document and the faulty GPU's index."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        path = f"root/run/flightline/{file}"
        document: Dict[str, Any] = json.loads(text(files, path))
        if file == "fs-io.json" and not document["targets"]:
            raise DoesNotApply("it has no instance store")
        change(document, _target(machine))
        return {path: (json.dumps(document, indent=1) + "\n").encode()}

    return apply


def _loaded(**fields: Any) -> Apply:
    """Change what the load program says of one GPU."""
    return _stored("gpu-load.json", lambda document, gpu: document["gpus"][gpu].update(fields))


def _throttled(document: Dict[str, Any], gpu: int) -> None:
    pci = f"0000{document['gpus'][gpu]['pci']}".upper()
    document["samples"][pci].update(throttle={"0x4": 6, "0x48": 14}, temperature_c_max=91, sm_mhz_median=345)


def _not_run(document: Dict[str, Any], gpu: int) -> None:
    document.clear()
    document["not_run"] = "libcublas.so.13: libcublas.so.13: cannot open shared object file: No such file or directory"


def _copies(share: float, peers: bool) -> Apply:
    """One GPU's copies, from and to the host or its peers, at a share of their speed."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        document, gpu = json.loads(text(files, "out/nvbandwidth.json")), _target(machine)
        tests = [t for t in document["nvbandwidth"]["testcases"] if t["name"].startswith("device_to_device") is peers]
        if not all("bandwidth_matrix" in test for test in tests):
            raise DoesNotApply("its GPUs cannot copy to each other")
        for test in tests:
            for row, cells in enumerate(test["bandwidth_matrix"]):
                for column, cell in enumerate(cells):
                    if cell != "N/A" and gpu in ((row, column) if peers else (column,)):
                        cells[column] = f"{float(cell) * share:.2f}"
        return {"out/nvbandwidth.json": (json.dumps(document, indent=3) + "\n").encode()}

    return apply


_ONE_SILENT = """\
case "$*" in *'-d {domain} '*) echo 'fi_cq_readerr: Unreachable remote (4113)'; exit 1 ;; esac
node=${{0%/*/*}}; file=out/fi-pingpong.txt
[ -e "$node/$file" ] || file=healthy/$file
exec cat "$node/$file\""""


def _efa_silent(files: Mapping[str, Entry], machine: Machine) -> Change:
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    domain = f"{machine.efa_devices()[-1]}-rdm"
    return _tool("fi_pingpong", script=_ONE_SILENT.format(domain=domain))(files, machine)


_PROCESS = """<processes>
\t\t\t<process_info>
\t\t\t\t<gpu_instance_id>N/A</gpu_instance_id>
\t\t\t\t<compute_instance_id>N/A</compute_instance_id>
\t\t\t\t<pid>4711</pid>
\t\t\t\t<type>C</type>
\t\t\t\t<process_name>python3</process_name>
\t\t\t\t<used_memory>70212 MiB</used_memory>
\t\t\t</process_info>
"""


def _metadata(path: str, value: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        document = json.loads(text(files, "root/run/flightline/imds.json"))
        document[path] = value
        return {"root/run/flightline/imds.json": json.dumps(document, indent=1).encode()}

    return apply


def _topology(link: str) -> Apply:
    """Give one GPU another kind of way to every other GPU."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if not machine.switched:
            raise DoesNotApply("it has no NVSwitch")
        index, lines = _target(machine), text(files, "out/nvidia-smi-topo.txt").split("\n")
        for row in range(machine.gpu_count):
            cells = lines[row + 1].split("\t")
            for column in range(machine.gpu_count):
                if row != column and index in (row, column):
                    cells[column + 1] = link
            lines[row + 1] = "\t".join(cells)
        return {"out/nvidia-smi-topo.txt": "\n".join(lines).encode()}

    return apply


def _one_numa_node(files: Mapping[str, Entry], machine: Machine) -> Change:
    if machine.numa_nodes < 2:
        raise DoesNotApply("it has one NUMA node")
    half = replace(machine, expected=replace(machine.expected, numa_nodes=1))
    return {"out/numactl.txt": host.numactl(half).encode()}


def _link_error(counter: str, count: int) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        blocks = re.split(r"^(?=GPU \d+)", text(files, "out/nvlink-errors.txt"), flags=re.MULTILINE)
        index = 1 + _target(machine)
        if len(blocks) <= index:
            raise DoesNotApply("it has no NVLink")
        blocks[index] = _sub(blocks[index], f"Link 7: {counter}: 0", f"Link 7: {counter}: {count}", counter)
        return {"out/nvlink-errors.txt": "".join(blocks).encode()}

    return apply


def _truncated(files: Mapping[str, Entry], machine: Machine) -> Change:
    content = text(files, "out/nvidia-smi.xml")
    return {"out/nvidia-smi.xml": content[: len(content) * 5 // 8].encode()}


def _none(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Nothing in the node's files: the inventory gives it a port on which nothing listens."""
    return {}


def _efa_port(state: str, physical: str) -> Apply:
    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if not machine.efa_count:
            raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
        base = f"root/sys/class/infiniband/{machine.efa_devices()[-1]}/ports/1"
        return {f"{base}/state": f"{state}\n".encode(), f"{base}/phys_state": f"{physical}\n".encode()}

    return apply


def _no_p2p(files: Mapping[str, Entry], machine: Machine) -> Change:
    return {path: b"None\n" for path in paths_below(files, "root/sys/class/infiniband") if path.endswith("/device/p2p")}


def _stuck(name: str, age_s: int) -> Apply:
    return lambda files, machine: {path: line.encode() for path, line in kernelfs.stuck(name, age_s).items()}


def _lustre_evicted(files: Mapping[str, Entry], machine: Machine) -> Change:
    mount = "10.0.1.23@tcp:/abcdefgh /fsx lustre rw,seclabel,noatime,flock,lazystatfs 0 0\n"
    log = _log(
        "LustreError: 167-0: abcdefgh-OST0003-osc-ffff8a1b3c5d7000: This client was evicted by abcdefgh-OST0003; "
        "in progress operations using this service will fail."
    )
    return {"root/proc/mounts": (text(files, "root/proc/mounts") + mount).encode(), **log(files, machine)}


def _governor(files: Mapping[str, Entry], machine: Machine) -> Change:
    """The pstate driver is off, and the plain one keeps the CPUs slow."""
    new = {"scaling_driver": b"acpi-cpufreq\n", "scaling_governor": b"powersave\n"}
    below = paths_below(files, "root/sys/devices/system/cpu/cpufreq")
    if not below:
        raise DoesNotApply(f"{machine.expected.instance_type} leaves no frequency to the system")
    return {path: new[path.rpartition("/")[2]] for path in below}


_SMI_PARSERS = ("nvidia_smi", "nvidia_smi_topo", "nvlink")
_HANG = "trap '' TERM\nsleep 300 &\nsleep 300"

_MMU_FAULT = (
    "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f3c_45000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
_GSP_TIMEOUT = (
    "Timeout after 6s of waiting for RPC response from GPU{index} GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20803039 0x4)."
)
_DOUBLE_BIT = (
    "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, "
    "subpartition 0."
)
_SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:d3:00.0): 20034, "
_PYTHON = "pid=4711, name=python3"
_NO_JOURNAL = "No journal files were opened due to insufficient permissions."
_NO_RING = "dmesg: read kernel buffer failed: Operation not permitted"


# One fault, one entry.
def _neuron(name: str, what: str, check: str, remedy: Remedy, apply: Apply, **rest: Any) -> Fault:
    return Fault(name, what, check, remedy, apply, **{"type": "trn1.32xlarge", **rest})


_NEURON: Tuple[Fault, ...] = (
    _neuron("neuron_device_missing", "one Neuron device is on no list, not even on the bus",
            "neuron_devices", Remedy.REPLACE, nf.lost, also=("neuron_topology",)),
    _neuron("neuron_device_dropped", "the driver lost a Neuron device that the bus still shows",
            "neuron_devices", Remedy.REBOOT, nf.dropped, also=("neuron_topology",)),
    _neuron("neuron_core_missing", "one Neuron device has no core left",
            "neuron_cores", Remedy.REBOOT, nf.listed(lambda devices, index: devices[index].update(nc_count=0))),
    _neuron("neuron_memory_small", "one Neuron device has half of its memory", "neuron_memory", Remedy.REPLACE,
            nf.listed(lambda devices, index: devices[index].update(memory_size=devices[index]["memory_size"] // 2))),
    _neuron("neuron_link_missing", "a NeuronLink between two devices is gone: the torus has a gap",
            "neuron_topology", Remedy.REPLACE, nf.listed(nf.unlinked)),
    _neuron("neuron_hbm_ecc", "uncorrectable errors in the HBM of one Neuron device",
            "neuron_ecc", Remedy.REPLACE, nf.counted("mem_ecc_uncorrected")),
    _neuron("neuron_sram_ecc", "an uncorrectable error in the SRAM of one Neuron device",
            "neuron_ecc", Remedy.REPLACE, nf.together(
                nf.counted("sram_ecc_uncorrected"),
                nf.said("NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR nd-id={nd} nc-id=0 action=TERMINATE_INSTANCE")),
            also=("neuron_messages",)),
    _neuron("neuron_hbm_repairable", "an HBM error that a reboot repairs",
            "neuron_ecc", Remedy.REBOOT, nf.counted("mem_ecc_repairable_uncorrected"), type="trn2.48xlarge"),
    _neuron("neuron_ecc_unread", "the driver shows 0 because it could not read an ECC count", "neuron_ecc",
            Remedy.INVESTIGATE,
            nf.said("neuron:fw_io_get_total_uecc_err_count: sysfs failed to read ECC HBM0 error from FWIO"),
            status=Status.UNKNOWN),
    _neuron("neuron_ecc_corrected", "one Neuron device corrects many errors: a warning, the node stays go",
            "neuron_ecc_corrected", Remedy.INVESTIGATE, nf.counted("mem_ecc_corrected", 4200), status=Status.WARN),
    _neuron("neuron_driver_old", "a Neuron driver from before the type", "neuron_driver", Remedy.UPDATE_SOFTWARE,
            nf.driver("2.4.6.0")),
    _neuron("neuron_driver_missing", "the Neuron driver is not loaded", "neuron_driver", Remedy.FIX_CONFIG,
            nf.unloaded, blinds=("neuron_ls", "neuron_monitor", "neuron_sysfs"), also=("kernel_modules",)),
    _neuron("neuron_runtime_mismatch", "driver and runtime library do not go together",
            "neuron_software", Remedy.UPDATE_SOFTWARE, nf.driver("2.29.1.0")),
    _neuron("neuron_reset_failed", "a Neuron device did not come back from a reset",
            "neuron_messages", Remedy.REBOOT,
            nf.said("neuron:nr_process_requests: nd{nd}: reset request 3 was initiated, but failed to complete")),
    _neuron("neuron_runtime_hung", "a program's executions time out and none ends",
            "neuron_errors", Remedy.INVESTIGATE, nf.program(timed_out=8)),
    _neuron("neuron_monitor_error", "neuron-monitor says that it could not measure",
            "neuron_errors", Remedy.INVESTIGATE,
            nf.reported(lambda report, _: report["neuron_hardware_info"].update(error="failed to query the driver")),
            status=Status.UNKNOWN),
    _neuron("neuron_process_left", "a program of the last job is still on the Neuron devices",
            "neuron_processes", Remedy.RESTART_APP, nf.program(completed=40), also=ACTIVE, level="standard"),
    _neuron("nccom_slow", "collectives over the Neuron devices crawl",
            "nccom_busbw", Remedy.INVESTIGATE, nf.slow, level="standard"),
    _neuron("nccom_failed", "collectives over the Neuron devices end with an error",
            "nccom_test", Remedy.INVESTIGATE,
            nf.tested("Failure running neuron-bench - log file /x.log\n1 errors found - test failed", False),
            also=("nccom_busbw",), level="standard"),
    _neuron("nccom_wrong_data", "a collective delivers other data than was sent",
            "nccom_test", Remedy.REPLACE,
            nf.tested("Output mismatch on rank 7: differs from golden tensor", True), level="standard"),
    _neuron("neuron_ls_hung", "neuron-ls never ends and ignores a polite kill", "neuron_devices", Remedy.INVESTIGATE,
            _tool("neuron-ls", script=_HANG), status=Status.UNKNOWN, blinds=("neuron_ls",)),
    _neuron("neuron_ls_truncated", "neuron-ls's JSON ends in the middle", "neuron_devices", Remedy.INVESTIGATE,
            nf.cut, status=Status.UNKNOWN, blinds=("neuron_ls",)),
)  # fmt: skip

_ALL: Tuple[Fault, ...] = (
    Fault("gpu_missing", "one GPU is not listed by any tool",
          "gpu_count", Remedy.REBOOT, _gpu_missing,
          also=("gpu_lost", "nvlink_links", "nvlink_errors", "gpu_topology", "pci_devices")),
    Fault("gpu_fallen_off_bus", "one GPU fell off the PCI bus: device-handle error, Xid 79",
          "gpu_lost", Remedy.REBOOT, _gpu_fallen_off,
          also=("gpu_count", "xid", "nvlink_links", "nvlink_errors", "gpu_topology", "pci_devices", "kernel_errors")),
    Fault("ecc_uncorrected", "uncorrectable memory errors since the driver was loaded",
          "ecc_uncorrected", Remedy.RESET_GPU,
          _smi(("volatile/dram_uncorrectable", "2"), ("aggregate/dram_uncorrectable", "2"))),
    Fault("remap_pending", "a row remapping waits for a reset of the GPU",
          "row_remap", Remedy.RESET_GPU,
          _smi(("remapped_rows/remapped_row_unc", "1"), ("remapped_row_pending", "Yes"))),
    Fault("remap_failure", "a row remapping failed: no spare rows are left",
          "row_remap", Remedy.REPLACE,
          _smi(("remapped_rows/remapped_row_unc", "8"), ("remapped_row_failure", "Yes"))),
    Fault("xid_restart_app", "Xid 31, an application's memory fault: the node stays go",
          "xid", Remedy.RESTART_APP, _xid(31, _MMU_FAULT, _PYTHON), status=Status.INFO),
    Fault("xid_reset_gpu", "Xid 119, the GPU's system processor does not answer",
          "xid", Remedy.RESET_GPU, _xid(119, _GSP_TIMEOUT, _PYTHON)),
    Fault("xid_reboot", "Xid 151, key rotation failed: the instance must restart",
          "xid", Remedy.REBOOT, _xid(151, "Key rotation error")),
    Fault("xid_replace", "Xid 54, auxiliary power is missing",
          "xid", Remedy.REPLACE, _xid(54, "auxiliary power is not connected")),
    Fault("xid_update_software", "Xid 78, driver and firmware do not fit",
          "xid", Remedy.UPDATE_SOFTWARE, _xid(78, "vGPU start error")),
    Fault("xid_contact_support", "Xid 142, for which only the vendor has an answer",
          "xid", Remedy.CONTACT_SUPPORT, _xid(142, "NVENC3 error")),
    Fault("xid_dbe", "Xid 48, an uncorrectable double bit error",
          "xid", Remedy.RESET_GPU, _xid(48, _DOUBLE_BIT)),
    Fault("sxid_fatal", "a fatal NVSwitch error",
          "sxid", Remedy.RESET_GPU,
          _all(_switched,
               _log(_SWITCH + "Fatal, Link 30 LTSSM Fault Up",
                    _SWITCH + "Severity 1 Engine instance 30 Sub-engine instance 00",
                    _SWITCH + "Data {{0x00000001, 0x00000000, 0x00000001, 0x00000000}}"))),
    Fault("hw_slowdown", "the hardware holds one GPU's clocks down",
          "throttle", Remedy.REPLACE, _smi(("clocks_event_reason_hw_slowdown", "Active"))),
    Fault("hw_thermal", "one GPU is slowed down by heat",
          "throttle", Remedy.REPLACE,
          _smi(("clocks_event_reason_hw_slowdown", "Active"), ("clocks_event_reason_hw_thermal_slowdown", "Active"))),
    Fault("gpu_hot", "one GPU is hotter than it may be",
          "gpu_temperature", Remedy.REPLACE, _smi(("gpu_temp", "90 C"), ("gpu_temp_tlimit", "-3 C"))),
    Fault("pcie_width", "one GPU runs on four PCIe lanes",
          "pcie_width", Remedy.REBOOT, _smi(("current_link_width", "4x"))),
    Fault("nvlink_inactive", "one NVLink of one GPU is down",
          "nvlink_links", Remedy.REBOOT, _nvlink(7, "<inactive>")),
    Fault("fabric_manager_dead", "Fabric Manager is not running",
          "fabric_manager", Remedy.FIX_CONFIG, _service("nvidia-fabricmanager.service", "failed", "failed")),
    Fault("fabric_not_ready", "one GPU has not joined the NVSwitch fabric",
          "fabric_state", Remedy.FIX_CONFIG, _smi(("fabric/state", "In Progress"), ("fabric/status", "N/A"))),
    Fault("recovery_action", "the driver asks for a reset of one GPU",
          "recovery_action", Remedy.RESET_GPU, _smi(("gpu_recovery_action", "GPU Reset"))),
    Fault("persistence_off", "persistence mode is off",
          "persistence_mode", Remedy.FIX_CONFIG, _smi_all("persistence_mode", "Disabled"), status=Status.WARN),
    Fault("ecc_off", "ECC is off on one GPU",
          "ecc_mode", Remedy.FIX_CONFIG, _smi(("current_ecc", "Disabled"), ("pending_ecc", "Disabled")),
          also=("ecc_uncorrected",)),
    Fault("mig_on", "MIG mode is on on one GPU",
          "mig_mode", Remedy.FIX_CONFIG, _smi(("current_mig", "Enabled"), ("pending_mig", "Enabled"))),
    Fault("retired_pages", "one GPU has retired as many pages as it may",
          "retired_pages", Remedy.REPLACE, _smi(("double_bit_retirement/retired_count", "63")), type="g4dn.12xlarge"),
    Fault("efa_missing", "one EFA device is not attached",
          "efa_count", Remedy.REPLACE, _efa_missing, also=("pci_devices", "efa_provider")),
    Fault("efa_no_provider", "libfabric finds no EFA device",
          "efa_provider", Remedy.UPDATE_SOFTWARE, _efa_no_provider, also=("efa_count",)),
    Fault("efa_port_down", "the port of one EFA device is down",
          "efa_ports", Remedy.REBOOT, _efa_port("1: DOWN", "3: Disabled")),
    Fault("plugin_too_old", "aws-ofi-nccl is older than the instance type needs",
          "software_compat", Remedy.UPDATE_SOFTWARE,
          _edit("root/opt/amazon/efa_installed_packages", r"libnccl-ofi-[\d.]+", "libnccl-ofi-1.13.2"),
          type="p6-b200.48xlarge"),
    Fault("peer_memory_missing", "EFA cannot reach the GPUs' memory: a warning, the node stays go",
          "peer_memory", Remedy.FIX_CONFIG,
          _all(_edit("root/proc/modules", r"(?<=\n)efa_nv_peermem \d[^\n]*\n", ""),
               _edit("root/sys/module/nvidia/taint", "OE", "POE"), _no_p2p), status=Status.WARN),
    Fault("mtu_mixed", "one interface has another MTU: a warning, the node stays go",
          "mtu", Remedy.FIX_CONFIG,
          _edit(f"root/sys/class/net/{kernelfs.SECOND}/mtu", "9001", "1500"), status=Status.WARN),
    Fault("conntrack_full", "connections were dropped, too many were tracked: a warning, the node stays go",
          "ena_allowance", Remedy.INVESTIGATE,
          _edit("out/ethtool.txt", r"(?<=conntrack_allowance_exceeded: )0", "412"), status=Status.WARN),
    Fault("lustre_evicted", "a Lustre server evicted the node: a warning, the node stays go",
          "lustre", Remedy.INVESTIGATE, _lustre_evicted, status=Status.WARN),
    Fault("cpu_slow", "the CPUs are kept at their lowest frequency: a warning, the node stays go",
          "cpu_governor", Remedy.FIX_CONFIG, _governor, status=Status.WARN, type="p4d.24xlarge"),
    Fault("host_memory_error", "a memory controller counted an uncorrected error",
          "edac", Remedy.REPLACE, _edit("root/sys/devices/system/edac/mc/mc1/ue_count", "0", "1"), type="g4dn.metal"),
    Fault("process_stuck", "an nvidia-smi has been stuck in the driver for minutes",
          "stuck_processes", Remedy.REBOOT, _stuck("nvidia-smi", 600)),
    Fault("driver_drift", "an older driver than the rest of the fleet",
          "uniform_driver", Remedy.UPDATE_SOFTWARE, _driver("580.82.07"), scope=FLEET),
    Fault("nccl_drift", "another NCCL than the rest of the fleet",
          "uniform_nccl", Remedy.UPDATE_SOFTWARE, _nccl("2.27.7"), scope=FLEET),
    Fault("kernel_drift", "another kernel than the rest of the fleet",
          "uniform_kernel", Remedy.UPDATE_SOFTWARE,
          _edit("root/proc/sys/kernel/osrelease", r"6\.12\.46-66\.121", "6.12.40-63.114"), scope=FLEET),
    Fault("disk_full", "the root file system is full",
          "disk_space", Remedy.FIX_CONFIG,
          _edit("out/df.txt", r"52428800   157275116      26% /\n", "209493916      210000     100% /\n")),
    Fault("readonly_root", "the root file system turned read-only after an I/O error",
          "mounts", Remedy.REPLACE, _read_only("/"), also=("kernel_errors",)),
    Fault("nvme_missing", "one instance store disk is missing",
          "nvme", Remedy.REPLACE, _nvme_missing, also=("pci_devices",)),
    Fault("memory_missing", "half of the memory is missing",
          "memory", Remedy.REPLACE, _memory(50)),
    Fault("cpu_offline", "one CPU is offline",
          "cpu", Remedy.FIX_CONFIG, _cpu_offline),
    Fault("load_high", "processes are left running on the CPUs: a warning, the node stays go",
          "load", Remedy.INVESTIGATE,
          _edit("root/proc/loadavg", r"^\S+ \S+ \S+", "691.20 688.90 640.10"), status=Status.WARN),
    Fault("clock_adrift", "the clock is seconds off",
          "clock_sync", Remedy.FIX_CONFIG,
          _edit("out/chrony.txt", r"System time     : \S+", "System time     : 3.204118252")),
    Fault("clock_unsynchronised", "the clock follows no time source",
          "clock_sync", Remedy.FIX_CONFIG,
          _all(_edit("out/chrony.txt", r"Reference ID    : [^\n]*", "Reference ID    : 00000000 ()"),
               _edit("out/chrony.txt", r"Stratum         : \d+", "Stratum         : 0"),
               _edit("out/chrony.txt", r"Leap status     : \S+", "Leap status     : Not synchronised"))),
    Fault("memlock_low", "processes may lock 64 KiB of memory: EFA cannot register buffers",
          "memlock", Remedy.FIX_CONFIG,
          _edit("root/proc/self/limits", r"(?<=Max locked memory)( +)unlimited( +)unlimited( +)",
                f"{'':9}{65536:<21}{65536:<21}")),
    Fault("gpu_wrong_model", "one GPU is of another model",
          "gpu_model", Remedy.FIX_CONFIG, _smi(("product_name", "NVIDIA H100 PCIe"))),
    Fault("gpu_memory_small", "one GPU has half of its memory",
          "gpu_memory", Remedy.REPLACE, _smi(("fb_memory_usage/total", "40960 MiB"))),
    Fault("driver_not_loaded", "the NVIDIA driver is not loaded",
          "gpu_lost", Remedy.UPDATE_SOFTWARE,
          _smi_says("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                    "Make sure that the latest NVIDIA driver is installed and running.", 9),
          blinds=_SMI_PARSERS),
    Fault("driver_not_rebooted", "the driver was updated and the node not rebooted",
          "gpu_lost", Remedy.REBOOT,
          _smi_says("Failed to initialize NVML: Driver/library version mismatch", 18), blinds=_SMI_PARSERS),
    Fault("driver_too_old", "the driver is older than the instance type needs",
          "driver_version", Remedy.UPDATE_SOFTWARE, _driver("560.35.05"), type="p6-b200.48xlarge"),
    Fault("cuda_too_old", "the driver's CUDA is older than the instance type needs",
          "cuda_version", Remedy.UPDATE_SOFTWARE,
          _edit("out/nvidia-smi.xml", "(?<=<cuda_version>)[^<]*", "12.4"), type="p6-b200.48xlarge"),
    Fault("vbios_mixed", "one GPU has another VBIOS: a warning, the node stays go",
          "gpu_vbios", Remedy.INVESTIGATE, _smi(("vbios_version", "96.00.30.00.01")), status=Status.WARN),
    Fault("inforom_corrupt", "one GPU's InfoROM is corrupted",
          "gpu_inforom", Remedy.REPLACE, _smi_warns("WARNING: infoROM is corrupted at gpu {pci}")),
    Fault("gsp_mismatch", "one GPU runs another firmware than the driver brings: a warning, the node stays go",
          "gpu_gsp", Remedy.UPDATE_SOFTWARE, _smi(("gsp_firmware_version", "580.65.06")), status=Status.WARN),
    Fault("ecc_corrected", "many corrected memory errors: a warning, the node stays go",
          "ecc_corrected", Remedy.INVESTIGATE,
          _smi(("volatile/dram_correctable", "200000"), ("aggregate/dram_correctable", "200000")), status=Status.WARN),
    Fault("sram_threshold", "one GPU's SRAM had more errors than it may",
          "ecc_sram_threshold", Remedy.REPLACE,
          _smi(("aggregate/sram_uncorrectable_parity", "12"), ("sram_threshold_exceeded", "Yes"))),
    Fault("remap_spares_low", "a memory bank has no spare rows left: a warning, the node stays go",
          "row_remap_histogram", Remedy.REPLACE,
          _smi(("row_remapper_histogram_max", "2559 bank(s)"), ("row_remapper_histogram_none", "1 bank(s)")),
          status=Status.WARN),
    Fault("repair_pending", "a memory channel waits for its repair",
          "memory_repair", Remedy.RESET_GPU, _smi(("channel_repair_pending", "Yes")), type="p6-b200.48xlarge"),
    Fault("power_capped", "one GPU's power limit is lowered",
          "power_limit", Remedy.FIX_CONFIG,
          _smi(("current_power_limit", "300.00 W"), ("requested_power_limit", "300.00 W"))),
    Fault("pcie_gen_low", "one GPU's slot offers an older PCIe generation",
          "pcie_gen", Remedy.REBOOT,
          _smi(("max_link_gen", "3"), ("current_link_gen", "3"), ("device_current_link_gen", "3"),
               ("max_host_link_gen", "3"))),
    Fault("pcie_replays", "many PCIe replays: a warning, the node stays go",
          "pcie_replays", Remedy.INVESTIGATE, _smi(("replay_counter", "250000")), status=Status.WARN),
    Fault("pcie_aer", "uncorrected errors on the PCIe bus",
          "pcie_aer", Remedy.REBOOT,
          _log("pcieport 0000:52:01.0: AER: Uncorrected (Fatal) error received: {pcif}",
               "nvidia {pcif}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)")),
    Fault("gpu_in_use", "a process is left on one GPU",
          "gpu_processes", Remedy.RESTART_APP, _edit("out/nvidia-smi.xml", r"<processes>\n", _PROCESS),
          also=ACTIVE, level="standard"),
    Fault("node_busy", "a job's processes keep the CPUs busy: no active test starts",
          "dcgm_diag", Remedy.INVESTIGATE, _edit("root/proc/loadavg", r"^\S+ \S+ \S+", "691.20 688.90 640.10"),
          status=Status.UNKNOWN, also=ACTIVE, level="standard"),
    Fault("nvlink_errors", "an NVLink of one GPU had to recover",
          "nvlink_errors", Remedy.RESET_GPU, _link_error("Recovery Errors", 4)),
    Fault("topology_degraded", "one GPU reaches the others over PCIe instead of NVLink",
          "gpu_topology", Remedy.REBOOT, _topology("SYS")),
    Fault("numa_node_missing", "one NUMA node is missing",
          "numa_nodes", Remedy.FIX_CONFIG, _one_numa_node, also=("numa_affinity",)),
    Fault("module_missing", "the EFA driver is not loaded",
          "kernel_modules", Remedy.FIX_CONFIG, _edit("root/proc/modules", r"(?<=\n)efa \d[^\n]*\n", "")),
    Fault("swap_on", "swap is on: a warning, the node stays go",
          "swap", Remedy.FIX_CONFIG,
          _all(_edit("root/proc/meminfo", r"SwapTotal: +0 kB", "SwapTotal:       8388604 kB"),
               _edit("root/proc/meminfo", r"SwapFree: +0 kB", "SwapFree:        8388604 kB")), status=Status.WARN),
    Fault("machine_check", "the CPU reports an uncorrected memory error",
          "kernel_errors", Remedy.REPLACE,
          _log("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: bd80000000100134",
               "mce: [Hardware Error]: TSC 0 ADDR 1f3a5c8d40 MISC 86")),
    Fault("task_hung", "a kernel task was stuck: a warning, the node stays go",
          "kernel_errors", Remedy.INVESTIGATE,
          _log("INFO: task kworker/u385:2:1187 blocked for more than 122 seconds."), status=Status.WARN),
    Fault("maintenance_due", "AWS will stop the instance within days",
          "maintenance", Remedy.REPLACE,
          _metadata("meta-data/events/maintenance/scheduled", json.dumps([{
              "NotBefore": "21 Nov 2026 18:00:00 GMT", "NotAfter": "21 Nov 2026 20:00:00 GMT",
              "Code": "instance-retirement", "Description": "The instance is running on degraded hardware",
              "EventId": "instance-event-0d59937288b749b32", "State": "active"}]))),
    Fault("spot_interrupted", "AWS takes the spot instance back",
          "maintenance", Remedy.REPLACE,
          _metadata("meta-data/spot/instance-action", json.dumps({
              "action": "terminate", "time": "2026-11-20T09:40:00Z"}))),
    Fault("wrong_instance_type", "the instance is of another type than the inventory says",
          "instance_identity", Remedy.FIX_CONFIG, _metadata("meta-data/instance-type", "p4d.24xlarge")),
    Fault("dcgm_failed", "DCGM's memory test fails on one GPU",
          "dcgm_diag", Remedy.REPLACE, _dcgm_failed, level="standard"),
    Fault("nccl_slow", "all_reduce reaches a third of the type's bandwidth",
          "nccl_busbw", Remedy.INVESTIGATE, _nccl_log("all_reduce", share=0.33), level="standard"),
    Fault("nccl_wrong", "all_reduce gives wrong values",
          "nccl_correctness", Remedy.REPLACE, _nccl_log("all_reduce", wrong=3), level="standard"),
    Fault("disk_error", "reading one instance store disk ends with an I/O error",
          "fio_disk", Remedy.INVESTIGATE, _edit("out/fio.json", '"error": 0', '"error": 5'), level="deep"),
    Fault("host_copy_slow", "copies between the host and one GPU run at half speed",
          "gpu_bandwidth", Remedy.REBOOT, _copies(0.5, peers=False), level="standard"),
    Fault("peer_copy_slow", "copies between one GPU and the others run at half speed",
          "gpu_bandwidth", Remedy.REBOOT, _copies(0.5, peers=True), level="standard"),
    Fault("gpu_slow", "one GPU computes at two thirds of the others' speed",
          "gpu_load", Remedy.REPLACE, _loaded(tflops=440.0), level="standard"),
    Fault("gpu_overheats", "the hardware slows one GPU down under load",
          "gpu_load", Remedy.REPLACE, _stored("gpu-load.json", _throttled), level="standard"),
    Fault("gpu_miscalculates", "one GPU gives wrong numbers now and then, without any error",
          "gpu_compute", Remedy.REPLACE,
          _loaded(mismatches=2, first_mismatch={
              "product": 4711, "element": 24117248, "wanted": "53.125", "off_by": "0.015625",
              "sum_of_differences": "0.015625"}), level="standard"),
    Fault("gpu_wrong_always", "one GPU gives another result than the others, each time the same",
          "gpu_compute", Remedy.REPLACE,
          _loaded(digest="a7" * 32, digest_at_end="a7" * 32), level="standard"),
    Fault("cuda_missing", "the CUDA libraries that the load test needs are not installed",
          "gpu_load", Remedy.FIX_CONFIG, _stored("gpu-load.json", _not_run),
          status=Status.UNKNOWN, also=("gpu_compute",), level="standard"),
    Fault("efa_silent", "one EFA device is listed and its port is up, but no message gets through",
          "efa_loopback", Remedy.REBOOT, _efa_silent, level="standard"),
    Fault("scratch_corrupts", "the instance store gives back other bytes than were written",
          "fs_io", Remedy.REPLACE,
          _stored("fs-io.json", lambda document, _: document["targets"][0].update(
              verified=False, wrong="byte 524288: wrote 0x4f, read 0x0f")), level="standard"),
    Fault("scratch_full", "the instance store has no room for the write test",
          "fs_io", Remedy.FIX_CONFIG,
          _stored("fs-io.json", lambda document, _: document["targets"].__setitem__(0, {
              "mount": "/opt/dlami/nvme", "fstype": "ext4", "kind": "instance-store",
              "refused": "1822 of 28610298 MiB free: nearly full"})),
          status=Status.UNKNOWN, level="standard"),
    Fault("tool_hung", "nvidia-smi never ends and ignores a polite kill",
          "gpu_count", Remedy.INVESTIGATE, _tool("nvidia-smi", script=_HANG),
          status=Status.UNKNOWN, blinds=_SMI_PARSERS, also=("conf_compute",)),
    Fault("tool_garbage", "nvidia-smi prints binary data",
          "gpu_count", Remedy.INVESTIGATE, lambda files, machine: {"out/nvidia-smi.xml": bytes(range(256)) * 16},
          status=Status.UNKNOWN, blinds=("nvidia_smi",)),
    Fault("tool_truncated", "nvidia-smi's XML ends in the middle",
          "gpu_count", Remedy.INVESTIGATE, _truncated, status=Status.UNKNOWN, blinds=("nvidia_smi",)),
    Fault("tool_exit_nonzero", "nvidia-smi prints a healthy answer and fails",
          "gpu_count", Remedy.INVESTIGATE, _tool("nvidia-smi", rc=255), status=Status.UNKNOWN, blinds=_SMI_PARSERS),
    # Not taken away: a real nvidia-smi of this machine would answer in its place.
    Fault("tool_missing", "nvidia-smi cannot be started: a part of it is missing",
          "gpu_count", Remedy.INVESTIGATE, _tool("nvidia-smi", interpreter="/nonexistent/flightline-demo/sh"),
          status=Status.UNKNOWN, blinds=_SMI_PARSERS),
    Fault("kernel_log_denied", "the kernel log may not be read",
          "xid", Remedy.INVESTIGATE,
          _all(_tool("journalctl", answers={}, rc=1, stderr=_NO_JOURNAL),
               _tool("dmesg", answers={}, rc=1, stderr=_NO_RING)),
          status=Status.UNKNOWN, blinds=("kernel",)),
    *_NEURON,
    Fault("unreachable", "nothing answers on the node's address",
          "reachable", Remedy.INVESTIGATE, _none, status=Status.UNREACHABLE, scope=CONNECTION),
)  # fmt: skip

FAULTS: Dict[str, Fault] = {fault.name: fault for fault in _ALL}


def named(names: Iterable[str]) -> List[Fault]:
    """Faults by name. Raises SettingsError for unknown ones, listing those there are."""
    wanted = list(names)
    unknown = [str(name) for name in wanted if name not in FAULTS]
    if unknown:
        raise SettingsError(f"unknown fault {', '.join(unknown)}; known faults: {', '.join(FAULTS)}")
    return [FAULTS[name] for name in wanted]


_OF_GPUS = re.compile(r"nvidia|nvlink|nccl")
"""In the name of a file or tool that only nodes with NVIDIA GPUs have."""


def broken(machine: Machine, names: Sequence[str]) -> Files:
    """Make the files of a node with faults, applied in the order given.

    Raises SettingsError for an unknown fault, or one that the instance type cannot have.
    """
    instance_type = machine.expected.instance_type
    files = healthy(instance_type)
    for fault in named(names):
        try:
            change = fault.apply(files, machine)
            if machine.neuron and any(_OF_GPUS.search(path) for path in change):
                raise DoesNotApply("it has no GPU")
        except (DoesNotApply, KeyError) as error:
            why = f"no {error.args[0]}" if isinstance(error, KeyError) else error
            raise SettingsError(
                f"fault {fault.name} does not apply to {instance_type}: {why}; try {fault.type}"
            ) from error
        if fault.scope != CONNECTION and all(files.get(path) == entry for path, entry in change.items()):
            raise SettingsError(f"fault {fault.name} changes nothing on {instance_type}; try {fault.type}")
        files.update({path: entry for path, entry in change.items() if entry is not None})
        for path in [path for path, entry in change.items() if entry is None]:
            files.pop(path, None)
    return files
