"""What a node should be: the instance type's entry plus the inventory's overrides.

Never read from the node under test: a node compared with itself always passes.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ..model import SettingsError
from ..suggest import unknown
from .hardware import TABLE, UNSOURCED

NO_TYPE = "none"


@dataclass(frozen=True)
class Expected:
    """Expected values of one node; None means that nothing is expected (the check skips).

    Memory in MiB, instance store in GB (10^9). nvlink_gb_s_per_link: as nvidia-smi prints it, in one direction;
    nvlink_gb_s: data rate of all links of a GPU in one direction; nvls: NVSwitch reduces in the switch;
    nvlink_rack: the switches are in the rack and join several nodes. network_gbps:
    all network cards, in Gbit/s; network_bursts: "up to". gpu_pcie_gen, gpu_pcie_lanes: the link of a good GPU;
    gpu_c2c_gb_s: its link to the CPU instead, GB/s in one direction. gpu_share: the part of a GPU that the type has.
    gpu_tflops: dense half precision.
    driver_version, cuda_version, kernel_version, nccl_version and efa_version are pins: a
    pin of "580" accepts every 580.x. sysctl, modules and mounts are a site's golden sets.
    neuron_cores: physical cores of each Neuron device; neuron_topology: torus, ring or line. nvlsm: the node runs the
    subnet manager of its NVSwitches. efa_gbps: of each EFA device. What only a stack plans with, and no inventory sets:
    efa_cards, the network cards that hold an EFA interface; sold, the kinds of capacity; fsx_efa. What only the
    demo fleet shows: efa_device, os_power_states.
    """

    instance_type: str = NO_TYPE
    accelerator: Optional[str] = None
    gpu_count: Optional[int] = None
    gpu_model: Optional[str] = None
    gpu_generation: Optional[str] = None
    gpu_name_has: Tuple[str, ...] = ()
    gpu_name_lacks: Tuple[str, ...] = ()
    gpu_memory_mib: Optional[int] = None
    nvlink_links_per_gpu: Optional[int] = None
    nvlink_gb_s_per_link: Optional[float] = None
    nvlink_gb_s: Optional[float] = None
    nvls: Optional[bool] = None
    nvlink_rack: Optional[bool] = None
    nvswitch: Optional[bool] = None
    gpu_pcie_gen: Optional[int] = None
    gpu_pcie_lanes: Optional[int] = None
    gpu_c2c_gb_s: Optional[float] = None
    gpu_share: Optional[float] = None
    gpu_tflops: Optional[float] = None
    network_gbps: Optional[float] = None
    network_bursts: Optional[bool] = None
    efa_count: Optional[int] = None
    rdma_read: Optional[bool] = None
    rdma_write: Optional[bool] = None
    arch: Optional[str] = None
    vcpus: Optional[int] = None
    threads_per_core: Optional[int] = None
    memory_mib: Optional[int] = None
    numa_nodes: Optional[int] = None
    neuron_cores: Optional[int] = None
    neuron_topology: Optional[str] = None
    neuron_link_gb_s: Optional[float] = None
    efa_gbps: Optional[float] = None
    efa_cards: Tuple[int, ...] = ()
    fsx_efa: Optional[bool] = None
    efa_device: Optional[str] = None
    os_power_states: Optional[bool] = None
    sold: Tuple[str, ...] = ()
    compute_capability: Optional[str] = None
    kernel_module: Optional[str] = None
    nvlsm: Optional[bool] = None
    nvswitch_count: Optional[int] = None
    nvme_count: Optional[int] = None
    nvme_gb: Optional[int] = None
    pcie_width: Optional[int] = None
    pcie_gen: Optional[int] = None
    ecc_mode: Optional[str] = None
    persistence_mode: Optional[str] = None
    mig_mode: Optional[str] = None
    driver_version: Optional[str] = None
    cuda_version: Optional[str] = None
    kernel_version: Optional[str] = None
    nccl_version: Optional[str] = None
    efa_version: Optional[str] = None
    vbios_version: Optional[str] = None
    driver_minimum: Optional[str] = None
    cuda_minimum: Optional[str] = None
    kernel_minimum: Optional[str] = None
    nccl_minimum: Optional[str] = None
    efa_installer_minimum: Optional[str] = None
    ofi_nccl_minimum: Optional[str] = None
    availability_zone: Optional[str] = None
    placement_group: Optional[str] = None
    mtu: Optional[int] = None
    hugepages_2m: Optional[int] = None
    clock_source: Optional[str] = None
    lustre_net: Optional[str] = None
    sysctl: Mapping[str, str] = field(default_factory=dict)
    modules: Tuple[str, ...] = ()
    mounts: Tuple[str, ...] = ()

    @property
    def has_nvidia_gpu(self) -> Optional[bool]:
        """True or False by the type's table; None when nothing is known of the type."""
        if self.accelerator is None:
            return None if self.gpu_count is None else self.gpu_count > 0
        return self.accelerator == NVIDIA

    @property
    def has_neuron(self) -> Optional[bool]:
        """True or False by the type's table; None when nothing is known of the type."""
        return None if self.accelerator is None else self.accelerator == "neuron"


_FIELDS: Dict[str, Any] = {item.name: item for item in dataclasses.fields(Expected)}


_NOTHING = Expected()

