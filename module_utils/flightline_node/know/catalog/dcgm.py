"""DCGM's diagnostic errors: what an error id is called, how severe it is, what to do about it.

Source: NVIDIA/DCGM 4.6.0, dcgmlib/dcgm_errors.h and dcgmlib/src/dcgm_errors.c. The remedies are
this project's reading of the severities, with OVERRIDES where the severity alone misleads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import AbstractSet, Dict, List, Mapping, Optional, Tuple

from ...model import Facts, Remedy

NEW_SCHEME = "3.3.1 and later"
OLD_SCHEME = "before 3.3.1"
RENUMBERED_AT: Tuple[int, ...] = (3, 3, 1)
SEVERITIES: Mapping[str, Tuple[str, ...]] = {
    NEW_SCHEME: ("NONE", "MONITOR", "ISOLATE", "UNKNOWN", "TRIAGE", "CONFIG", "RESET"),
    OLD_SCHEME: ("MONITOR", "ISOLATE", "UNKNOWN"),
}
"""Severity numbers: DCGM 3.3.1 renumbered them, so a bare 1 means two things."""

REMEDY_OF_SEVERITY: Mapping[str, Remedy] = {
    "ISOLATE": Remedy.REPLACE,
    "RESET": Remedy.RESET_GPU,
    "CONFIG": Remedy.FIX_CONFIG,
    "TRIAGE": Remedy.INVESTIGATE,
    "MONITOR": Remedy.INVESTIGATE,
    "UNKNOWN": Remedy.INVESTIGATE,
    "NONE": Remedy.INVESTIGATE,
}

OVERRIDES: Mapping[int, Tuple[Remedy, str]] = {
    20: (Remedy.REBOOT, "a missing device is not a setting"),
    22: (Remedy.UPDATE_SOFTWARE, "a library that cannot be opened is an installation fault"),
    24: (Remedy.UPDATE_SOFTWARE, "a bad NVML library is an installation fault, not a bad GPU"),
    25: (Remedy.RESTART_APP, "graphics processes are running: stop them"),
    80: (Remedy.REPLACE, "row remapping failed: NVIDIA's memory error guide asks for a replacement"),
    108: (Remedy.FIX_CONFIG, "the fabric manager is not running"),
    122: (Remedy.FIX_CONFIG, "the IMEX service, not the GPU"),
    126: (Remedy.REBOOT, "the driver's own recovery action is a reboot"),
}

PERSISTENCE_MODE = 29
IMEX_UNHEALTHY = 122
"""Noise on every machine that is no multi-node NVLink system."""

LANES = 16
"""What the PCIe test asks of every GPU (min_pci_width); only a file given with -c changes it."""

_GPU = re.compile(r"\bGPU:? ?(\d{1,4})\b")
_MEMORY = re.compile(r"memory|\bECC\b|\bremap|\bDBE\b", re.IGNORECASE)
_WIDTH = re.compile(r"PCI link width (\d{1,3})X", re.IGNORECASE)

SOFTWARE_TESTS = frozenset({
    "software", "denylist", "blacklist", "nvml library", "cuda main library", "cuda toolkit library",
    "cuda toolkit libraries", "permissions and os blocks", "persistence mode", "environment variables",
    "environmental variables", "page retirement", "page retirement/row remap", "graphics processes", "inforom",
    "fabric manager",
})  # fmt: skip
"""Tests that look at the set-up and do no work on the GPU, by the names of DCGM 1 to 4."""


@dataclass(frozen=True)
class DcgmError:
    """One error id of DCGM."""

    id: int
    name: str
    severity: str


@lru_cache(maxsize=None)
def errors() -> Dict[int, DcgmError]:
    """Every known error by id."""
    groups = (group.split() for group in TABLE.replace("\n ", " ").splitlines())
    found = ((one.split(":"), severity) for severity, *ones in groups for one in ones)
    return {int(number): DcgmError(int(number), name, severity) for (number, name), severity in found}


MESSAGES: Tuple[Tuple[str, int], ...] = (
    ("volatile double-bit ecc", 4),
    ("pending retired page has been detected", 6),
    ("nvlink link", 14),
    ("driver on the denylist", 23),
    ("with graphics contexts open", 25),
    ("persistence mode for gpu", 29),
    ("did not exceed minimum required bandwidth", 30),
    ("running at pci link generation", 45),
    ("running at pci link width", 46),
    ("faulty memory elements on gpu", 52),
    ("a double-bit ecc error has", 57),
    ("a memory mismatch was detected", 58),
    ("only achieved a memory bandwidth", 62),
    ("failed to create a cuda context", 66),
    ("miscompare failure in the l1 cache", 79),
    ("memory errors and row remapping failed", 80),
    ("had an uncontained error", 81),
    ("pending page retirements together with a dbe", 83),
    ("rows were remapped", 84),
    ("row remappings are pending", 85),
    ("unsuccessfully written to in a peer-to-peer", 86),
    ("unsuccessfully wrote data in a peer-to-peer", 87),
    ("detected xid", 101),
    ("fatal nvswitch sxid", 109),
)
"""Fixed parts of DCGM's messages and their ids: DCGM 2 and the plain-text table print no id (dcgm_errors.h, 2.0 to 4.6)."""


