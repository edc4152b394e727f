"""What does DCGM's own diagnostic say of the GPUs?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.catalog import cuda, nvml
from ...know.catalog import dcgm as catalog
from ...model import Device, Facts, Finding, Reason, Remedy
from ..context import Context
from .common import gpu_check, gpu_device
from .pcie_width import wanted_lanes

FAILED = Reason("failed", "a test of DCGM failed", device="GPU")
WARNED = Reason("warned", "DCGM warns and fails no test", device="GPU")
SKIPPED_ON_SOME = Reason("skipped_on_some", "DCGM skipped a test on some GPUs alone")
UNKNOWN_STATUS = Reason("unknown_status", "DCGM gave a status that is not known")
LEFT_OUT = Reason("left_out", "DCGM did not run some tests")
SKIPPED_ALL = Reason("skipped_all", "DCGM skipped every test that works the GPUs")
FOUND_BEFORE = Reason("found_before", "DCGM found a fault before its tests", device="GPU")
NOT_STARTED = Reason("not_started", "DCGM could not run its diagnostic")
MIG_SET = Reason("mig_set", "DCGM tests no GPU that is cut into MIG instances", Remedy.RESTART_APP)
UNTESTED = Reason("untested", "DCGM tested fewer GPUs than there are")
CUT_SHORT = Reason("cut_short", "DCGM's table is cut short")
NONE_RAN = Reason("none_ran", "DCGM ran no test")
_EVIDENCE_OF_WORK = frozenset({"Pass", "Fail", "Warn"})
_KNOWN = _EVIDENCE_OF_WORK | {"Skip", "Not Run"}


def _device(context: Context, facts: Facts, note: Facts) -> Device:
    """The GPU by DCGM's index, with serial and UUID where nvidia-smi or DCGM give them."""
    gpu = note.get("gpu")
    if gpu is None:
        return {"name": note["entity"]} if note.get("entity") else {}
    serial = facts.get("serials", {}).get(str(gpu))
    smi = (context.optional("nvidia_smi") or {}).get("gpus", [])
    # DCGM and nvidia-smi number GPUs alike, but only the serial number proves it.
    known = [g for g in smi if (g.get("serial") == serial if serial else g.get("index") == gpu)]
    device: Dict[str, Any] = {"index": gpu}
    if serial:
        device["serial"] = serial
    return {**device, **gpu_device(known[0]), "index": gpu} if len(known) == 1 else device


def _id(note: Facts) -> Optional[int]:
    return catalog.id_of(note.get("error_id"), note.get("message"))


def _about(said: str) -> str:
    """What DCGM's words are about, as other checks name it: a lost GPU, its memory, or something else."""
    kind = nvml.kind(said)
    return "memory" if kind == nvml.OTHER and catalog.names_memory(said) else kind


def _noise(context: Context, note: Facts) -> bool:
    """What DCGM fails on good nodes: IMEX but in a rack; persistence mode; 16 lanes where AWS connects 8."""
    lanes, wanted = catalog.lanes_in(note.get("message", "")), wanted_lanes(context, catalog.LANES)
    if lanes is not None and wanted:
        return wanted < catalog.LANES and lanes >= wanted
    number = _id(note)
    if number == catalog.PERSISTENCE_MODE:  # as the check of that name has it
        return not context.expected.persistence_mode
    return number == catalog.IMEX_UNHEALTHY and not context.expected.nvlink_rack


def _remedy(notes: List[Facts]) -> Remedy:
    known = {catalog.remedy_of(_id(note), note.get("severity")) for note in notes}
    told = {fault.remedy for fault, _ in cuda.faults_in(note.get("message") or "" for note in notes)}
    return catalog.worst(known | told)


def _messages(context: Context, facts: Facts) -> Iterator[Finding]:
    """One finding per bad device; then what DCGM warns of without failing a test."""
    failures = [note for note in facts["failures"] if not _noise(context, note)]
    for notes in catalog.by_place(failures).values():
        tests = ", ".join(dict.fromkeys(note["test"] for note in notes))
        told = catalog.told(notes[0])
        yield context.fail(
            FAILED.of(_about(told)), f"DCGM test failed: {told}", remedy=_remedy(notes), measured=tests,
            expected="Pass", device=_device(context, facts, notes[0]), evidence=[catalog.told(note) for note in notes],
        )  # fmt: skip
    noise = [note for note in facts["failures"] if _noise(context, note)]
    for notes in catalog.by_place([*facts["warnings"], *noise]).values():
        yield context.warn(
            WARNED, f"DCGM warns: {catalog.told(notes[0])}", remedy=_remedy(notes), measured="Warn", expected="Pass",
            device=_device(context, facts, notes[0]), evidence=[catalog.told(note) for note in notes],
        )  # fmt: skip


