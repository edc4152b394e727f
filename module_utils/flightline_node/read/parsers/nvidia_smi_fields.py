"""From the printed fields of `nvidia-smi -q` to facts, for the XML and the text form alike.

Element and heading names changed over driver branches 450 to 615; a branch number does not
tell which are printed (a DTD version neither), so every known name is looked for. Names
after NVIDIA's nvsmi_device DTDs v11 to v13 and public captures of drivers 450, 515, 535,
550, 570, 575, 580, 590, 595, 610 and 615.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from ...model import Facts
from . import text as t
from .nvidia_messages import Messages, device_gone, is_error_value

XML, TEXT = 0, 1

# fact | kind | XML paths | text paths (lower case, without " specification"), where they are not the XML's with blanks
# in place of underscores; the first path that is printed with a value other than N/A counts.
_TOP = """
timestamp | word | timestamp
driver_version | version | driver_version, kmd_version
cuda_version | version | cuda_version, cuda_umd_version
attached_gpus | number | attached_gpus
"""

_GPU = """
uuid | word | uuid | gpu uuid
serial | word | serial | serial number
pci_bus_id | word | pci/pci_bus_id | pci/bus id
minor_number | number | minor_number
name | word | product_name
product_brand | word | product_brand
product_architecture | word | product_architecture
persistence_mode | word | persistence_mode
performance_state | word | performance_state
compute_mode | word | compute_mode
vbios_version | word | vbios_version
gsp_firmware_version | word | gsp_firmware_version
inforom.image | word | inforom_version/img_version | inforom version/image version
inforom.oem | word | inforom_version/oem_object
inforom.ecc | word | inforom_version/ecc_object
inforom.power | word | inforom_version/pwr_object | inforom version/power management object
mig_mode | word | mig_mode/current_mig | mig mode/current
mig_mode_pending | word | mig_mode/pending_mig | mig mode/pending
ecc_mode | word | ecc_mode/current_ecc | ecc mode/current
ecc_mode_pending | word | ecc_mode/pending_ecc | ecc mode/pending
recovery_action | word | gpu_recovery_action
reset_required | flag | gpu_reset_status/reset_required
drain_and_reset_recommended | flag | gpu_reset_status/drain_and_reset_recommended
memory_total_mib | number | fb_memory_usage/total
memory_reserved_mib | number | fb_memory_usage/reserved
memory_used_mib | number | fb_memory_usage/used
memory_free_mib | number | fb_memory_usage/free
cc_protected_memory_total_mib | number | cc_protected_memory_usage/total | conf compute protected memory usage/total
temperature_c | number | temperature/gpu_temp | temperature/gpu current temp
temperature_memory_c | number | temperature/memory_temp | temperature/memory current temp
temperature_shutdown_c | number | temperature/gpu_temp_max_threshold | temperature/gpu shutdown temp
temperature_slowdown_c | number | temperature/gpu_temp_slow_threshold | temperature/gpu slowdown temp
temperature_max_operating_c | number | temperature/gpu_temp_max_gpu_threshold | temperature/gpu max operating temp
temperature_memory_max_operating_c | number
    | temperature/gpu_temp_max_mem_threshold
    | temperature/memory max operating temp
temperature_tlimit_c | number
    | temperature/gpu_temp_tlimit
    | temperature/gpu t.limit temp, temperature/gpu current t.limit temp
temperature_shutdown_tlimit_c | number
    | temperature/gpu_temp_max_tlimit_threshold
    | temperature/gpu shutdown t.limit temp
temperature_slowdown_tlimit_c | number
    | temperature/gpu_temp_slow_tlimit_threshold
    | temperature/gpu slowdown t.limit temp
temperature_max_operating_tlimit_c | number
    | temperature/gpu_temp_max_gpu_tlimit_threshold
    | temperature/gpu max operating t.limit temp
temperature_memory_max_operating_tlimit_c | number
    | temperature/gpu_temp_max_mem_tlimit_threshold
    | temperature/memory max operating t.limit temp