NVIDIA = "nvidia_gpu"
PLANNED = ("efa_cards", "sold", "fsx_efa", "efa_device", "os_power_states")
_ALWAYS = (
    "accelerator",
    "gpu_model",
    "gpu_generation",
    "gpu_count",
    "arch",
    "vcpus",
    "memory_mib",
    "efa_cards",
    "sold",
)
_OF_NVIDIA = ("nvlink_links_per_gpu", "nvswitch", "gpu_name_has", "gpu_tflops", "network_gbps", "compute_capability",
              "kernel_module")  # fmt: skip
_OF_NVLINK = ("nvlink_gb_s", "nvlink_gb_s_per_link", "nvls")


def lacking(row: Mapping[str, Any]) -> List[str]:
    """The fields that a row of its accelerator's kind must have and lacks: every floor is made from them."""
    wanted = [*_ALWAYS, *(("fsx_efa",) if row.get("efa_cards") else ())]
    if row.get("accelerator") == NVIDIA:
        wanted += _OF_NVIDIA
        wanted += ("nvlsm",) if row.get("nvswitch") else ()
        wanted += _OF_NVLINK if row.get("nvlink_links_per_gpu") else ()
        # The link between host and GPU is PCIe, or NVLink-C2C on a superchip.
        wanted += () if row.get("gpu_c2c_gb_s") else ("gpu_pcie_gen",)
    elif row.get("efa_cards"):
        wanted.append("efa_gbps")
    return [name for name in wanted if row.get(name) is None]


def known_types() -> List[str]:
    """Every instance type in the table, in the table's order."""
    return [json.loads(line)["instance_type"] for line in TABLE.splitlines()]


def unsourced(instance_type: str) -> str:
    """Why a type of a family that is known by name cannot be judged yet; '' for any other."""
    for row in map(json.loads, UNSOURCED.splitlines()):
        if instance_type.startswith(row["instance_type"]):
            return (
                f"saw that no source gives its {', '.join(lacking(row))}, wanted what AWS and NVIDIA publish, for "
                f"nothing is guessed (its checks will be those of {row['checks_of']}); do: use 'none' and give the "
                "expected values by hand, like gpu_count=4"
            )
    return ""


def _entry(instance_type: str) -> Dict[str, Any]:
    prefix = '{"instance_type":' + json.dumps(instance_type) + ","
    for line in TABLE.splitlines():
        if line.startswith(prefix):
            entry: Dict[str, Any] = json.loads(line)
            holes = lacking(entry)
            if holes:
                raise SettingsError(
                    f"instance type {instance_type}: saw that its row lacks {', '.join(holes)}, wanted them"
                )
            return entry
    why = unsourced(instance_type)
    if why:
        raise SettingsError(f"instance type {instance_type}: {why}")
    raise SettingsError(
        f"{unknown('instance type', instance_type, known_types())}; "
        "do: for another machine use 'none' and give the expected values by hand, like gpu_count=8"
    )


def _names(value: Any) -> Tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)):
        return tuple(str(part) for part in value)
    raise SettingsError("a list of names")


def _mapping(value: Any) -> Dict[str, str]:
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    raise SettingsError("a mapping of key to value")


def _flag(value: Any) -> bool:
    words = {"true": True, "yes": True, "false": False, "no": False}
    if str(value).lower() in words:
        return words[str(value).lower()]
    raise SettingsError("true or false")


def _real(value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        number = float("nan")
    if 0 <= number < float("inf"):
        return number
    raise SettingsError("a number of zero or more")


def _whole(value: Any) -> int:
    number = _real(value)
    if number == int(number):
        return int(number)
    raise SettingsError("a whole number")


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        raise SettingsError("text")
    return str(value)


_KINDS: Tuple[Tuple[str, Callable[[Any], Any]], ...] = (
    ("Tuple", _names),
    ("Mapping", _mapping),
    ("bool", _flag),
    ("float", _real),
    ("int", _whole),
    ("str", _text),
)


def _coerce(name: str, value: Any) -> Any:
    """A value given by hand as the field's type; the converters' errors say what was wanted."""
    convert = next(convert for word, convert in _KINDS if word in str(_FIELDS[name].type))
    try:
        return convert(value)
    except SettingsError as wanted:
        raise SettingsError(f"expected value {name}: saw {value!r}, wanted {wanted}") from None


def _override(name: str, value: Any) -> Any:
    if name not in _FIELDS or name == "instance_type" or name in PLANNED:
        raise SettingsError(unknown("expected value", name, set(_FIELDS) - {"instance_type", *PLANNED}))
    return getattr(_NOTHING, name) if value is None else _coerce(name, value)


def resolve(instance_type: Optional[str], overrides: Optional[Mapping[str, Any]] = None) -> Expected:
    """Expected values for an instance type, with the inventory's overrides on top.

    A None override clears the expectation. Raises SettingsError for an unknown type, and
    for every unknown field and value of the wrong kind, naming what was wanted.
    """
    base: Dict[str, Any] = {}
    mistakes: List[str] = []
    try:
        base = {} if instance_type in (None, "", NO_TYPE) else _entry(str(instance_type))
    except SettingsError as error:
        mistakes += error.mistakes
    values: Dict[str, Any] = {n: (tuple(v) if isinstance(v, list) else v) for n, v in base.items()}
    for name, value in (overrides or {}).items():
        try:
            values[name] = _override(name, value)
        except SettingsError as error:
            mistakes += error.mistakes
        if name == "gpu_model" and value is not None:
            # A model given by hand replaces the table's idea of the product name.
            values["gpu_name_has"], values["gpu_name_lacks"] = tuple(str(value).split()), ()
    if mistakes:
        raise SettingsError(*mistakes)
    return Expected(**values)
