"""CUDA and NVML errors by their words, and what a program can cause itself left out."""

import pytest

from flightline_node.know.catalog import cuda
from flightline_node.model import Remedy


@pytest.mark.parametrize(
    ("line", "remedies"),
    [
        ("Cuda failure 214 'uncorrectable ECC error encountered'", [Remedy.RESET_GPU]),
        ("[CUDA_ERROR_NVLINK_UNCORRECTABLE] uncorrectable NVLink error detected", [Remedy.RESET_GPU]),
        ("CUDA_ERROR_SYSTEM_NOT_READY in expression cuInit(0)", [Remedy.FIX_CONFIG]),
        (
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1 : CUDA error 401 "
            "'the operation cannot be performed in the present state'.",
            [Remedy.REBOOT],
        ),
        ("Cuda failure 401 'the operation cannot be performed in the present state'", [Remedy.REBOOT]),
        ("transport/nvls.cc: Cuda failure 1 'invalid argument'", [Remedy.REBOOT]),
        ("transport/nvls.cc: Cuda failure 999 'unknown error'", [Remedy.REBOOT]),
        ("Cuda failure 1 'invalid argument'", []),
        ("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1 : CUDA error 2 'out of memory'.", []),
        ("nvmlInit_v2() failed: Driver/library version mismatch", [Remedy.REBOOT]),
        ("CUDA driver version is insufficient for CUDA runtime version", [Remedy.UPDATE_SOFTWARE]),
        ("an illegal memory access was encountered", []),
        ("unspecified launch failure", []),
        ("out of memory", []),
    ],
)
def test_faults(line, remedies):
    assert [fault.remedy for fault, _ in cuda.faults_in(["fine", line])] == remedies
    assert all(lines == [line] for _, lines in cuda.faults_in(["fine", line]))


def test_the_words_are_in_lower_case():
    assert all(words == words.lower() for fault in cuda.FAULTS for words in fault.phrases)