ecc.SCOPE.dram_uncorrectable | number | ecc_errors/SCOPE/dram_uncorrectable, ecc_errors/SCOPE/double_bit/device_memory
ecc.SCOPE.dram_correctable | number | ecc_errors/SCOPE/dram_correctable, ecc_errors/SCOPE/single_bit/device_memory
ecc.SCOPE.sram_uncorrectable | number | ecc_errors/SCOPE/sram_uncorrectable
ecc.SCOPE.sram_uncorrectable_parity | number | ecc_errors/SCOPE/sram_uncorrectable_parity
ecc.SCOPE.sram_uncorrectable_secded | number
    | ecc_errors/SCOPE/sram_uncorrectable_secded
    | ecc errors/SCOPE/sram uncorrectable sec-ded
ecc.SCOPE.sram_correctable | number | ecc_errors/SCOPE/sram_correctable
ecc.SCOPE.double_bit_total | number | ecc_errors/SCOPE/double_bit/total
ecc.SCOPE.single_bit_total | number | ecc_errors/SCOPE/single_bit/total
sram_threshold_exceeded | flag | ecc_errors/aggregate/sram_threshold_exceeded
channel_repair_pending | flag | ecc_errors/channel_repair_pending
tpc_repair_pending | flag | ecc_errors/tpc_repair_pending
unrepairable_memory | flag | ecc_errors/unrepairable_memory
remap.corrected | number | remapped_rows/remapped_row_corr | remapped rows/correctable error
remap.corrected_inactive | number | remapped_rows/remapped_row_corr_inactive | remapped rows/inactive correctable error
remap.uncorrected | number | remapped_rows/remapped_row_unc | remapped rows/uncorrectable error
remap.uncorrected_inactive | number
    | remapped_rows/remapped_row_unc_inactive
    | remapped rows/inactive uncorrectable error
remap.pending | flag | remapped_rows/remapped_row_pending | remapped rows/pending
remap.failure | flag | remapped_rows/remapped_row_failure | remapped rows/remapping failure occurred
remap.histogram.HIST | number
    | remapped_rows/row_remapper_histogram/row_remapper_histogram_HIST
    | remapped rows/bank remap availability histogram/HIST
bank_remap.pending | flag | remapped_banks/bank_remapper_pending | remapped banks/pending
retired_pages.single_bit | number
    | retired_pages/multiple_single_bit_retirement/retired_count
    | retired pages/single bit ecc
retired_pages.double_bit | number | retired_pages/double_bit_retirement/retired_count | retired pages/double bit ecc
retired_pages.pending | flag
    | retired_pages/pending_retirement, retired_pages/pending_blacklist
    | retired pages/pending page blacklist, retired pages/pending, retired pages/pending retirement
fabric_state | word | fabric/state
fabric_status | word | fabric/status
fabric_clique_id | number | fabric/cliqueId | fabric/cliqueid
fabric_cluster_uuid | word | fabric/clusterUuid | fabric/clusteruuid
pcie.gen | number
    | pci/pci_gpu_link_info/pcie_gen/current_link_gen, pci/pci_gpu_link_info/pcie_gen/device_current_link_gen
    | pci/gpu link info/pcie generation/current, pci/gpu link info/pcie generation/device current
pcie.gen_max | number | pci/pci_gpu_link_info/pcie_gen/max_link_gen | pci/gpu link info/pcie generation/max
pcie.gen_device_max | number
    | pci/pci_gpu_link_info/pcie_gen/max_device_link_gen
    | pci/gpu link info/pcie generation/device max
pcie.gen_host_max | number
    | pci/pci_gpu_link_info/pcie_gen/max_host_link_gen
    | pci/gpu link info/pcie generation/host max
pcie.width | number | pci/pci_gpu_link_info/link_widths/current_link_width | pci/gpu link info/link width/current
pcie.width_max | number | pci/pci_gpu_link_info/link_widths/max_link_width | pci/gpu link info/link width/max
pcie.replays | number | pci/replay_counter | pci/replays since reset
pcie.replay_rollovers | number | pci/replay_rollover_counter | pci/replay number rollovers
power.draw_w | number
    | POWER/power_draw, POWER/average_power_draw, POWER/instant_power_draw
    | TPOWER/power draw, TPOWER/average power draw, TPOWER/instantaneous power draw
power.instant_draw_w | number | POWER/instant_power_draw | TPOWER/instantaneous power draw
power.limit_w | number
    | POWER/current_power_limit, POWER/gpu_ceiling_power_limit/current_power_limit, POWER/enforced_power_limit,
      POWER/power_limit