def _skipped_on_some(context: Context, facts: Facts, partly: Dict[str, List[int]]) -> Iterator[Finding]:
    """A node's GPUs are alike: what DCGM can test on one of them it should be able to test on all."""
    for name, gpus in partly.items():
        device = _device(context, facts, {"gpu": gpus[0]}) if len(gpus) == 1 else {}
        text = f"DCGM skipped {name} on GPU {', '.join(map(str, gpus))} alone"
        yield context.warn(SKIPPED_ON_SOME, text, measured="Skip", expected="Pass", device=device)


def _statuses(context: Context, facts: Facts) -> Iterator[Finding]:
    """What the tests' statuses say beyond the messages."""
    tests: Dict[str, str] = facts["tests"]
    failed = {note["test"] for note in facts["failures"]}
    told = failed | {note["test"] for note in facts["warnings"]}
    strange = {name: status for name, status in tests.items() if status not in _KNOWN}
    if strange:
        yield context.unknown(UNKNOWN_STATUS, f"DCGM gave a status that is not known: {strange}")
    for name in (name for name, status in tests.items() if status == "Fail" and name not in failed):
        yield context.fail(FAILED.of(_about(name)), f"DCGM test failed: {name}", measured="Fail", expected="Pass")
    for name in (name for name, status in tests.items() if status == "Warn" and name not in told):
        yield context.warn(WARNED, f"DCGM warns: {name}", measured="Warn", expected="Pass")
    left_out = [name for name, status in tests.items() if status == "Not Run"]
    if left_out:
        yield context.warn(LEFT_OUT, f"not run by DCGM: {', '.join(left_out)}")
    partly = facts.get("skipped_on", {})
    yield from _skipped_on_some(context, facts, partly)
    skipped = [name for name, status in tests.items() if status == "Skip" and name not in partly]
    hard = [name for name in tests if name.lower() not in catalog.SOFTWARE_TESTS]
    if hard and len(skipped) < len(tests) and all(name in skipped for name in hard):
        yield context.warn(SKIPPED_ALL, f"DCGM skipped every test that works the GPUs: {', '.join(skipped)}")
    passed = [name for name, status in tests.items() if status == "Pass"]
    if passed:
        also = f"; skipped: {', '.join(skipped)}" if skipped else ""
        yield context.ok(f"DCGM {facts.get('dcgm_version', '')} passed {', '.join(passed)}{also}", measured=len(passed))


def evaluate(context: Context) -> Iterator[Finding]:
    """A failed test fails, unless it fails on good nodes of the type as well; nothing run is unknown."""
    facts = context.facts("dcgm_diag")
    tests, error = facts.get("tests", {}), facts.get("runtime_error")
    if error and _id({"message": error}) is not None:
        remedy = _remedy([{"message": error}])
        yield context.fail(
            FOUND_BEFORE.of(_about(error)), f"DCGM found before its tests: {error}", remedy=remedy,
            measured="error", expected="none", device=_device(context, facts, {"gpu": catalog.gpu_in(error)}),
        )  # fmt: skip
    elif error and "MIG configuration is incompatible" in error:
        yield context.info(
            MIG_SET, f"DCGM tests no GPU that is cut into MIG instances: {error}", remedy=Remedy.RESTART_APP
        )
    elif error and nvml.saying(error):
        yield context.fail(FOUND_BEFORE.of(_about(error)), f"DCGM found before its tests: {error}", measured="error")
    elif error:
        yield context.unknown(NOT_STARTED.of(_about(error)), f"DCGM could not run its diagnostic: {error}")
    seen, there = facts.get("gpus"), context.expected.gpu_count
    if seen and there and seen < there:
        yield context.unknown(
            UNTESTED, f"DCGM tested {seen} of {there} GPUs", measured=seen, expected=there, unit="GPUs"
        )
    if facts.get("cut"):
        yield context.unknown(
            CUT_SHORT, "DCGM's table is cut short: what the tests after its last row say is not known"
        )
    worked = facts.get("skipped_on") or any(status in _EVIDENCE_OF_WORK for status in tests.values())
    if not error and not worked:
        seen = ", ".join(f"{name} {status}" for name, status in tests.items())
        yield context.unknown(NONE_RAN, f"DCGM ran no test: {seen or 'none listed'}")
    yield from _messages(context, facts)
    yield from _statuses(context, facts)


CHECK = gpu_check(
    id="dcgm_diag",
    order=810,
    title="DCGM diagnostic",
    what="The results of dcgmi diag: memory, PCIe, stress, power and deployment tests, per GPU.",
    why="It finds bad memory, weak links and wrong set-up before a job does, and names the GPU.",
    remedy="By severity: ISOLATE replace the node, RESET reset the GPU, CONFIG mend the set-up, TRIAGE look closer.",
    do="",
    out_of_service="Yes for a failed test; not for persistence mode, IMEX out of a rack, lanes that AWS lacks.",
    first="dcgmi diag -r 2 -j",
    source="NVIDIA DCGM user guide, diagnostics; NVIDIA/DCGM dcgm_errors.c 4.6.0",
    needs=("dcgm_diag",),
    wants=("nvidia_smi",),
    tags=("dcgm", "gpu"),
    level="standard",
    evaluate=evaluate,
)