def id_of(error_id: Optional[int], message: object) -> Optional[int]:
    """The error id as printed, else by the message."""
    if error_id is not None or not isinstance(message, str):
        return error_id
    low = message.lower()
    return next((number for words, number in MESSAGES if words in low), None)


def gpu_in(message: str) -> Optional[int]:
    """The GPU that a message names, if it is one."""
    named = {int(number) for number in _GPU.findall(message)}
    return named.pop() if len(named) == 1 else None


def names_memory(message: str) -> bool:
    """Is it about a GPU's memory, or its errors?"""
    return _MEMORY.search(message) is not None


def lanes_in(message: str) -> Optional[int]:
    """The lanes that a message of the PCIe test complains of."""
    found = _WIDTH.search(message)
    return int(found.group(1)) if found else None


def lookup(error_id: object) -> Optional[DcgmError]:
    """The error of an id, or None when DCGM is newer than the table."""
    return errors().get(error_id) if isinstance(error_id, int) else None


def told(note: Facts) -> str:
    """A message of a test, with the error's name and severity."""
    error = lookup(id_of(note.get("error_id"), note.get("message")))
    kind = ", ".join(str(word) for word in (error.name if error else None, note.get("severity")) if word)
    return f"{note['test']}: {note.get('message') or 'no message'}" + (f" ({kind})" if kind else "")


def by_place(notes: List[Facts]) -> Dict[Tuple[Optional[int], str], List[Facts]]:
    """Messages by the GPU, or the other entity, that they are of."""
    places: Dict[Tuple[Optional[int], str], List[Facts]] = {}
    for note in notes:
        places.setdefault((note.get("gpu"), note.get("entity", "")), []).append(note)
    return places


def scheme_of(version: Tuple[int, ...]) -> str:
    """Which severity numbers a DCGM version prints."""
    return NEW_SCHEME if version >= RENUMBERED_AT else OLD_SCHEME


def severity_name(value: int, scheme: Optional[str], error_id: Optional[int] = None) -> str:
    """The name of a printed severity number; the number as text when it cannot be told.

    Without a scheme (the version was not printed), the scheme in which the number agrees with
    the error id's severity is taken.
    """
    names = {key: known[value] if 0 <= value < len(known) else "" for key, known in SEVERITIES.items()}
    if scheme:
        return names[scheme] or str(value)
    error = lookup(error_id)
    if error and error.severity in names.values():
        return error.severity
    return names[NEW_SCHEME] if not names[OLD_SCHEME] and names[NEW_SCHEME] else str(value)


def remedy_of(error_id: Optional[int], severity: Optional[str]) -> Remedy:
    """What to do: the id's override, else by the severity printed, else by the table's severity."""
    if error_id is not None and error_id in OVERRIDES:
        return OVERRIDES[error_id][0]
    error = lookup(error_id)
    known = severity if severity in REMEDY_OF_SEVERITY else (error.severity if error else "UNKNOWN")
    return REMEDY_OF_SEVERITY[str(known)]


def worst(remedies: AbstractSet[Remedy]) -> Remedy:
    """The one that does most; what DCGM's own words leave open is to be investigated."""
    return min(remedies, key=lambda remedy: remedy.row.rank, default=Remedy.INVESTIGATE)


