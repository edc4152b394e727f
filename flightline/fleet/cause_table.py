"""Which finding explains which others on a node: data, read by causes.py from top to bottom.

A cause comes before those that it can bring about itself: a GPU off the bus before an nvidia-smi that hangs on it.
What may be explained is named check by check, so that a finding that no line foresees always stands for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from flightline_node.model import Status


class Fit(Enum):
    """How a finding has to fit its cause to be explained by it."""

    DEVICE = "it names the cause's own device"
    NODE = "it names no device"
    COUNT = "it names no device, and lacks no more parts than the cause names"
    PAIRS = "it names no device, and lacks no more GPU pairs than the lost GPUs had"
    ANY = "whatever it names: the cause is the whole node's"


@dataclass(frozen=True)
class Says:
    """A finding to look for. checks: ids (none: any check); words: what its message has to hold."""

    checks: frozenset[str]
    words: re.Pattern[str]
    status: Status

    def fits(self, check: str, status: Status, message: str) -> bool:
        """Is it such a finding?"""
        return (
            status is self.status
            and (not self.checks or check in self.checks)
            and self.words.search(message) is not None
        )


def says(checks: str, words: str = "", status: Status = Status.FAIL) -> Says:
    """A finding of one of these checks (ids with blanks between, "*" for any) whose message has these words."""
    ids = frozenset(checks.split()) - {"*"}
    return Says(ids, re.compile(words, re.IGNORECASE), status)


@dataclass(frozen=True)
class Effect:
    """What a cause explains: one or more findings that fit."""

    says: Says
    fit: Fit


@dataclass(frozen=True)
class Cause:
    """A root cause. roots: how it shows, the most telling first; do: what to do where its remedy says too little.

    overrides: it also explains a finding that asks for a stronger remedy, because it takes that one's ground away.
    """

    id: str
    title: str
    roots: tuple[Says, ...]
    effects: tuple[Effect, ...]
    do: str = ""
    overrides: bool = False


FAIL, UNKNOWN = Status.FAIL, Status.UNKNOWN
DEVICE, NODE, COUNT, PAIRS, ANY = Fit.DEVICE, Fit.NODE, Fit.COUNT, Fit.PAIRS, Fit.ANY

_LOST_WORDS = r"\blost\b|fallen off|does not answer|device handle|\bXid 79\b"
_SMI_SILENT = r"could not be measured: (?:(?:/\S*)?nvidia-smi|conf-compute)\b.*(?:no answer|did not end|abandoned)"
_NO_DRIVER = (
    r"lists no GPU|could not list the GPUs|could not be read: not printed|NVIDIA driver|NVML|version mismatch"
    r"|NVLink status of 0 of|no GPU pair"
)
_DRIVER_EFFECTS = (
    Effect(says("*", _NO_DRIVER, UNKNOWN), ANY),
    Effect(says("gpu_lost gpu_count", r"\b0 of\b|answers for|lists no GPU"), NODE),
    Effect(says("dcgm_diag gpu_load gpu_compute gpu_bandwidth", "", UNKNOWN), NODE),
    Effect(says("fabric_manager", "not running"), NODE),
    Effect(says("kernel_modules", r"\bnvidia"), ANY),
)

CAUSES: tuple[Cause, ...] = (
    Cause(
        "wrong_instance_type",
        "the instance is of another type",
        (says("instance_identity", r"^instance type is"),),
        (
            Effect(
                says("gpu_count gpu_memory gpu_model gpu_lost memory cpu numa_nodes nvme pci_devices efa_count"), ANY
            ),
            Effect(says("nvlink_links gpu_topology dcgm_diag", "", UNKNOWN), NODE),
        ),
        "Correct instance_type in the inventory, or launch the type that is wanted; then judge again.",
        overrides=True,
    ),
    Cause(
        "driver_mismatch",
        "the loaded driver is not the installed one",
        (says("gpu_lost", "loaded driver is not the installed one"),),
        _DRIVER_EFFECTS,
        "Reboot, so that the kernel loads the driver that is installed; then judge again.",
    ),
    Cause(
        "driver_not_loaded",
        "the NVIDIA driver is not loaded",
        (says("gpu_lost", "driver is not loaded|library is not installed"),),
        _DRIVER_EFFECTS,
        "Install the driver for the running kernel (uname -r) and load it (modprobe nvidia); then judge again.",
    ),
    Cause(
        "gpu_off_bus",
        "a GPU is off the bus",
        (
            says("gpu_lost", _LOST_WORDS),
            says("xid", r"\bXid 79\b"),
            says("gpu_lost", "^lspci lists"),
            says("gpu_count", "missing"),
        ),
        (
            Effect(says("gpu_lost pci_devices", _LOST_WORDS), DEVICE),
            Effect(says("gpu_lost gpu_count pci_devices", r"\bGPUs\b"), COUNT),
            Effect(says("xid", r"\bXid (?:79|154)\b"), DEVICE),
            Effect(says("nvlink_links nvlink_errors dcgm_diag", r"of \d+ GPUs", UNKNOWN), COUNT),
            Effect(says("nvlink_links nvlink_errors", _LOST_WORDS, UNKNOWN), DEVICE),
            Effect(says("gpu_topology", "pairs could not be read", UNKNOWN), PAIRS),
            Effect(says("dcgm_diag", _LOST_WORDS), DEVICE),
            Effect(says("dcgm_diag", _LOST_WORDS, UNKNOWN), DEVICE),
            Effect(says("recovery_action fabric_state"), DEVICE),
            Effect(says("*", "could not be read", UNKNOWN), DEVICE),
            Effect(says("*", _SMI_SILENT, UNKNOWN), NODE),
            Effect(says("stuck_processes", "nvidia-smi"), ANY),
        ),
    ),
    Cause(
        "smi_silent",
        "nvidia-smi does not answer",
        (says("stuck_processes", "nvidia-smi"), says("*", _SMI_SILENT, UNKNOWN)),
        (Effect(says("*", _SMI_SILENT, UNKNOWN), NODE), Effect(says("gpu_lost", "", UNKNOWN), NODE)),
        "See what nvidia-smi waits for (dmesg, ps -eo state,pid,wchan,comm), then reboot and judge again.",
    ),
    Cause(
        "gpu_memory",
        "a GPU has memory errors",
        (
            says("row_remap"),
            says("memory_repair"),
            says("ecc_uncorrected"),
            says("xid", r"\bXid (?:48|63|64|94|95|140)\b"),
        ),
        (
            Effect(says("row_remap memory_repair ecc_uncorrected growth_ecc recovery_action"), DEVICE),
            Effect(says("xid", r"\bXid (?:48|63|64|94|95|140|154)\b"), DEVICE),
            Effect(says("dcgm_diag", r"memory|\bECC\b|\bremap|\bDBE\b"), DEVICE),
        ),
    ),
    Cause(
        "fabric_manager",
        "the fabric manager does not run",
        (says("fabric_manager", "not running"),),
        (
            Effect(says("fabric_state", "not registered|In Progress|Not Started"), ANY),
            Effect(says("gpu_load gpu_compute", "not yet initialized|802"), ANY),
        ),
    ),
    Cause(
        "nvlink_down",
        "NVLinks of a GPU are down",
        (says("nvlink_links"),),
        (Effect(says("gpu_topology nvlink_errors gpu_bandwidth"), DEVICE), Effect(says("xid", r"\bXid 74\b"), DEVICE)),
    ),
    Cause(
        "pcie_narrow",
        "the PCIe link of a GPU is narrow or slow",
        (says("pcie_width"), says("pcie_gen")),
        (Effect(says("pcie_width pcie_gen gpu_bandwidth"), DEVICE),),
    ),
    Cause(
        "gpu_slowed",
        "the hardware slows a GPU down",
        (says("throttle"), says("gpu_temperature")),
        (Effect(says("throttle gpu_temperature gpu_clocks gpu_load"), DEVICE),),
    ),
    Cause(
        "efa_module",
        "the EFA driver is not loaded",
        (says("kernel_modules", r"\befa\b"),),
        (Effect(says("efa_count efa_provider efa_ports efa_loopback"), ANY),),
        "Load it (modprobe efa); where the running kernel has none, install EFA again; then judge again.",
    ),
    Cause(
        "efa_lost",
        "EFA devices are missing",
        (says("pci_devices", "EFA devices on the PCI bus"),),
        (Effect(says("efa_count", r"^\d+ of \d+ EFA devices"), COUNT), Effect(says("efa_provider", "no EFA"), NODE)),
    ),
    Cause(
        "efa_endpoint",
        "libfabric has no EFA endpoint",
        (says("efa_provider", "no EFA endpoint"),),
        (
            Effect(says("efa_count", r"libfabric \(fi_info\) 0"), NODE),
            Effect(says("efa_loopback nccl_transport"), NODE),
            Effect(says("efa_loopback", "", UNKNOWN), NODE),
        ),
    ),
    Cause(
        "efa_port",
        "an EFA port is down",
        (says("efa_ports"),),
        (Effect(says("efa_loopback"), DEVICE), Effect(says("efa_loopback", "", UNKNOWN), DEVICE)),
    ),
    Cause(
        "driver_version",
        "the driver is not the wanted one",
        (says("driver_version"), says("uniform_driver")),
        (Effect(says("uniform_driver uniform_cuda cuda_version"), NODE),),
    ),
    Cause(
        "neuron_driver_missing",
        "the Neuron driver is not loaded",
        (says("neuron_driver", "module is not loaded"),),
        (
            Effect(says("neuron_devices"), ANY),
            Effect(says("neuron_cores neuron_memory neuron_topology neuron_processes neuron_ecc", "", UNKNOWN), ANY),
            Effect(says("neuron_errors nccom_test nccom_busbw", "", UNKNOWN), ANY),
            Effect(says("kernel_modules", r"\bneuron\b"), ANY),
            Effect(says("nccom_test", "driver"), ANY),
        ),
        "Load it (modprobe neuron); where the running kernel has none, install aws-neuronx-dkms; then judge again.",
    ),
    Cause(
        "neuron_ls_silent",
        "neuron-ls does not answer",
        (says("neuron_devices", r"could not be measured: neuron-ls\b.*no answer", UNKNOWN),),
        (Effect(says("*", r"(?:measured|not run): neuron-ls\b", UNKNOWN), NODE),),
        "See what neuron-ls waits for (dmesg, ps -eo state,pid,wchan,comm), then reboot and judge again.",
    ),
    Cause(
        "neuron_device_lost",
        "a Neuron device is missing",
        (says("neuron_devices", r"^\d+ of \d+ Neuron devices"),),
        (
            Effect(says("neuron_topology", "", UNKNOWN), NODE),
            Effect(says("neuron_topology", "not in the list of devices"), ANY),
            Effect(says("nccom_test nccom_busbw"), NODE),
        ),
    ),
    Cause(
        "neuron_memory_errors",
        "a Neuron device has memory errors",
        (says("neuron_ecc"),),
        (Effect(says("neuron_messages neuron_errors"), DEVICE), Effect(says("nccom_test nccom_busbw"), NODE)),
    ),
)
