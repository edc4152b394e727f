"""Which finding explains which others on a node: data, read by causes.py from top to bottom.

A cause comes before those that it can bring about itself: a GPU off the bus before an nvidia-smi that hangs on it.
What may be explained is named check by check and reason by reason, so that a finding that no line foresees always
stands for itself. A message is never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flightline_node.ask.probes import PROBES
from flightline_node.judge.reasons import ENDED_BADLY, NO_DRIVER, NOT_RUN, SILENT, UNREADABLE
from flightline_node.model import Reason, Status


class Match(Enum):
    """How a finding has to fit its cause to be explained by it."""

    DEVICE = "it names the cause's own device"
    NODE = "it names no device"
    COUNT = "it names no device, and lacks no more parts than the cause names"
    PAIRS = "it names no device, and lacks no more GPU pairs than the lost GPUs had"
    ANY = "whatever it names: the cause is the whole node's"


@dataclass(frozen=True)
class Says:
    """A finding to look for. checks, reasons: ids (none: any)."""

    checks: frozenset[str]
    reasons: frozenset[str]
    status: Status

    def fits(self, check: str, status: Status, reason: str) -> bool:
        """Is it such a finding?"""
        known = not self.reasons or reason in self.reasons or reason.partition(".")[0] in self.reasons
        return status is self.status and (not self.checks or check in self.checks) and known


def says(checks: str, reasons: str = "", status: Status = Status.FAIL) -> Says:
    """A finding of one of these checks for one of these reasons (ids with blanks between; "*" for any check).

    A family's name is each of its members.
    """
    return Says(frozenset(checks.split()) - {"*"}, frozenset(reasons.split()), status)


@dataclass(frozen=True)
class Effect:
    """What a cause explains: one or more findings that fit."""

    says: Says
    match: Match


@dataclass(frozen=True)
class Cause:
    """A root cause. roots: how it shows, the most telling first; do: what to do where its remedy says too little.

    overrides: it also explains a finding that asks for a stronger remedy, because it takes that one's ground away.
    """

    id: str
    roots: tuple[Says, ...]
    effects: tuple[Effect, ...]
    do: str = ""
    overrides: bool = False


FAIL, UNKNOWN = Status.FAIL, Status.UNKNOWN
DEVICE, NODE, COUNT, PAIRS, ANY = Match.DEVICE, Match.NODE, Match.COUNT, Match.PAIRS, Match.ANY

_LOST = "lost off_bus gpu_silent"
_LISTS_NONE = "no_gpu_listed nvlink_lists_none"


def _of_tool(tool: str, *families: Reason) -> str:
    """The reasons of probes that ask a tool."""
    asking = [probe for probe in PROBES if probe.tool == tool]
    return " ".join(family.of(part).id for family in families for probe in asking for part in (probe.id, probe.file))


_SMI_SILENT = _of_tool("nvidia-smi", SILENT)
_NEURON_LS = _of_tool("neuron-ls", SILENT, ENDED_BADLY, NO_DRIVER, UNREADABLE, NOT_RUN)
_NVIDIA_MODULES = " ".join(
    f"not_loaded.nvidia{name}" for name in ("", "_uvm", "_modeset", "_drm", "_peermem", "_fs", "_cap_imex")
)
_MEMORY_XIDS = "xid.48 xid.63 xid.64 xid.94 xid.95 xid.140 xid.171 xid.172"
_DRIVER_EFFECTS = (
    Effect(says("*", f"no_driver {_LISTS_NONE}", UNKNOWN), ANY),
    Effect(says("driver_version cuda_version", "version_unread", UNKNOWN), ANY),
    Effect(says("gpu_count", "not_listed", UNKNOWN), ANY),
    Effect(says("nvlink_links", "no_status said.driver_not_loaded", UNKNOWN), ANY),
    Effect(says("gpu_topology", "no_pair", UNKNOWN), ANY),
    Effect(says("gpu_lost gpu_count", "none_on_bus fewer_answer none"), NODE),
    Effect(says("dcgm_diag gpu_load gpu_compute gpu_bandwidth", "", UNKNOWN), NODE),
    Effect(says("fabric_manager", "not_running"), NODE),
    Effect(says("kernel_modules", _NVIDIA_MODULES), ANY),
)

CAUSES: tuple[Cause, ...] = (
    Cause(
        "wrong_instance_type",
        (says("instance_identity", "other.instance_type"),),
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
        (says("gpu_lost", "driver_mismatch"),),
        _DRIVER_EFFECTS,
        "Reboot, so that the kernel loads the driver that is installed; then judge again.",
    ),
    Cause(
        "driver_not_loaded",
        (says("gpu_lost", "driver_not_loaded no_library"),),
        _DRIVER_EFFECTS,
        "Install the driver for the running kernel (uname -r) and load it (modprobe nvidia); then judge again.",
    ),
    Cause(
        "gpu_off_bus",
        (
            says("gpu_lost", _LOST),
            says("xid", "xid.79"),
            says("gpu_lost", "none_on_bus fewer_on_bus"),
            says("gpu_count", "none too_few"),
        ),
        (
            Effect(says("gpu_lost pci_devices", _LOST), DEVICE),
            Effect(says("gpu_lost", "none_on_bus fewer_on_bus fewer_answer"), COUNT),
            Effect(says("gpu_count pci_devices", "none too_few gpus_missing"), COUNT),
            Effect(says("xid", "xid.79 xid.154"), DEVICE),
            Effect(says("nvlink_links dcgm_diag", "no_status status_missing untested", UNKNOWN), COUNT),
            Effect(says("nvlink_links", "said.lost", UNKNOWN), DEVICE),
            Effect(says("gpu_topology", "pairs_unread no_pair", UNKNOWN), PAIRS),
            Effect(says("dcgm_diag", "failed.lost found_before.lost"), DEVICE),
            Effect(says("dcgm_diag", "not_started.lost", UNKNOWN), DEVICE),
            Effect(says("recovery_action fabric_state"), DEVICE),
            Effect(says("*", "value_unread", UNKNOWN), DEVICE),
            Effect(says("*", _SMI_SILENT, UNKNOWN), NODE),
            Effect(says("stuck_processes", "stuck.nvidia_smi"), ANY),
        ),
    ),
    Cause(
        "smi_silent",
        (says("stuck_processes", "stuck.nvidia_smi"), says("*", _SMI_SILENT, UNKNOWN)),
        (Effect(says("*", _SMI_SILENT, UNKNOWN), NODE), Effect(says("gpu_lost", "", UNKNOWN), NODE)),
        "See what nvidia-smi waits for (dmesg, ps -eo state,pid,wchan,comm), then reboot and judge again.",
    ),
    Cause(
        "gpu_memory",
        (
            says("row_remap"),
            says("memory_repair"),
            says("ecc_uncorrected"),
            says("xid", _MEMORY_XIDS),
        ),
        (
            Effect(says("row_remap memory_repair ecc_uncorrected growth_ecc recovery_action"), DEVICE),
            Effect(says("xid", f"{_MEMORY_XIDS} xid.154"), DEVICE),
            Effect(says("dcgm_diag", "failed.memory found_before.memory"), DEVICE),
        ),
    ),
    Cause(
        "fabric_manager",
        (says("fabric_manager", "not_running"),),
        (Effect(says("fabric_state", "not_registered"), ANY),),
    ),
    Cause(
        "nvlink_down",
        (says("nvlink_links"),),
        (Effect(says("gpu_topology nvlink_errors gpu_bandwidth"), DEVICE), Effect(says("xid", "xid.74"), DEVICE)),
    ),
    Cause(
        "pcie_narrow",
        (says("pcie_width"), says("pcie_gen")),
        (Effect(says("pcie_width pcie_gen gpu_bandwidth"), DEVICE),),
    ),
    Cause(
        "gpu_slowed",
        (says("throttle"), says("gpu_temperature")),
        (Effect(says("throttle gpu_temperature gpu_clocks gpu_load"), DEVICE),),
    ),
    Cause(
        "efa_module",
        (says("kernel_modules", "not_loaded.efa"),),
        (Effect(says("efa_count efa_provider efa_ports efa_loopback"), ANY),),
        "Load it (modprobe efa); where the running kernel has none, install EFA again; then judge again.",
    ),
    Cause(
        "efa_lost",
        (says("pci_devices", "efa_lost efa_not_attached"),),
        (Effect(says("efa_count", "none too_few"), COUNT), Effect(says("efa_provider", "no_efa_endpoint"), NODE)),
    ),
    Cause(
        "efa_endpoint",
        (says("efa_provider", "no_efa_endpoint"),),
        (
            Effect(says("efa_count", "none none_in_libfabric"), NODE),
            Effect(says("efa_loopback nccl_transport"), NODE),
            Effect(says("efa_loopback", "", UNKNOWN), NODE),
        ),
    ),
    Cause(
        "efa_port",
        (says("efa_ports"),),
        (Effect(says("efa_loopback"), DEVICE), Effect(says("efa_loopback", "", UNKNOWN), DEVICE)),
    ),
    Cause(
        "driver_version",
        (says("driver_version"), says("uniform_driver")),
        (Effect(says("uniform_driver uniform_cuda cuda_version"), NODE),),
    ),
    Cause(
        "neuron_driver_missing",
        (says("neuron_driver", "not_loaded"),),
        (
            Effect(says("neuron_devices"), ANY),
            Effect(says("neuron_cores neuron_memory neuron_topology neuron_processes neuron_ecc", "", UNKNOWN), ANY),
            Effect(says("neuron_errors nccom_test nccom_busbw", "", UNKNOWN), ANY),
            Effect(says("kernel_modules", "not_loaded.neuron"), ANY),
            Effect(says("nccom_test", "failed_by_driver"), ANY),
        ),
        "Load it (modprobe neuron); where the running kernel has none, install aws-neuronx-dkms; then judge again.",
    ),
    Cause(
        "neuron_ls_silent",
        (says("neuron_devices", _of_tool("neuron-ls", SILENT), UNKNOWN),),
        (Effect(says("*", _NEURON_LS, UNKNOWN), NODE),),
        "See what neuron-ls waits for (dmesg, ps -eo state,pid,wchan,comm), then reboot and judge again.",
    ),
    Cause(
        "neuron_device_lost",
        (says("neuron_devices", "too_few"),),
        (
            Effect(says("neuron_topology", "", UNKNOWN), NODE),
            Effect(says("neuron_topology", "neighbour_not_listed"), ANY),
            Effect(says("nccom_test nccom_busbw"), NODE),
        ),
    ),
    Cause(
        "neuron_memory_errors",
        (says("neuron_ecc"),),
        (Effect(says("neuron_messages neuron_errors"), DEVICE), Effect(says("nccom_test nccom_busbw"), NODE)),
    ),
)