power.default_limit_w | number | POWER/default_power_limit, POWER/gpu_ceiling_power_limit/default_power_limit
power.min_limit_w | number | POWER/min_power_limit
power.max_limit_w | number | POWER/max_power_limit
clocks.graphics_mhz | number | clocks/graphics_clock | clocks/graphics
clocks.sm_mhz | number | clocks/sm_clock | clocks/sm
clocks.memory_mhz | number | clocks/mem_clock | clocks/memory
clocks_max.graphics_mhz | number | max_clocks/graphics_clock | max clocks/graphics
clocks_max.sm_mhz | number | max_clocks/sm_clock | max clocks/sm
clocks_max.memory_mhz | number | max_clocks/mem_clock | max clocks/memory
"""

_EXPANDED = {
    "SCOPE": ("volatile", "aggregate"),
    "HIST": ("max", "high", "partial", "low", "none"),
}
_BLOCKS = {
    "TPOWER": ("gpu power readings", "power readings"),
    "POWER": ("gpu_power_readings", "power_readings"),
}
# None when the block itself is printed as N/A: the product has no such mechanism.
_WHOLE = (
    ("remap", ("remapped_rows", "remapped rows")),
    ("bank_remap", ("remapped_banks", "remapped banks")),
    ("retired_pages", ("retired_pages", "retired pages")),
)

_REASON_BLOCKS = (
    ("clocks_event_reasons", "clocks_throttle_reasons"),
    ("clocks event reasons", "clocks throttle reasons"),
)
_REASON_PREFIX = re.compile(r"^clocks_(?:event|throttle)_reasons?_")
_REASON_NAMES = {"idle": "gpu_idle", "display_clock_setting": "display_clocks_setting"}
_HEALTH = ("fabric/health", "fabric/health")

Value = Union[int, float, bool, str, None]
Convert = Callable[[str], Value]


@dataclass(frozen=True)
class _Field:
    path: Tuple[str, ...]
    convert: Convert
    sources: Tuple[Tuple[str, ...], Tuple[str, ...]]


@dataclass
class RawGpu:
    """One GPU as printed: path -> text, in the names of its form (XML or text)."""

    id: str = ""
    leaves: Dict[str, str] = field(default_factory=dict)
    processes: Optional[List[Dict[str, str]]] = None
    mig_devices: int = 0
    mig_errors: List[str] = field(default_factory=list)


@dataclass
class Raw:
    """A whole output as printed. `form` is XML or TEXT."""

    form: int
    top: Dict[str, str] = field(default_factory=dict)
    gpus: List[RawGpu] = field(default_factory=list)
    messages: Messages = field(default_factory=Messages)


def assemble(raw: Raw) -> Facts:
    """The facts of an output. Decides nothing about health."""
    facts: Facts = {}
    _fill(facts, _top_fields(), raw.top, raw.form)
    facts["gpus"] = [_gpu(gpu, index, raw.form) for index, gpu in enumerate(raw.gpus)]
    errors = list(raw.messages.errors)
    errors += [
        {"pci_bus_id": facts_of.get("pci_bus_id"), "text": text}
        for facts_of, text in zip(facts["gpus"], map(_unreadable, raw.gpus))
        if text
    ]
    attached = facts.get("attached_gpus")
    if not errors and isinstance(attached, int) and attached > len(raw.gpus):
        # The text has no end of its own: it may be cut, or have been asked for one GPU (-i).
        how = "listed" if raw.form == XML else "printed"
        errors.append({"pci_bus_id": None, "text": f"{len(raw.gpus)} of {attached} attached GPUs are {how}"})
    facts["errors"] = errors
    facts["warnings"] = list(raw.messages.warnings)
    return facts


def _gpu(gpu: RawGpu, index: int, form: int) -> Facts:
    facts: Facts = {"index": index}
    leaves = gpu.leaves
    _fill(facts, _gpu_fields(), leaves, form)
    printed = facts.get("pci_bus_id")
    if gpu.id and (not isinstance(printed, str) or is_error_value(printed)):
        facts["pci_bus_id"] = gpu.id
    _collapse(facts.get("remap"), "histogram")
    for name, names in _WHOLE:
        if names[form] in leaves:
            _collapse(facts, name)
    _ecc_totals(facts, leaves, form)
    _mig_errors(facts, gpu.mig_errors)
    _throttle(facts, leaves, form)
    _health(facts, leaves, form)
    if gpu.mig_devices or "mig_devices" in leaves or "mig_mode" in facts:
        facts["mig_devices"] = gpu.mig_devices
    if gpu.processes is not None:
        facts["processes"] = [_process(process) for process in gpu.processes]
    elif "processes" in leaves:
        text = leaves["processes"]
        facts["processes"] = [] if text in ("", "None") else word(text)
    return facts


def _fill(facts: Facts, fields: Iterable[_Field], leaves: Mapping[str, str], form: int) -> None:
    for item in fields:
        found, value = _lookup(item, leaves, form)
        if not found:
            continue
        target = facts
        for name in item.path[:-1]:
            target = target.setdefault(name, {})
        target[item.path[-1]] = value


def _lookup(item: _Field, leaves: Mapping[str, str], form: int) -> Tuple[bool, Value]:
    """(printed at all, value); a block printed as one word (N/A, GPU is lost) stands for all its fields."""
    found, value = False, None  # type: bool, Value
    for source in item.sources[form]:
        text = leaves.get(source)
        while text is None and "/" in source:
            source = source.rpartition("/")[0]
            text = leaves.get(source)
        if text is None:
            continue
        found, new = True, item.convert(text)
        # Two names of one flag (pending_blacklist, pending_retirement): a Yes under either one counts.
        value = new if value is None or new is True else value
        if value is not None and value is not False:
            break
    return found, value


def _collapse(facts: Any, name: str) -> None:
    """A block without any value becomes None."""
    block = facts.get(name) if isinstance(facts, dict) else None
    if isinstance(block, dict) and all(value is None for value in block.values()):
        facts[name] = None


def _ecc_totals(facts: Facts, leaves: Mapping[str, str], form: int) -> None:
    """One total per scope and kind. A printed total is never added to its parts.

    Parts: DRAM, and SRAM either as one number or as parity + SEC-DED (from 550). Drivers
    before 450 print single_bit and double_bit per location with a total.
    """
    root, join = ("ecc_errors", "_") if form == XML else ("ecc errors", " ")
    for scope in _EXPANDED["SCOPE"]:
        counters = facts.get("ecc", {}).get(scope)
        if counters is None:
            continue
        for kind, bits in (("uncorrectable", "double"), ("correctable", "single")):
            old = [counters[f"{bits}_bit_total"]] if f"{bits}_bit_total" in counters else []
            if old == [None]:
                prefix = f"{root}/{scope}/{bits}{join}bit/"
                old = [number(text) for path, text in leaves.items() if path.startswith(prefix)]
            parts = old or _new_parts(counters, kind)
            if parts:
                name = "uncorrected" if kind == "uncorrectable" else "corrected"
                facts[f"ecc_{name}_{scope}"] = _sum(parts)


def _mig_errors(facts: Facts, counts: List[str]) -> None:
    """With MIG on, NVML counts volatile errors per instance (SRAM only), and the GPU itself prints N/A."""
    total = _sum(map(number, counts))
    if total is not None and not facts.get("ecc_uncorrected_volatile"):
        facts["ecc_uncorrected_volatile"] = total


def _new_parts(counters: Mapping[str, Value], kind: str) -> List[Value]:
    names = [f"dram_{kind}", f"sram_{kind}"]
    if counters.get(f"sram_{kind}") is None:
        names += [f"sram_{kind}_parity", f"sram_{kind}_secded"]
    return [counters[name] for name in names if name in counters]


def _sum(parts: Iterable[Value]) -> Value:
    """Sum of the numbers; None when all are N/A; an error text wins, a sum would hide it."""
    total: Union[int, float, None] = None
    for part in parts:
        if isinstance(part, str):
            return part
        if part is not None:
            total = part + (total or 0)
    return total


def _throttle(facts: Facts, leaves: Mapping[str, str], form: int) -> None:
    """Names of the active reasons; None when all are N/A; the text when one is neither (an error)."""
    states: Dict[str, str] = {}
    for block in _REASON_BLOCKS[form]:
        if block in leaves:
            states[""] = leaves[block]
        prefix = block + "/"
        states.update((path[len(prefix) :], text) for path, text in leaves.items() if path.startswith(prefix))
    if not states:
        return
    known = {name: text for name, text in states.items() if not t.is_na(text)}
    odd = [text for text in known.values() if text.lower() not in ("active", "not active")]
    if odd:
        facts["throttle_active"] = odd[0]
    elif not known:
        facts["throttle_active"] = None
    else:
        facts["throttle_active"] = [_reason(name) for name, text in known.items() if text.lower() == "active"]


def _reason(path: str) -> str:
    # In the text form the two hardware reasons are indented below "HW Slowdown".
    name = _REASON_PREFIX.sub("", snake(path.rpartition("/")[2]))
    return _REASON_NAMES.get(name, name)


def _health(facts: Facts, leaves: Mapping[str, str], form: int) -> None:
    prefix = _HEALTH[form] + "/"
    health = {snake(path[len(prefix) :]): word(text) for path, text in leaves.items() if path.startswith(prefix)}
    if health:
        facts["fabric_health"] = health
    elif _HEALTH[form] in leaves:
        facts["fabric_health"] = word(leaves[_HEALTH[form]])


def _process(process: Mapping[str, str]) -> Facts:
    return {key: convert(process[name]) for name, key, convert in _PROCESS if name in process}


def _unreadable(gpu: RawGpu) -> str:
    """The error text of a GPU that could not be read, or ''.

    Single error values occur on good GPUs (power_smoothing: Insufficient Permissions), so it
    takes a text about the device itself, or more error values than real ones.
    """
    values = [text for text in gpu.leaves.values() if text and not t.is_na(text)]
    if not values:
        return "nothing is printed for this GPU" if not gpu.leaves else "every field of this GPU is N/A"
    errors = Counter(text for text in values if is_error_value(text))
    if not errors:
        return ""
    gone = next((text for text in errors if device_gone(text)), "")
    return gone or (errors.most_common(1)[0][0] if 2 * sum(errors.values()) > len(values) else "")


def word(text: str) -> Optional[str]:
    """A word as printed; None for N/A and for an element without text."""
    return None if not text or t.is_na(text) or t.is_na(text.strip("[]")) else text


def number(text: str) -> Value:
    """A number without its unit; None for N/A; other text as it is."""
    if len(text) > 64:
        return text
    for unit in (" bank(s)", " group(s)"):
        if text.endswith(unit):
            text = text[: -len(unit)]
    value = t.number(text) if word(text) is not None else None
    return text if isinstance(value, float) and not math.isfinite(value) else value


def flag(text: str) -> Value:
    """Yes/No as bool; None for N/A; other text as it is."""
    value = word(text)
    return {"yes": True, "no": False}.get(value.lower(), value) if value else None


def version(text: str) -> Value:
    """A version; 610 appends a note: '610.43.02 [Deprecated; will be removed in ...]'."""
    return word(text.split(" [", 1)[0].strip())


def snake(name: str) -> str:
    """'HW Thermal Slowdown' -> 'hw_thermal_slowdown'."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


