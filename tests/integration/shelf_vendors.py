"""The stand-ins of shelf_gpu at the vendors' own addresses, and the variables that then still differ from a stranger's.

Nothing is pointed elsewhere: addresses, suites, package names and versions are the roles' defaults.
"""

import os
import tempfile
from pathlib import Path

from tests.compliance.looking import waivers

from . import shelf, shelf_gpu
from .mirror import Deb, Mirror, pack

AUTHORITY = "/usr/local/share/ca-certificates/flightline-bed.crt"
ANSWERS_FOR_AWS = ("test_aws_has_the_addresses_that_dns_says", "*", "the bed answers for AWS", "the bed", "2099-01-01")
CUDA_REPOSITORIES = ("debian12", "ubuntu2204", "ubuntu2404")


def exceptions(mirror: Mirror, commit: str) -> dict[str, object]:
    """All that the inventory says beside the instance type, each for a reason that no role could mend."""
    key = mirror.fingerprint
    return {
        # The vendors' private keys are not ours: what the bed signs is known by the bed's key.
        "nvidia_repository_key_fingerprint": key,
        "container_toolkit_key_fingerprint": key,
        "efa_key_fingerprint": key,
        "cloudwatch_agent_key_fingerprint": key,
        "cuda_nccl_tests_commit": commit,
        # By them a machine finds the vendors at the bed's address.
        "compliance_known_files": [*shelf.OWN["compliance_known_files"], AUTHORITY],
        "compliance_waivers": [dict(zip(waivers.FIELDS, ANSWERS_FOR_AWS, strict=True))],
        # A container has no GPU to load a module for.
        "nvidia_driver_state": "packages",
    }


def kernel_headers() -> Deb:
    """The outer machine's kernel is no package of the machines' distribution."""
    return Deb(f"linux-headers-{os.uname().release}", "1-1")


def stock(mirror: Mirror) -> dict[str, object]:
    """Put everything at the vendors' addresses; returns the exceptions."""
    place = mirror.directory / "vendors"
    nvidia = [*shelf_gpu.driver_debs(), *shelf_gpu.cuda_debs(), shelf_gpu.dcgm_deb(), kernel_headers()]
    nvidia += [*shelf_gpu.debs_of_other_types(), *shelf_gpu.nccl_debs(shelf_gpu.NEWER_NCCL, shelf_gpu.CUDA)]
    for name in CUDA_REPOSITORIES:
        repository = place / "developer.download.nvidia.com/compute/cuda/repos" / name / "x86_64"
        mirror.flat(repository, nvidia)
        _key(mirror, repository / "3bf863cc.pub")
    mirror.flat(place / "nvidia.github.io/libnvidia-container/stable/deb/amd64", shelf_gpu.toolkit_debs())
    _key(mirror, place / "nvidia.github.io/libnvidia-container/gpgkey")
    efa = place / "efa-installer.amazonaws.com"
    mirror.sign(efa / f"aws-efa-installer-{shelf_gpu.EFA}.tar.gz", shelf_gpu.efa_archive())
    _key(mirror, efa / "aws-efa-installer.key")
    agent = place / "amazoncloudwatch-agent.s3.amazonaws.com"
    with tempfile.TemporaryDirectory() as scratch:
        data = pack(shelf_gpu.agent_deb(), Path(scratch)).read_bytes()
    for system in ("debian", "ubuntu"):
        mirror.sign(agent / system / "amd64/latest/amazon-cloudwatch-agent.deb", data)
    _key(mirror, agent / "assets/amazon-cloudwatch-agent.gpg")
    commit = mirror.add_git("nccl-tests.git", shelf_gpu.tests_members(), place / "github.com/NVIDIA")
    mirror.close()
    return exceptions(mirror, commit)


def _key(mirror: Mirror, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((mirror.directory / "key.asc").read_bytes())
