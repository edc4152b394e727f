"""Faults that only an active test shows."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Tuple

from flightline_node.model import Remedy, Status

from .. import active
from ..hardware import Machine
from ..tree import Entry
from .change import edited, last_efa, rewritten, set_tool, target, together
from .fault import Apply, Change, DoesNotApply, Fault

_OWN = "root/run/flightline"
"""Where tests of our own leave what they say."""


def _nccl_log(share: float, wrong: int, files: Mapping[str, Entry], machine: Machine) -> Change:
    """Write another log of all_reduce; see active.nccl for how."""
    if machine.gpu_count == 1:
        raise DoesNotApply("one GPU has nothing to send")
    if machine.neuron:
        raise DoesNotApply("it has no GPU")
    return {"out/nccl-all_reduce.log": active.nccl(machine, "all_reduce", share, wrong).encode()}


def _memory_failed(document: Dict[str, Any], machine: Machine) -> None:
    index = target(machine)
    warning = {
        "error_category": 10,
        "error_id": 4,
        "error_severity": 2,
        "warning": f"Detected 2 volatile double-bit ECC error(s) in GPU {index}. Drain the GPU and reset it or reboot.",
    }
    tests = [test for group in document["DCGM Diagnostic"]["test_categories"] for test in group["tests"]]
    memory = next(test for test in tests if test["name"] == "memory")
    memory["results"][index].update(status="Fail", warnings=[warning])
    memory["test_summary"] = {"status": "Fail", "warnings": [warning]}


def _load(change: Callable[[Dict[str, Any], int], object]) -> Apply:
    """Change what the load program says; `change` gets the document and the faulty GPU's index."""
    return rewritten(f"{_OWN}/gpu-load.json", lambda document, machine: change(document, target(machine)), 1)


def _loaded(**fields: Any) -> Apply:
    """Change what the load program says of one GPU."""
    return _load(lambda document, gpu: document["gpus"][gpu].update(fields))


def _throttled(document: Dict[str, Any], gpu: int) -> None:
    pci = f"0000{document['gpus'][gpu]['pci']}".upper()
    document["samples"][pci].update(throttle={"0x4": 6, "0x48": 14}, temperature_c_max=91, sm_mhz_median=345)


def _not_run(document: Dict[str, Any], gpu: int) -> None:
    document.clear()
    document["not_run"] = "libcublas.so.13: libcublas.so.13: cannot open shared object file: No such file or directory"


def _scratch(change: Callable[[List[Any]], object]) -> Apply:
    """Change what the file system test says; `change` gets its targets."""

    def apply(document: Dict[str, Any], machine: Machine) -> None:
        if not document["targets"]:
            raise DoesNotApply("it has no instance store")
        target(machine)
        change(document["targets"])

    return rewritten(f"{_OWN}/fs-io.json", apply, 1)


def _slow_copies(peers: bool, document: Dict[str, Any], machine: Machine) -> None:
    """One GPU's copies, from and to the host or its peers, at half their speed."""
    gpu = target(machine)
    tests = [t for t in document["nvbandwidth"]["testcases"] if t["name"].startswith("device_to_device") is peers]
    if not all("bandwidth_matrix" in test for test in tests):
        raise DoesNotApply("its GPUs cannot copy to each other")
    for test in tests:
        for row, cells in enumerate(test["bandwidth_matrix"]):
            for column, cell in enumerate(cells):
                if cell != "N/A" and gpu in ((row, column) if peers else (column,)):
                    cells[column] = f"{float(cell) * 0.5:.2f}"


def _copies(peers: bool) -> Apply:
    return rewritten("out/nvbandwidth.json", partial(_slow_copies, peers), 3)


_ONE_SILENT = """\
case "$*" in *'-d {domain} '*) echo 'fi_cq_readerr: Unreachable remote (4113)'; exit 1 ;; esac
node=${{0%/*/*}}; file=out/fi-pingpong.txt
[ -e "$node/$file" ] || file=healthy/$file
exec cat "$node/$file\""""


def _efa_silent(files: Mapping[str, Entry], machine: Machine) -> Change:
    domain = f"{last_efa(machine)}-rdm"
    return set_tool("fi_pingpong", script=_ONE_SILENT.format(domain=domain))(files, machine)


FAULTS: Tuple[Fault, ...] = (
    Fault("dcgm_failed", "DCGM's memory test fails on one GPU",
          "dcgm_diag", Remedy.REPLACE,
          # dcgmi ends with DCGM_ST_NVVS_ERROR (-30) as a byte when a test failed.
          together(rewritten("out/dcgm-diag.json", _memory_failed, "\t"), set_tool("dcgmi", rc=226)), level="standard"),
    Fault("nccl_slow", "all_reduce reaches a third of the type's bandwidth",
          "nccl_busbw", Remedy.INVESTIGATE, partial(_nccl_log, 0.33, 0), level="standard"),
    Fault("nccl_wrong", "all_reduce gives wrong values",
          "nccl_correctness", Remedy.REPLACE, partial(_nccl_log, 1.0, 3), level="standard"),
    Fault("disk_error", "reading one instance store disk ends with an I/O error",
          "fio_disk", Remedy.INVESTIGATE, edited("out/fio.json", '"error": 0', '"error": 5'), level="deep"),
    Fault("host_copy_slow", "copies between the host and one GPU run at half speed",
          "gpu_bandwidth", Remedy.REBOOT, _copies(peers=False), level="standard"),
    Fault("peer_copy_slow", "copies between one GPU and the others run at half speed",
          "gpu_bandwidth", Remedy.REBOOT, _copies(peers=True), level="standard"),
    Fault("gpu_slow", "one GPU computes at two thirds of the others' speed",
          "gpu_load", Remedy.REPLACE, _loaded(tflops=440.0), level="standard"),
    Fault("gpu_overheats", "the hardware slows one GPU down under load",
          "gpu_load", Remedy.REPLACE, _load(_throttled), level="standard"),
    Fault("gpu_miscalculates", "one GPU gives wrong numbers now and then, without any error",
          "gpu_compute", Remedy.REPLACE,
          _loaded(mismatches=2, first_mismatch={
              "product": 4711, "element": 24117248, "wanted": "53.125", "off_by": "0.015625",
              "sum_of_differences": "0.015625"}), level="standard"),
    Fault("gpu_wrong_always", "one GPU gives another result than the others, each time the same",
          "gpu_compute", Remedy.REPLACE,
          _loaded(digest="a7" * 32, digest_at_end="a7" * 32), level="standard"),
    Fault("cuda_missing", "the CUDA libraries that the load test needs are not installed",
          "gpu_load", Remedy.FIX_CONFIG, _load(_not_run),
          status=Status.UNKNOWN, also=("gpu_compute",), level="standard"),
    Fault("efa_silent", "one EFA device is listed and its port is up, but no message gets through",
          "efa_loopback", Remedy.REBOOT, _efa_silent, level="standard"),
    Fault("scratch_corrupts", "the instance store gives back other bytes than were written",
          "fs_io", Remedy.REPLACE,
          _scratch(lambda targets: targets[0].update(
              verified=False, wrong="byte 524288: wrote 0x4f, read 0x0f")), level="standard"),
    Fault("scratch_full", "the instance store has no room for the write test",
          "fs_io", Remedy.FIX_CONFIG,
          _scratch(lambda targets: targets.__setitem__(0, {
              "mount": "/opt/dlami/nvme", "fstype": "ext4", "kind": "instance-store",
              "refused": "1822 of 28610298 MiB free: nearly full"})),
          status=Status.UNKNOWN, level="standard"),
)  # fmt: skip
