"""The closed list of reasons to skip a check, each with what the control side must see for it to hold.

A check declares those it may give (Check.skips); must.py makes the table of a run from them. What a node says beside
this list, or without its condition, is UNKNOWN: a fault of a check that ends in SKIP must not read as health.
"""

from __future__ import annotations

from ..know.expected import NO_TYPE
from ..model import Site, SkipReason

OLD_GENERATIONS = ("volta", "turing")
"""GPUs that retire pages in place of remapping rows. Source: NVIDIA, GPU memory error management."""
WITH_MIG = ("A100", "H100", "H200", "B200", "B300")
"""Products with Multi-Instance GPU, as hardware.py names them. Source: NVIDIA MIG user guide, supported GPUs."""


def _always(site: Site) -> bool:
    return True


def _never(site: Site) -> bool:
    """Not in a preflight, which asks for the whole output; a single output brought to `judge` may lack it."""
    return False


def _untyped(site: Site) -> bool:
    return site.expected.instance_type == NO_TYPE


def _old(site: Site) -> bool:
    return site.expected.gpu_generation in (None, *OLD_GENERATIONS)


def _without_mig(site: Site) -> bool:
    return not str(site.expected.gpu_model or "").startswith(WITH_MIG)


def _no_neuron(site: Site) -> bool:
    expected = site.expected
    return expected.has_neuron is False or (expected.has_neuron is None and bool(expected.gpu_count))


def _no_modules(site: Site) -> bool:
    expected = site.expected
    return not (expected.accelerator or expected.gpu_count or expected.efa_count or expected.modules)


def _no_pci(site: Site) -> bool:
    expected = site.expected
    return not expected.efa_count and (expected.has_nvidia_gpu is not True or expected.gpu_count is None)


NOT_ASKED = SkipReason("not_asked", "left out on request", _always)
NOT_COLLECTED = SkipReason("not_collected", "not collected", _never)
NO_EXPECTATION = SkipReason("no_expectation", "nothing is expected of this type", _always)
WAIVED = SkipReason("waived", "set aside by a waiver of the site", _never)

NO_NVIDIA_GPU = SkipReason(
    "no_nvidia_gpu", "the type has no NVIDIA GPU", lambda site: site.expected.has_nvidia_gpu is False, of_type=True
)
NO_NEURON = SkipReason("no_neuron", "the type has no Neuron device", _no_neuron, of_type=True)
NEURON_MACHINE = SkipReason(
    "neuron_machine", "no type is named, and the machine's accelerators are Neuron devices",
    lambda site: site.expected.has_nvidia_gpu is None, measured=("neuron_driver",),
)  # fmt: skip
GPU_MACHINE = SkipReason(
    "gpu_machine", "no type is named, and the machine has no Neuron device",
    lambda site: site.expected.has_neuron is None, measured=("driver_version",),
)  # fmt: skip
NO_EFA = SkipReason("no_efa", "the type has no EFA", lambda site: site.expected.efa_count == 0, of_type=True)
EFA_NOT_DECLARED = SkipReason(
    "efa_not_declared", "nothing says that the machine should have EFA", lambda site: site.expected.efa_count is None
)
NO_EFA_DEVICE = SkipReason(
    "no_efa_device", "no EFA device, which efa_count judges",
    lambda site: site.expected.efa_count is None, worse=("efa_count", "efa_provider"),
)  # fmt: skip
NO_NVLINK = SkipReason(
    "no_nvlink", "no NVLink between GPUs", lambda site: not site.expected.nvlink_links_per_gpu, of_type=True
)
NO_NVSWITCH = SkipReason("no_nvswitch", "no NVSwitch", lambda site: not site.expected.nvswitch, of_type=True)
SWITCHES_IN_RACK = SkipReason(
    "switches_in_rack", "the rack's switch trays do it", lambda site: bool(site.expected.nvlink_rack), of_type=True
)
NO_RACK = SkipReason(
    "no_rack", "the type shares no NVLink with other nodes", lambda site: not site.expected.nvlink_rack, of_type=True
)
ONE_GPU = SkipReason("one_gpu", "one GPU has no pairs", lambda site: site.expected.gpu_count in (None, 1), of_type=True)
ONE_DEVICE = SkipReason(
    "one_device", "a single device has no neighbours", lambda site: not site.expected.neuron_topology, of_type=True
)
NO_INSTANCE_STORE = SkipReason(
    "no_instance_store", "the type has no instance store", lambda site: not site.expected.nvme_count, of_type=True
)
NO_RDMA_READ = SkipReason(
    "no_rdma_read", "the type has no RDMA read", lambda site: not site.expected.rdma_read, of_type=True
)
OVER_C2C = SkipReason(
    "over_c2c", "the GPU is connected to its CPU by NVLink-C2C",
    lambda site: bool(site.expected.gpu_c2c_gb_s), of_type=True,
)  # fmt: skip
SHARE_OF_GPU = SkipReason(
    "share_of_gpu", "the type has a share of a GPU, which does not show it",
    lambda site: site.expected.gpu_share is not None, of_type=True,
)  # fmt: skip
RETIRES_PAGES = SkipReason("retires_pages", "the product retires pages instead (Volta, Turing)", _old, of_type=True)
REMAPS_ROWS = SkipReason(
    "remaps_rows", "the product remaps rows instead",
    lambda site: site.expected.gpu_generation not in OLD_GENERATIONS, of_type=True,
)  # fmt: skip
NO_MIG = SkipReason("no_mig", "the product has no MIG", _without_mig, of_type=True)
SILENT_FABRIC = SkipReason(
    "silent_fabric", "A100 joins its fabric without telling NVML",
    lambda site: site.expected.gpu_generation in (None, "ampere"), of_type=True,
)  # fmt: skip
NO_GSP = SkipReason(
    "no_gsp", "the proprietary kernel module runs these GPUs without GSP firmware",
    lambda site: not str(site.expected.gpu_generation or "").startswith("blackwell"),
)  # fmt: skip

