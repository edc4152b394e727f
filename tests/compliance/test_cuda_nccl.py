"""Role cuda_nccl."""

import re

import pytest

from flightline_host.version import numbers

from .looking import decided, installed, say

PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf")
PACKAGES = ("libnccl*", "cuda-nvcc*", "cuda-cudart*")


def test_nccl_is_the_one_that_was_decided(ask, wanted, part_of):
    """Which of two libraries a program loads depends on its search path; jobs then differ between nodes."""
    part = part_of("nccl")
    places = "/usr/lib /usr/lib64 /usr/local/lib /usr/local/cuda*/lib*"
    found = ask.found(f"find {places} -name 'libnccl.so.*.*.*'")
    others = [path for path in found if path.rpartition(".so.")[2] not in part["versions"]]
    say.holds(found, "no libnccl", ", ".join(part["versions"]))
    say.none("libnccl of another version", others, f"NCCL {', '.join(part['versions'])} alone", "remove these files")
    say.unchanged(ask.files(*part["files"]), part["files"], "reinstall libnccl2, or replace the node")
    decided.serves(part, max(part["versions"], key=numbers), wanted["cuda_nccl_instance_type"], "nccl")


def test_libraries_are_their_packages(ask):
    """An emptied or exchanged library has the right name and the right version in it."""
    installed.unaltered(ask, PACKAGES, "their packages", say.REINSTALL, "")


def test_compiler_has_the_release_that_was_decided(ask, wanted, part_of):
    """Code built for another release asks for another driver."""
    part = part_of("nccl")
    said = ask(f"{wanted['cuda_nccl_cuda_home']}/bin/nvcc --version")
    if part["adopted"]:
        seen = (re.findall(r"release ([\d.]+),", said) or ["none"])[0]
        decided.serves(part, seen, wanted["cuda_nccl_instance_type"], "cuda")
        return
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