TABLE = """\
UNKNOWN 0:OK 1:UNKNOWN 2:UNRECOGNIZED 21:BAD_PARAMETER
ISOLATE 3:PCI_REPLAY_RATE 4:VOLATILE_DBE_DETECTED 7:RETIRED_PAGES_LIMIT 8:RETIRED_PAGES_DBE_LIMIT 13:NVLINK_ERROR_THRESHOLD 15:NVSWITCH_FATAL_ERROR
 24:NVML_LIB_BAD 33:FIELD_VIOLATION 35:FIELD_VIOLATION_DBL 36:FIELD_THRESHOLD_DBL 38:FIELD_THRESHOLD_TS 39:FIELD_THRESHOLD_TS_DBL 52:FAULTY_MEMORY
 57:CUDA_DBE 58:MEMORY_MISMATCH 70:NVLINK_CRC_ERROR_THRESHOLD 71:NVLINK_ERROR_CRITICAL 79:L1TAG_MISCOMPARE 81:UNCONTAINED_ERROR 86:BROKEN_P2P_MEMORY_DEVICE
 87:BROKEN_P2P_WRITER_DEVICE 88:NVSWITCH_NVLINK_DOWN 95:EUD_TEST_FAILED 98:PCIE_H_REPLAY_VIOLATION 102:SBE_VIOLATION 103:DBE_VIOLATION
 104:PCIE_REPLAY_VIOLATION 105:SBE_THRESHOLD_VIOLATION 106:DBE_THRESHOLD_VIOLATION 107:PCIE_REPLAY_THRESHOLD_VIOLATION 109:SXID_ERROR 111:NAN_VALUE
 113:BROKEN_P2P_PCIE_MEMORY_DEVICE 114:BROKEN_P2P_PCIE_WRITER_DEVICE 115:BROKEN_P2P_NVLINK_MEMORY_DEVICE 116:BROKEN_P2P_NVLINK_WRITER_DEVICE
 118:SRAM_THRESHOLD 119:NVLINK_EFFECTIVE_BER_THRESHOLD 120:FALLEN_OFF_BUS 121:NVLINK_SYMBOL_BER_THRESHOLD 122:IMEX_UNHEALTHY 126:GPU_RECOVERY_REBOOT
MONITOR 5:VOLATILE_SBE_DETECTED 10:CLOCKS_EVENT_THERMAL 11:POWER_UNREADABLE 12:CLOCKS_EVENT_POWER 16:NVSWITCH_NON_FATAL_ERROR 17:NVSWITCH_DOWN 19:NVML_API
 26:HOSTENGINE_CONN 27:FIELD_QUERY 32:CANNOT_GET_FIELD_TAG 34:FIELD_THRESHOLD 40:THERMAL_VIOLATIONS 41:THERMAL_VIOLATIONS_TS 42:TEMP_VIOLATION
 43:CLOCKS_EVENT_VIOLATION 51:CUDA_API 53:CANNOT_SET_WATCHES 61:ECC_PENDING 69:TOO_MANY_ERRORS 74:GPU_OP_MODE 75:NO_MEMORY_CLOCKS 76:NO_GRAPHICS_CLOCKS
 108:CUDA_FM_NOT_INITIALIZED 123:FABRIC_PROBE_STATE 131:CONTAINED_ERROR
RESET 6:PENDING_PAGE_RETIREMENTS 25:GRAPHICS_PROCESSES 80:ROW_REMAP_FAILURE 83:DBE_PENDING_PAGE_RETIREMENTS 84:UNCORRECTABLE_ROW_REMAP 85:PENDING_ROW_REMAP
 125:GPU_RECOVERY_RESET 127:GPU_RECOVERY_DRAIN_P2P 128:GPU_RECOVERY_DRAIN_RESET 129:NCCL_ERROR
TRIAGE 9:CORRUPT_INFOROM 14:NVLINK_DOWN 22:CANNOT_OPEN_LIB 30:LOW_BANDWIDTH 31:HIGH_LATENCY 37:UNSUPPORTED_FIELD_TYPE 44:INTERNAL 45:PCIE_GENERATION
 49:CANNOT_GET_STAT 50:STRESS_LEVEL 54:CUDA_UNBOUND 56:MEMORY_ALLOC 59:CUDA_DEVICE 62:MEMORY_BANDWIDTH 63:TARGET_POWER 64:API_FAIL 65:API_FAIL_GPU
 66:CUDA_CONTEXT 67:DCGM_API 73:MEMORY_ALLOC_HOST 77:HAD_TO_RESTORE_STATE 89:EUD_BINARY_PERMISSIONS 90:EUD_NON_ROOT_USER 91:EUD_SPAWN_FAILURE 92:EUD_TIMEOUT
 93:EUD_ZOMBIE 94:EUD_NON_ZERO_EXIT_CODE 97:PAUSE_RESUME_FAILED 99:GPU_EXPECTED_NVLINKS_UP 100:NVSWITCH_EXPECTED_NVLINKS_UP 101:XID_ERROR
 110:GFLOPS_THRESHOLD_VIOLATION 124:BINARY_PERMISSIONS 130:RETEST_REQUESTED 132:UNCORRECTABLE_ROW_REMAP_LIMIT
CONFIG 18:NO_ACCESS_TO_FILE 20:DEVICE_COUNT_MISMATCH 23:DENYLISTED_DRIVER 28:BAD_CUDA_ENV 29:PERSISTENCE_MODE 46:PCIE_WIDTH 47:ABORTED 48:TEST_DISABLED
 55:ECC_DISABLED 60:ECC_UNSUPPORTED 68:CONCURRENT_GPUS 72:ENFORCED_POWER_LIMIT 78:L1TAG_UNSUPPORTED 82:EMPTY_GPU_LIST 96:FILE_CREATE_PERMISSIONS
 112:FABRIC_MANAGER_TRAINING_ERROR 117:TEST_SKIPPED
"""
