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
    category: str


@lru_cache(maxsize=None)
def errors() -> Dict[int, DcgmError]:
    """Every known error by id."""
    found = (line.split() for line in TABLE.splitlines())
    return {int(number): DcgmError(int(number), name, severity, kind) for number, name, severity, kind in found}


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
0 OK UNKNOWN NONE
1 UNKNOWN UNKNOWN NONE
2 UNRECOGNIZED UNKNOWN NONE
3 PCI_REPLAY_RATE ISOLATE HARDWARE_PCIE
4 VOLATILE_DBE_DETECTED ISOLATE HARDWARE_MEMORY
5 VOLATILE_SBE_DETECTED MONITOR HARDWARE_MEMORY
6 PENDING_PAGE_RETIREMENTS RESET HARDWARE_MEMORY
7 RETIRED_PAGES_LIMIT ISOLATE HARDWARE_MEMORY
8 RETIRED_PAGES_DBE_LIMIT ISOLATE HARDWARE_MEMORY
9 CORRUPT_INFOROM TRIAGE HARDWARE_OTHER
10 CLOCKS_EVENT_THERMAL MONITOR HARDWARE_THERMAL
11 POWER_UNREADABLE MONITOR HARDWARE_POWER
12 CLOCKS_EVENT_POWER MONITOR HARDWARE_POWER
13 NVLINK_ERROR_THRESHOLD ISOLATE HARDWARE_NVLINK
14 NVLINK_DOWN TRIAGE HARDWARE_NVLINK
15 NVSWITCH_FATAL_ERROR ISOLATE HARDWARE_NVSWITCH
16 NVSWITCH_NON_FATAL_ERROR MONITOR HARDWARE_NVSWITCH
17 NVSWITCH_DOWN MONITOR HARDWARE_NVSWITCH
18 NO_ACCESS_TO_FILE CONFIG SOFTWARE_OTHER
19 NVML_API MONITOR SOFTWARE_LIBRARY
20 DEVICE_COUNT_MISMATCH CONFIG SOFTWARE_OTHER
21 BAD_PARAMETER UNKNOWN INTERNAL_OTHER
22 CANNOT_OPEN_LIB TRIAGE SOFTWARE_LIBRARY
23 DENYLISTED_DRIVER CONFIG SOFTWARE_CONFIG
24 NVML_LIB_BAD ISOLATE SOFTWARE_LIBRARY
25 GRAPHICS_PROCESSES RESET SOFTWARE_OTHER
26 HOSTENGINE_CONN MONITOR INTERNAL_OTHER
27 FIELD_QUERY MONITOR INTERNAL_OTHER
28 BAD_CUDA_ENV CONFIG SOFTWARE_CUDA
29 PERSISTENCE_MODE CONFIG SOFTWARE_OTHER
30 LOW_BANDWIDTH TRIAGE HARDWARE_PCIE
31 HIGH_LATENCY TRIAGE HARDWARE_PCIE
32 CANNOT_GET_FIELD_TAG MONITOR INTERNAL_OTHER
33 FIELD_VIOLATION ISOLATE HARDWARE_OTHER
34 FIELD_THRESHOLD MONITOR PERF_VIOLATION
35 FIELD_VIOLATION_DBL ISOLATE PERF_VIOLATION
36 FIELD_THRESHOLD_DBL ISOLATE PERF_VIOLATION
37 UNSUPPORTED_FIELD_TYPE TRIAGE INTERNAL_OTHER
38 FIELD_THRESHOLD_TS ISOLATE PERF_THRESHOLD
39 FIELD_THRESHOLD_TS_DBL ISOLATE PERF_THRESHOLD
40 THERMAL_VIOLATIONS MONITOR HARDWARE_THERMAL
41 THERMAL_VIOLATIONS_TS MONITOR HARDWARE_THERMAL
42 TEMP_VIOLATION MONITOR HARDWARE_THERMAL
43 CLOCKS_EVENT_VIOLATION MONITOR HARDWARE_OTHER
44 INTERNAL TRIAGE INTERNAL_OTHER
45 PCIE_GENERATION TRIAGE HARDWARE_PCIE
46 PCIE_WIDTH CONFIG HARDWARE_PCIE
47 ABORTED CONFIG SOFTWARE_OTHER
48 TEST_DISABLED CONFIG SOFTWARE_CONFIG
49 CANNOT_GET_STAT TRIAGE INTERNAL_OTHER
50 STRESS_LEVEL TRIAGE PERF_THRESHOLD
51 CUDA_API MONITOR SOFTWARE_CUDA
52 FAULTY_MEMORY ISOLATE HARDWARE_MEMORY
53 CANNOT_SET_WATCHES MONITOR INTERNAL_OTHER
54 CUDA_UNBOUND TRIAGE SOFTWARE_CUDA
55 ECC_DISABLED CONFIG HARDWARE_MEMORY
56 MEMORY_ALLOC TRIAGE SOFTWARE_OTHER
57 CUDA_DBE ISOLATE HARDWARE_MEMORY
58 MEMORY_MISMATCH ISOLATE HARDWARE_MEMORY
59 CUDA_DEVICE TRIAGE SOFTWARE_CUDA
60 ECC_UNSUPPORTED CONFIG HARDWARE_MEMORY
61 ECC_PENDING MONITOR HARDWARE_MEMORY
62 MEMORY_BANDWIDTH TRIAGE PERF_THRESHOLD
63 TARGET_POWER TRIAGE HARDWARE_POWER
64 API_FAIL TRIAGE SOFTWARE_OTHER
65 API_FAIL_GPU TRIAGE SOFTWARE_OTHER
66 CUDA_CONTEXT TRIAGE SOFTWARE_CUDA
67 DCGM_API TRIAGE INTERNAL_OTHER
68 CONCURRENT_GPUS CONFIG SOFTWARE_CONFIG
69 TOO_MANY_ERRORS MONITOR SOFTWARE_OTHER
70 NVLINK_CRC_ERROR_THRESHOLD ISOLATE HARDWARE_NVLINK
71 NVLINK_ERROR_CRITICAL ISOLATE HARDWARE_NVLINK
72 ENFORCED_POWER_LIMIT CONFIG HARDWARE_POWER
73 MEMORY_ALLOC_HOST TRIAGE SOFTWARE_OTHER
74 GPU_OP_MODE MONITOR SOFTWARE_CONFIG
75 NO_MEMORY_CLOCKS MONITOR HARDWARE_MEMORY
76 NO_GRAPHICS_CLOCKS MONITOR HARDWARE_OTHER
77 HAD_TO_RESTORE_STATE TRIAGE SOFTWARE_OTHER
78 L1TAG_UNSUPPORTED CONFIG SOFTWARE_OTHER
79 L1TAG_MISCOMPARE ISOLATE HARDWARE_MEMORY
80 ROW_REMAP_FAILURE RESET HARDWARE_MEMORY
81 UNCONTAINED_ERROR ISOLATE SOFTWARE_XID
82 EMPTY_GPU_LIST CONFIG SOFTWARE_CONFIG
83 DBE_PENDING_PAGE_RETIREMENTS RESET HARDWARE_MEMORY
84 UNCORRECTABLE_ROW_REMAP RESET HARDWARE_MEMORY
85 PENDING_ROW_REMAP RESET HARDWARE_MEMORY
86 BROKEN_P2P_MEMORY_DEVICE ISOLATE HARDWARE_OTHER
87 BROKEN_P2P_WRITER_DEVICE ISOLATE HARDWARE_OTHER
88 NVSWITCH_NVLINK_DOWN ISOLATE HARDWARE_NVLINK
89 EUD_BINARY_PERMISSIONS TRIAGE SOFTWARE_EUD
90 EUD_NON_ROOT_USER TRIAGE SOFTWARE_EUD
91 EUD_SPAWN_FAILURE TRIAGE SOFTWARE_EUD
92 EUD_TIMEOUT TRIAGE SOFTWARE_EUD
93 EUD_ZOMBIE TRIAGE SOFTWARE_EUD
94 EUD_NON_ZERO_EXIT_CODE TRIAGE SOFTWARE_EUD
95 EUD_TEST_FAILED ISOLATE SOFTWARE_EUD
96 FILE_CREATE_PERMISSIONS CONFIG SOFTWARE_CONFIG
97 PAUSE_RESUME_FAILED TRIAGE INTERNAL_OTHER
98 PCIE_H_REPLAY_VIOLATION ISOLATE HARDWARE_PCIE
99 GPU_EXPECTED_NVLINKS_UP TRIAGE HARDWARE_NVLINK
100 NVSWITCH_EXPECTED_NVLINKS_UP TRIAGE HARDWARE_NVLINK
101 XID_ERROR TRIAGE SOFTWARE_XID
102 SBE_VIOLATION ISOLATE HARDWARE_MEMORY
103 DBE_VIOLATION ISOLATE HARDWARE_MEMORY
104 PCIE_REPLAY_VIOLATION ISOLATE HARDWARE_PCIE
105 SBE_THRESHOLD_VIOLATION ISOLATE HARDWARE_MEMORY
106 DBE_THRESHOLD_VIOLATION ISOLATE HARDWARE_MEMORY
107 PCIE_REPLAY_THRESHOLD_VIOLATION ISOLATE HARDWARE_PCIE
108 CUDA_FM_NOT_INITIALIZED MONITOR SOFTWARE_CUDA
109 SXID_ERROR ISOLATE SOFTWARE_XID
110 GFLOPS_THRESHOLD_VIOLATION TRIAGE PERF_VIOLATION
111 NAN_VALUE ISOLATE HARDWARE_MEMORY
112 FABRIC_MANAGER_TRAINING_ERROR CONFIG SOFTWARE_CUDA
113 BROKEN_P2P_PCIE_MEMORY_DEVICE ISOLATE HARDWARE_PCIE
114 BROKEN_P2P_PCIE_WRITER_DEVICE ISOLATE HARDWARE_PCIE
115 BROKEN_P2P_NVLINK_MEMORY_DEVICE ISOLATE HARDWARE_NVLINK
116 BROKEN_P2P_NVLINK_WRITER_DEVICE ISOLATE HARDWARE_NVLINK
117 TEST_SKIPPED CONFIG SOFTWARE_CONFIG
118 SRAM_THRESHOLD ISOLATE HARDWARE_MEMORY
119 NVLINK_EFFECTIVE_BER_THRESHOLD ISOLATE HARDWARE_NVLINK
120 FALLEN_OFF_BUS ISOLATE HARDWARE_OTHER
121 NVLINK_SYMBOL_BER_THRESHOLD ISOLATE HARDWARE_NVLINK
122 IMEX_UNHEALTHY ISOLATE SOFTWARE_OTHER
123 FABRIC_PROBE_STATE MONITOR HARDWARE_NVLINK
124 BINARY_PERMISSIONS TRIAGE SOFTWARE_OTHER
125 GPU_RECOVERY_RESET RESET HARDWARE_OTHER
126 GPU_RECOVERY_REBOOT ISOLATE HARDWARE_OTHER
127 GPU_RECOVERY_DRAIN_P2P RESET HARDWARE_OTHER
128 GPU_RECOVERY_DRAIN_RESET RESET HARDWARE_OTHER
129 NCCL_ERROR RESET HARDWARE_OTHER
130 RETEST_REQUESTED TRIAGE SOFTWARE_OTHER
131 CONTAINED_ERROR MONITOR SOFTWARE_XID
132 UNCORRECTABLE_ROW_REMAP_LIMIT TRIAGE HARDWARE_MEMORY
"""
