"""Role cuda_nccl."""

import pytest

from .looking import installed, say

PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf")
PACKAGES = ("libnccl*", "cuda-nvcc*", "cuda-cudart*")


def test_one_nccl_of_the_pinned_version(ask, wanted):
    """Which of two libraries a program loads depends on its search path; jobs then differ between nodes."""
    places = "/usr/lib /usr/lib64 /usr/local/lib"
    found = ask.found(f"find {places} -name 'libnccl.so.*.*.*'")
    seen = sorted({path.rsplit(".so.", 1)[1] for path in found})
    say.same("NCCL is there as", seen, [str(wanted["cuda_nccl_nccl_version"])], "remove the other library")


def test_libraries_are_their_packages(ask):
    """An emptied or exchanged library has the right name and the right version in it."""
    installed.unaltered(ask, PACKAGES, "their packages", "apt-get install --reinstall the package", "")


def test_compiler_has_the_pinned_release(ask, wanted):
    """Code built for another release asks for another driver."""
    said = ask(f"{wanted['cuda_nccl_cuda_home']}/bin/nvcc --version")
    release = f"release {wanted['cuda_nccl_cuda_version']},"
    say.holds(release in said, said.splitlines()[-1], release)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_of_nccl_tests(ask, wanted, program):
    """The preflight measures the fabric with them."""
    say.needs(wanted["cuda_nccl_tests"], "cuda_nccl_tests is false")
    path = f"{wanted['cuda_nccl_tests_prefix']}/{program}"
    file = ask.file(path)
    say.same(f"{path}: owner, and mode among 0133,", (file["uid"], oct(file["mode"] & 0o133)), (0, oct(0o111)))
    say.holds(file["size"], f"{path} is empty", "a program")


def test_nccl_tests_are_built_for_this_gpu(ask, wanted):
    """Programs for another architecture start with a slow translation, or not at all."""
    say.needs(wanted["cuda_nccl_tests"], "cuda_nccl_tests is false")
    build = ask.json(f"{wanted['cuda_nccl_tests_prefix']}/flightline-build.json")
    say.same("built for architecture", build["architecture"], str(wanted["cuda_nccl_architecture"]))
    say.same("built from commit", build["revision"], wanted["cuda_nccl_tests_commit"])
