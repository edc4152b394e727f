"""What a node should be: the instance type's entry plus the inventory's overrides.

Never read from the node under test: a node compared with itself always passes.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ..model import SettingsError
from .instance_types import TABLE

NO_TYPE = "none"


@dataclass(frozen=True)
class Expected:
    """Expected values of one node; None means that nothing is expected (the check skips).

    Memory in MiB, instance store in GB (10^9), NVLink in GB/s per link and direction.
    driver_version, cuda_version, kernel_version, nccl_version and efa_version are pins: a
    pin of "580" accepts every 580.x. sysctl, modules and mounts are a site's golden sets.
    neuron_cores: physical cores of each Neuron device; neuron_topology: torus, ring or line.
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
    nvswitch: Optional[bool] = None
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
        return self.accelerator == "nvidia_gpu"

    @property
    def has_neuron(self) -> Optional[bool]:
        """True or False by the type's table; None when nothing is known of the type."""
        return None if self.accelerator is None else self.accelerator == "neuron"


_FIELDS: Dict[str, Any] = {item.name: item for item in dataclasses.fields(Expected)}


_NOTHING = Expected()


def known_types() -> List[str]:
    """Every instance type in the table, in the table's order."""
    return [json.loads(line)["instance_type"] for line in TABLE.splitlines()]


def _entry(instance_type: str) -> Dict[str, Any]:
    prefix = '{"instance_type":' + json.dumps(instance_type) + ","
    for line in TABLE.splitlines():
        if line.startswith(prefix):
            entry: Dict[str, Any] = json.loads(line)
            return entry
    known = ", ".join(known_types())
    raise SettingsError(
        f"unknown instance type {instance_type!r}; known types: {known}. For another machine use "
        f"'none' and give the expected values by hand (for example gpu_count=8)"
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
        raise SettingsError(f"expected value {name}: got {value!r}, wanted {wanted}") from None


def _override(name: str, value: Any) -> Any:
    if name not in _FIELDS or name == "instance_type":
        known = ", ".join(sorted(set(_FIELDS) - {"instance_type"}))
        raise SettingsError(f"unknown expected value {name!r}; known: {known}")
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
