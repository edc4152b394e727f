"""The GPU load program against SIMULATED libraries, compiled here from fake_cuda.c: no GPU, no NVIDIA software.

This proves the program's own way of working (processes, comparison, figures, what it says when something is not
there); that the calls do on a GPU what their documentation says is not shown here.
"""

import json
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from flightline_node.ask.active import clocks, gpu_load
from flightline_node.ask.active.gpu_load import LoadPlan, matrix, run
from tests.unit.made import program

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler: the simulated CUDA libraries cannot be made")
ORDER = 16
SMI = "00000000:10:00.0, 1755, 1980, 61, 690.12, 700.00, 0x0000000000000004"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """A root with both libraries; one file is both, as the program opens them one after the other."""
    root = tmp_path_factory.mktemp("cuda")
    folder = root / "usr" / "local" / "cuda-13.0" / "lib64"
    folder.mkdir(parents=True)
    source = Path(__file__).parent / "fake_cuda.c"
    command = [COMPILER, "-O2", "-w", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    shutil.copy(folder / "libcuda.so.1", folder / "libcublas.so.13")
    return root


@pytest.fixture
def load(libraries, tmp_path, monkeypatch):
    """Run the program on simulated GPUs, in this process: it starts its own for each GPU."""
    smi = program(tmp_path / "nvidia-smi", f"while :; do echo '{SMI}'; sleep 0.1; done")
    # libcublas shares the state of libcuda when both come from one file.
    cublas = libraries / "usr/local/cuda-13.0/lib64/libcublas.so.13"
    cublas.unlink(missing_ok=True)
    cublas.symlink_to("libcuda.so.1")

    def start(seconds=0.3, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        return run(LoadPlan(seconds, ORDER, str(libraries), str(smi)))

    return start


@needs_compiler
def test_healthy_gpus_agree(load):
    answer = load(FAKE_GPUS=3)
    assert [gpu["index"] for gpu in answer["gpus"]] == [0, 1, 2]
    assert [gpu["pci"] for gpu in answer["gpus"]] == ["0000:10:00.0", "0000:11:00.0", "0000:12:00.0"]
    assert {gpu["mismatches"] for gpu in answer["gpus"]} == {0}
    assert len({gpu["digest"] for gpu in answer["gpus"]} | {gpu["digest_at_end"] for gpu in answer["gpus"]}) == 1
    assert all(gpu["products"] >= gpu_load.BATCH and gpu["tflops"] is not None for gpu in answer["gpus"])
    assert {gpu["sm_count"] for gpu in answer["gpus"]} == {132}


@needs_compiler
def test_one_flipped_bit_is_seen_and_where(load):
    answer = load(FAKE_GPUS=2, FAKE_WRONG=1)
    good, bad = answer["gpus"]
    assert good["mismatches"] == 0
    assert bad["mismatches"] > 0
    assert bad["first_mismatch"]["element"] == 5
    assert 0 < abs(float(bad["first_mismatch"]["off_by"])) < 1e-4
    assert bad["digest"] == good["digest"]


@needs_compiler
def test_a_gpu_that_is_always_wrong_agrees_with_itself_but_not_with_the_others(load):
    answer = load(FAKE_GPUS=3, FAKE_WRONG_FIRST=2)
    digests = [gpu["digest"] for gpu in answer["gpus"]]
    assert digests[0] == digests[1] != digests[2]
    assert answer["gpus"][2]["mismatches"] == 0


@needs_compiler
def test_a_slow_gpu_has_the_smallest_figure(load):
    fast, slow = load(seconds=0.6, FAKE_GPUS=2, FAKE_SLOW=1)["gpus"]
    assert slow["busy_s"] / slow["products"] > 1.5 * fast["busy_s"] / fast["products"]


@needs_compiler
def test_a_gpu_that_hangs_costs_only_its_own_answer(load, monkeypatch):
    monkeypatch.setattr(gpu_load, "END_S", 4.0)
    good, hung = load(FAKE_GPUS=2, FAKE_HANG=1)["gpus"]
    assert "hangs" in hung["error"]
    assert "tflops" not in hung
    assert good["mismatches"] == 0
    assert "error" not in good


@needs_compiler
def test_a_gpu_whose_memory_fails_says_so(load):
    good, bad = load(FAKE_GPUS=2, FAKE_ERROR=1)["gpus"]
    assert bad["error"] == "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"
    assert good["products"] > 0


@needs_compiler
def test_cuda_without_a_gpu(load):
    assert load(FAKE_GPUS=0) == {"not_run": "CUDA sees no GPU"}
    assert load(FAKE_INIT=100) == {"not_run": "cuInit: CUDA_ERROR_NO_DEVICE (100)"}


@needs_compiler
def test_no_libcublas_is_said(libraries):
    cublas = libraries / "usr/local/cuda-13.0/lib64/libcublas.so.13"
    cublas.unlink(missing_ok=True)
    assert run(LoadPlan(0.1, ORDER, str(libraries))) == {"not_run": "libcublas.so.13: not found"}


@needs_compiler
def test_without_nvidia_smi_the_load_still_counts(libraries, load):
    answer = run(LoadPlan(0.1, ORDER, str(libraries), str(libraries / "no-such-tool")))
    assert answer["gpus"][0]["products"] > 0
    assert answer["samples"] == {}
    assert "No such file" in answer["sampling_error"]


def test_no_libcuda_is_said(tmp_path):
    assert run(LoadPlan(0.1, ORDER, str(tmp_path))) == {"not_run": "libcuda.so.1: not found"}


def test_a_simulated_node_answers_from_its_file(tmp_path):
    (tmp_path / "run/flightline").mkdir(parents=True)
    (tmp_path / "run/flightline/gpu-load.json").write_text('{"stored": true}')
    assert json.loads(gpu_load.short(str(tmp_path))) == {"stored": True}
    assert json.loads(gpu_load.sustained(str(tmp_path))) == {"stored": True}


def test_the_matrices_are_the_same_everywhere_and_tame():
    data = matrix(64, "a")
    values = struct.unpack(f"<{64 * 64}e", data)
    assert data == matrix(64, "a") != matrix(64, "b")
    assert all(1 / 8 <= abs(value) < 2 for value in values)
    assert min(values) < 0 < max(values)


def test_samples():
    lines = [SMI, SMI.replace("1755", "1200").replace("004", "008"), SMI.replace("004", "001"), "[Unknown Error]"]
    lines.append("00000000:11:00.0, [N/A], 1980, 40, [N/A], [N/A], 0x0000000000000000")
    found = {pci: clocks.shorten(entry) for pci, entry in clocks.read("\n".join(lines)).items()}
    first = found["00000000:10:00.0"]
    assert first["throttle"] == {"0x4": 1, "0x8": 1}
    assert (first["samples"], first["sm_mhz_min"], first["temperature_c_max"]) == (2, 1200, 61)
    assert found["00000000:11:00.0"] == {
        "samples": 1, "throttle": {"0x0": 1}, "max_sm_mhz": 1980, "temperature_c_max": 40,
    }  # fmt: skip


def test_the_sampler_keeps_what_nvidia_smi_prints_until_it_is_stopped(tmp_path):
    marker = tmp_path / "asked"
    smi = program(tmp_path / "nvidia-smi", f"echo '{SMI}'\necho \"$*\" > {marker}\nexec sleep 600")
    sampler, until = clocks.Sampler(str(smi)), time.monotonic() + 60
    while not (marker.exists() and marker.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    found = sampler.end()["samples"]["00000000:10:00.0"]
    assert (found["samples"], found["power_w_max"], found["throttle"]) == (1, 690.12, {"0x4": 1})
    assert marker.read_text().split()[1:] == ["--format=csv,noheader,nounits", "--loop=1"]


@needs_compiler
def test_no_process_is_left(load, libraries):
    load(FAKE_GPUS=2)
    mine = [line for line in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split() if line]
    assert [pid for pid in mine if "nvidia-smi" in Path(f"/proc/{pid}/cmdline").read_text()] == []