_PROCESS: Tuple[Tuple[str, str, Convert], ...] = (
    ("pid", "pid", number),
    ("type", "type", word),
    ("process_name", "name", word),
    ("used_memory", "used_mib", number),
)
_KINDS: Mapping[str, Convert] = {"word": word, "number": number, "flag": flag, "version": version}
_cache: Dict[str, Tuple[_Field, ...]] = {}


def _top_fields() -> Tuple[_Field, ...]:
    return _table("top", _TOP)


def _gpu_fields() -> Tuple[_Field, ...]:
    return _table("gpu", _GPU)


def _table(name: str, table: str) -> Tuple[_Field, ...]:
    if name not in _cache:
        lines = re.sub(r"\n +", " ", table).strip().splitlines()
        _cache[name] = tuple(_parse_row(row) for line in lines for row in _expand(line))
    return _cache[name]


def _expand(line: str) -> Iterator[str]:
    mark = next((mark for mark in _EXPANDED if mark in line), None)
    if mark is None:
        yield line
        return
    for value in _EXPANDED[mark]:
        yield line.replace(mark, value)


def _parse_row(row: str) -> _Field:
    fact, kind, xml, *text = (cell.strip() for cell in row.split("|"))
    paths = _sources(xml)
    shown = _sources(text[0]) if text else tuple(path.replace("_", " ") for path in paths)
    return _Field(tuple(fact.split(".")), _KINDS[kind], (paths, shown))


def _sources(cell: str) -> Tuple[str, ...]:
    found: List[str] = []
    for path in cell.split(", "):
        head, slash, rest = path.partition("/")
        found += [f"{block}{slash}{rest}" for block in _BLOCKS.get(head, (head,))]
    return tuple(found)
