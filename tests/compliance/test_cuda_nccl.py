"""Role cuda_nccl."""

from __future__ import annotations

import json

import pytest

PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf")


def test_one_nccl_of_the_pinned_version(host, wanted):
    """Which of two libraries a program loads depends on its search path; jobs then differ between nodes."""
    places = "/usr/lib /usr/lib64 /usr/local/lib"
    found = host.check_output(f"find {places} -name 'libnccl.so.*.*.*' 2>/dev/null || true").split()
    assert {path.rsplit(".so.", 1)[1] for path in found} == {str(wanted["cuda_nccl_nccl_version"])}


def test_compiler_has_the_pinned_release(host, wanted):
    """Code built for another release asks for another driver."""
    assert f"release {wanted['cuda_nccl_cuda_version']}," in host.check_output(
        f"{wanted['cuda_nccl_cuda_home']}/bin/nvcc --version"
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_of_nccl_tests(host, wanted, program):
    """The preflight measures the fabric with them."""
    if not wanted["cuda_nccl_tests"]:
        pytest.skip("cuda_nccl_tests is false")
    file = host.file(f"{wanted['cuda_nccl_tests_prefix']}/{program}")
    assert file.exists
    assert (file.user, file.mode & 0o133) == ("root", 0o111)


def test_nccl_tests_are_built_for_this_gpu(host, wanted):
    """Programs for another architecture start with a slow translation, or not at all."""
    if not wanted["cuda_nccl_tests"]:
        pytest.skip("cuda_nccl_tests is false")
    build = json.loads(host.file(f"{wanted['cuda_nccl_tests_prefix']}/flightline-build.json").content_string)
    assert build["architecture"] == str(wanted["cuda_nccl_architecture"])
    assert build["source_sha256"] == wanted["cuda_nccl_tests_sha256"]