UNTYPED = SkipReason("untyped", "needs an instance type", _untyped)
NO_MODULES = SkipReason("no_modules", "no kernel module is expected", _no_modules)
NO_SYSCTL = SkipReason(
    "no_sysctl", "the inventory declares no kernel parameters", lambda site: not site.expected.sysctl
)
NO_ENDPOINT = SkipReason(
    "no_endpoint", "the inventory names no S3 endpoint", lambda site: not site.options.get("s3_endpoints")
)
POLICY = SkipReason(
    "policy", "the site's xid_policy ignores this Xid", lambda site: bool(site.options.get("xid_policy"))
)
NO_LUSTRE = SkipReason(
    "no_lustre", "the inventory declares no Lustre file system",
    lambda site: "lustre" not in site.expected.modules and not site.expected.lustre_net,
)  # fmt: skip
NO_PLACE = SkipReason(
    "no_place", "the inventory declares neither type, zone nor placement group",
    lambda site: _untyped(site) and not (site.expected.availability_zone or site.expected.placement_group),
)  # fmt: skip
NO_FILE_SYSTEM = SkipReason(
    "no_file_system", "no Lustre, instance-store or named file system is mounted, and the inventory declares none",
    lambda site: not (site.options.get("fs_io_mounts") or site.expected.mounts or "lustre" in site.expected.modules),
)  # fmt: skip
NO_PCI_EXPECTED = SkipReason("no_pci_expected", "neither GPUs nor EFA devices are expected on the bus", _no_pci)
NO_MTU = SkipReason(
    "no_mtu", "no interface with the ena driver, and no MTU is declared", lambda site: not site.expected.mtu
)
NO_PINS = SkipReason(
    "no_pins", "none of the libraries is on the host, and the inventory pins none: containers bring them",
    lambda site: not (site.expected.efa_version or site.expected.nccl_version),
)  # fmt: skip

ECC_OFF = SkipReason(
    "ecc_off", "ECC is off, which ecc_mode judges",
    lambda site: site.expected.ecc_mode == "Disabled" or _untyped(site), worse=("ecc_mode",),
)  # fmt: skip
MIG_ON = SkipReason(
    "mig_on", "not shown while MIG is on, which mig_mode judges",
    lambda site: site.expected.mig_mode == "Enabled", worse=("mig_mode",),
)  # fmt: skip
NO_DRIVER = SkipReason(
    "no_driver", "the driver is not loaded, which kernel_modules judges", _never, worse=("kernel_modules",)
)
DRIVER_SILENT = SkipReason(
    "driver_silent", "this driver or product does not tell it; others judge the same part", _always
)
NOT_PRINTED = SkipReason("not_printed", "the output given does not have it", _never)
NO_DCGM = SkipReason("no_dcgm", "DCGM watches nothing here; the levels that need it ask it themselves",
                     lambda site: site.level == "quick")  # fmt: skip
DCGM_IDLE = SkipReason("dcgm_idle", "DCGM's background watches are off by the site's choice", _always)
OFF_EC2 = SkipReason(
    "off_ec2", "the machine is no EC2 instance",
    lambda site: not (site.expected.availability_zone or site.expected.placement_group),
)  # fmt: skip
READ_ONLY = SkipReason("read_only", "mounted for reading only: nothing may be written", _always)
NONE_HERE = SkipReason("none_here", "the node has none, and nothing asks for one", _always)
ONLY_ADVICE = SkipReason("only_advice", "could not be read; the check warns at most", _always)
ONE_NODE = SkipReason("one_node", "a test on one node shows no network", _always)
TOO_SMALL = SkipReason("too_small", "a message this small shows no bandwidth", _never)
NO_FLOOR = SkipReason("no_floor", "no published figure to hold it against", _always)
NO_INFOROM = SkipReason(
    "no_inforom", "the product keeps no InfoROM", lambda site: not site.expected.nvlink_links_per_gpu, of_type=True
)
