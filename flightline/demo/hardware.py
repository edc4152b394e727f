"""What the simulated machines are made of: GPU models, PCI layout, EFA device names.

Counts come from the instance types' table (flightline_node.know.expected); this file adds what that table
has no use for and a tool prints all the same. Values are those of public nvidia-smi and lspci captures
of these parts; where no capture of a part was found (B300, RTX PRO 4500, GB200) they are plausible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Optional, Tuple

from flightline_node.know.expected import Expected, resolve
from flightline_node.model import SettingsError

DRIVER = "580.95.05"
CUDA = "13.0"
NCCL = "2.28.3"
KERNEL = "6.12.46-66.121.amzn2023.x86_64"
KERNEL_ARM = "6.12.46-66.121.amzn2023.aarch64"
EFA_INSTALLER = "1.44.0"
EFA_DRIVER = "2.17.3"
OFI_NCCL = "1.17.1"
BOOTED = "2026-11-20T08:00"
"""Simulated nodes booted at this (UTC) minute; every stored log begins there."""

UPTIME_S = 5400
HOSTNAME = "ip-10-0-0-10"
"""What every simulated node calls itself in its logs; the inventory has its name."""


@dataclass(frozen=True)
class GpuModel:
    """A GPU model as nvidia-smi prints it. Memory and BAR1 in MiB, power in W, clocks in MHz.

    temps: shutdown, slowdown and highest operating temperature, in C, or with the flag tlimit the degrees
    left (zero and below) at which each begins. banks: banks of the row remapper's histogram, 0 where pages
    are retired instead. tflops: what its load test reaches. flags: tlimit, mig (has MIG mode), nogsp (no GPU system
    processor firmware).
    """

    name: str
    architecture: str
    pci_id: str
    lspci: str
    memory: int
    bar1: int
    pcie_gen: int
    width: int
    power: int
    sm_clock: int
    memory_clock: int
    temps: Tuple[int, int, int]
    banks: int
    tflops: int
    vbios: str
    flags: FrozenSet[str]

    @property
    def tlimit(self) -> bool:
        """Whether it prints the degrees left instead of temperatures."""
        return "tlimit" in self.flags


# Model as the instance types' table has it; the fields of GpuModel in order.
_TABLE = """\
V100; Tesla V100-SXM2-32GB; Volta; 1DB5; GV100GL [Tesla V100 SXM2 32GB]; 32768; 32768; 3x16; 300; 1530; 877; 90/87/83; 0; 96; 88.00.74.00.01; nogsp
A100-SXM4-40GB; NVIDIA A100-SXM4-40GB; Ampere; 20B0; GA100 [A100 SXM4 40GB]; 40960; 65536; 4x16; 400; 1410; 1215; 92/89/85; 640; 262; 92.00.45.00.05; mig
A100-SXM4-80GB; NVIDIA A100-SXM4-80GB; Ampere; 20B2; GA100 [A100 SXM4 80GB]; 81920; 131072; 4x16; 400; 1410; 1593; 92/89/85; 640; 268; 92.00.81.00.06; mig
H100-SXM5-80GB; NVIDIA H100 80GB HBM3; Hopper; 2330; GH100 [H100 SXM5 80GB]; 81559; 131072; 5x16; 700; 1980; 2619; -8/-2/0; 2560; 668; 96.00.A5.00.01; tlimit mig
H200-SXM5-141GB; NVIDIA H200; Hopper; 2335; GH100 [H200 SXM 141GB]; 143771; 262144; 5x16; 700; 1980; 3201; -8/-2/0; 3072; 676; 96.00.BC.00.02; tlimit mig
B200-SXM6; NVIDIA B200; Blackwell; 2901; GB100 [B200]; 183359; 262144; 5x16; 1000; 1965; 3996; -5/-2/0; 4096; 1520; 97.00.B9.00.4F; tlimit mig
B300-SXM6; NVIDIA B300 SXM6 AC; Blackwell; 3182; GB110 [B300 SXM6 AC]; 275040; 524288; 6x16; 1100; 2032; 3996; -5/-2/0; 4096; 1540; 97.10.4A.00.1A; tlimit mig
B200 (GB200 superchip); NVIDIA GB200; Blackwell; 2941; GB100 [HGX GB200]; 189471; 262144; 6x16; 1200; 2062; 3996; -5/-2/0; 4096; 1560; 97.00.82.00.2C; tlimit mig
T4; Tesla T4; Turing; 1EB8; TU104GL [Tesla T4]; 15360; 256; 3x8; 70; 1590; 5001; 96/93/85; 0; 24; 90.04.96.00.A0; -
T4G; NVIDIA T4G; Turing; 1EB4; TU104GL [T4G]; 15360; 256; 3x16; 70; 1590; 5001; 96/93/85; 0; 24; 90.04.96.00.A4; -
A10G; NVIDIA A10G; Ampere; 2237; GA102GL [A10G]; 23028; 32768; 4x8; 300; 1710; 6251; 98/95/88; 192; 62; 94.02.75.00.01; -
L4; NVIDIA L4; Ada Lovelace; 27B8; AD104GL [L4]; 23034; 32768; 4x16; 72; 2040; 6251; -5/-2/0; 192; 58; 95.04.65.00.0A; tlimit
L40S; NVIDIA L40S; Ada Lovelace; 26B9; AD102GL [L40S]; 46068; 65536; 4x16; 350; 2520; 9001; -5/-2/0; 192; 240; 95.02.66.00.02; tlimit
RTX PRO 4500 Blackwell Server; NVIDIA RTX PRO 4500 Blackwell Server Edition; Blackwell; 2C3A; GB203GL [RTX PRO 4500 Blackwell Server Edition]; 32623; 32768; 5x16; 165; 2407; 14001; -5/-2/0; 256; 300; 98.03.7A.00.01; tlimit
RTX PRO 6000 Blackwell Server; NVIDIA RTX PRO 6000 Blackwell Server Edition; Blackwell; 2BB5; GB202GL [RTX PRO 6000 Blackwell Server Edition]; 97887; 131072; 5x16; 600; 2430; 12481; -5/-2/0; 512; 300; 98.02.73.00.02; tlimit mig
"""  # noqa: E501 (one model a line)


def _row(line: str) -> Tuple[str, GpuModel]:
    model, *texts, memory, bar1, pcie, power, sm, clock, temps, banks, tflops, vbios, flags = line.split("; ")
    name, architecture, pci_id, lspci = texts
    shutdown, slowdown, highest = map(int, temps.split("/"))
    gen, width = map(int, pcie.split("x"))
    return model, GpuModel(
        name, architecture, pci_id, lspci, int(memory), int(bar1), gen, width, int(power), int(sm), int(clock),
        (shutdown, slowdown, highest), int(banks), int(tflops), vbios, frozenset(flags.split()),
    )  # fmt: skip


_NO_GPU = GpuModel("none", "none", "", "", 0, 0, 0, 0, 0, 0, 0, (0, 0, 0), 0, 0, "", frozenset())
GPUS: Dict[str, GpuModel] = dict(map(_row, _TABLE.splitlines()))

_P5_GPU_BUSES = (0x53, 0x64, 0x75, 0x86, 0x97, 0xA8, 0xB9, 0xCA)
_P4_GPUS = ("10:1c", "10:1d", "20:1c", "20:1d", "90:1c", "90:1d", "a0:1c", "a0:1d")


@dataclass(frozen=True)
class Machine:
    """A simulated machine: its expectations, its parts' names and where they sit on the PCI bus."""

    expected: Expected
    gpu: GpuModel
    driver: str
    cuda: str

    @property
    def neuron(self) -> bool:
        """Whether its accelerators are Neuron devices."""
        return bool(self.expected.has_neuron)

    @property
    def gpu_count(self) -> int:
        """GPUs of the type; its Neuron devices are none."""
        return 0 if self.neuron else self.expected.gpu_count or 0

    @property
    def neuron_count(self) -> int:
        """Neuron devices of the type."""
        return self.expected.gpu_count or 0 if self.neuron else 0

    @property
    def grouped(self) -> bool:
        """Whether two physical cores make up a logical one (Trn2)."""
        return self.expected.gpu_generation == "neuron-v3"

    @property
    def efa_count(self) -> int:
        """EFA devices; on a type whose table entry leaves it open (p6e: 4 or 8 used), 4."""
        return 4 if self.expected.efa_count is None else self.expected.efa_count

    @property
    def numa_nodes(self) -> int:
        """NUMA nodes; one where the table knows no number."""
        return self.expected.numa_nodes or 1

    @property
    def vcpus(self) -> int:
        """Logical CPUs."""
        return self.expected.vcpus or 1

    @property
    def threads(self) -> int:
        """Threads per core; p6e's Grace cores have one."""
        return self.expected.threads_per_core or 1

    @property
    def links(self) -> int:
        """NVLinks of each GPU."""
        return self.expected.nvlink_links_per_gpu or 0

    @property
    def arm(self) -> bool:
        """Whether the CPU is an arm64 one."""
        return self.expected.arch == "arm64"

    @property
    def kernel(self) -> str:
        """Release of the running kernel."""
        return KERNEL_ARM if self.arm else KERNEL

    @property
    def switched(self) -> bool:
        """Whether NVSwitches join the GPUs, so that Fabric Manager must run."""
        return bool(self.expected.nvswitch)

    @property
    def bridged(self) -> bool:
        """Whether it shows ConnectX bridges to the NVSwitches beside its EFA devices (P6)."""
        return self.switched and self.gpu.architecture == "Blackwell" and not self.arm

    def gpu_pci(self) -> List[str]:
        """PCI addresses of the GPUs, four-digit domain, in nvidia-smi's order."""
        count = self.gpu_count
        if self.gpu.architecture in ("Hopper", "Blackwell") and count >= 4 and self.switched:
            return [f"0000:{bus:02x}:00.0" for bus in _P5_GPU_BUSES[:count]]
        if self.switched and count == len(_P4_GPUS):
            return [f"0000:{slot}.0" for slot in _P4_GPUS]
        first = 0x1F - count
        return [f"0000:00:{first + index:02x}.0" for index in range(count)]

    def efa_pci(self) -> List[str]:
        """PCI addresses of the EFA devices, grouped below the GPUs' switches on the large types."""
        count, gpus = self.efa_count, self.gpu_count
        if count >= gpus >= 4 and self.switched:
            each = count // gpus
            return [f"0000:{_P5_GPU_BUSES[i // each] - each + i % each:02x}:00.0" for i in range(count)]
        if self.switched and count == 4:
            return [f"0000:{bus}:1b.0" for bus in ("10", "20", "90", "a0")]
        return [f"0000:{index:02x}:06.0" for index in range(count)]

    def efa_devices(self) -> List[str]:
        """RDMA device names, which the kernel makes of bus and slot in decimal."""
        return [f"rdmap{int(pci[5:7], 16)}s{int(pci[8:10], 16)}" for pci in self.efa_pci()]

    def gpu_node(self, index: int) -> int:
        """NUMA node of a GPU: the first half hangs off the first socket."""
        return index * self.numa_nodes // max(self.gpu_count, 1)

    def node_cpus(self, node: int) -> List[Tuple[int, int]]:
        """Ranges of logical CPUs of a NUMA node; hyperthreads are numbered after all cores."""
        cores = self.vcpus // self.threads
        each = max(cores // self.numa_nodes, 1)
        return [(t * cores + node * each, t * cores + (node + 1) * each - 1) for t in range(self.threads)]


def machine(instance_type: Optional[str]) -> Machine:
    """Make the machine of an instance type. Raises SettingsError for one that cannot be simulated."""
    expected = resolve(instance_type)
    if expected.has_neuron:
        return Machine(expected, _NO_GPU, "", "")
    gpu = GPUS.get(expected.gpu_model or "")
    if expected.accelerator != "nvidia_gpu" or gpu is None:
        raise SettingsError(
            f"saw instance type {instance_type!r}, which cannot be simulated (no NVIDIA GPU or Neuron device, or no "
            f"stored output of {expected.gpu_model or 'an unnamed accelerator'}); wanted another, such as p5.48xlarge"
        )
    # RTX PRO 4500 Server was added to the driver in branch 595.
    driver, cuda = ("595.58.03", "13.2") if expected.driver_minimum == "595" else (DRIVER, CUDA)
    return Machine(expected, gpu, driver, cuda)


def ranges(pairs: List[Tuple[int, int]]) -> str:
    """'0-47,96-143' of [(0, 47), (96, 143)]."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in pairs)
