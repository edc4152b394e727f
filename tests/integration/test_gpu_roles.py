"""The GPU roles on real hosts: what happens when something is wrong, and that a run after the fix converges.

Drivers, EFA, Lustre and the CloudWatch agent are stand-ins from the signed shelf; package manager, keys, signatures,
units and mounts are the real ones.
"""

from contextlib import contextmanager

import pytest

from . import shelf_gpu
from .mirror import Mirror

pytestmark = [pytest.mark.root, pytest.mark.slow]
OTHER_FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"
RECORD = "/opt/amazon/efa_installed_packages"
AGENT_CONFIG = "/opt/aws/amazon-cloudwatch-agent/etc/flightline.json"


def messages(played):
    """The output with line breaks and spaces made one."""
    return " ".join(played.output.split())


def converges(played, host):
    assert played.status == 0, played.output[-3000:]
    return played.recap[host]


def refused(played, *words):
    assert played.status != 0, played.output[-3000:]
    text = messages(played)
    for word in ("seen:", "wanted:", "do:", *words):
        assert word in text or word.replace("seen:", "saw:") in text, f"{word!r} not in {text[-3000:]}"
    assert "Traceback" not in text


@contextmanager
def unchanged(bed, host, path=RECORD):
    """What is installed, or the file, is as it was."""
    before = bed.ssh(host, f"cat {path} 2>/dev/null || echo none")
    yield
    assert bed.ssh(host, f"cat {path} 2>/dev/null || echo none") == before


def absent(bed, host, path):
    return "absent" in bed.ssh(host, f"test -e {path} || echo absent")


def repository(bed, name, **changes):
    """The variables of a repository of the shelf's."""
    given = {"name": name, "url": f"{bed.url}/apt", "suites": "bookworm", "components": ["main"]}
    given |= {"key_url": f"{bed.url}/key.asc", "key_fingerprint": bed.mirror.fingerprint, **changes}
    return {f"package_repository_{key}": value for key, value in given.items()}


def efa(version, digest, url):
    return {"efa_version": version, "efa_url": url, "efa_sha256": digest}


def test_a_repository_with_another_key_is_refused_and_the_rerun_converges(bed, host, role):
    wrong = role("package_repository", **repository(bed, "flightline-probe", key_fingerprint=OTHER_FINGERPRINT))
    refused(wrong, OTHER_FINGERPRINT, bed.mirror.fingerprint, "nothing was installed")
    assert absent(bed, host, "/etc/apt/sources.list.d/flightline-probe.sources")
    right = repository(bed, "flightline-probe")
    assert converges(role("package_repository", **right), host).changed > 0
    assert converges(role("package_repository", **right), host).changed == 0
    bed.ssh(host, "rm /etc/apt/sources.list.d/flightline-probe.sources")


def test_an_unreachable_repository_is_named_and_taken_out_again(bed, host, role):
    away = repository(bed, "flightline-away", url="http://127.0.0.1:9/apt")
    refused(role("package_repository", **away), "127.0.0.1:9", "taken out again")
    assert absent(bed, host, "/etc/apt/sources.list.d/flightline-away.sources")
    bed.ssh(host, "apt-get update -qq")


def test_an_efa_archive_with_another_checksum_installs_nothing(bed, host, role):
    with unchanged(bed, host):
        refused(role("efa", **efa("1.45.0", "0" * 64, f"{bed.url}/files/aws-efa-installer-{shelf_gpu.EFA}.tar.gz")))


def test_an_efa_archive_signed_by_a_stranger_installs_nothing(bed, host, role, tmp_path):
    stranger = Mirror(tmp_path / "stranger")  # a second key, as somebody would have who replaces a file on the way
    digest = stranger.add_tarball("aws-efa-installer-1.45.0.tar.gz", shelf_gpu.efa_members())
    for name in ("", ".sig"):
        source = stranger.directory / "files" / f"aws-efa-installer-1.45.0.tar.gz{name}"
        (bed.mirror.directory / "files" / source.name).write_bytes(source.read_bytes())
    stranger.close()
    with unchanged(bed, host):
        played = role("efa", **efa("1.45.0", digest, f"{bed.url}/files/aws-efa-installer-1.45.0.tar.gz"))
        refused(played, bed.mirror.fingerprint, "nothing was installed")


def test_versions_that_do_not_go_together_install_nothing(bed, host, role):
    digest = bed.mirror.add_tarball("aws-efa-installer-1.43.0.tar.gz", shelf_gpu.efa_members(driver="2.17.2"))
    bed.mirror.close()
    given = efa("1.43.0", digest, f"{bed.url}/files/aws-efa-installer-1.43.0.tar.gz")
    with unchanged(bed, host):
        played = role("efa", **given, efa_nccl_version="2.31.2", efa_nvidia_driver_version="580.95.05")
        refused(played, "EFA driver 2.17.2 with NVIDIA driver 580.95.05", "NCCL 2.31.2 with aws-ofi-nccl 1.17.1")


def test_the_right_bundle_converges_afterwards_and_stays(host, role):
    converges(role("efa"), host)
    assert converges(role("efa"), host).changed == 0


def test_a_half_installed_driver_is_named_and_the_rerun_converges(bed, host, role):
    converges(role("nvidia_driver"), host)
    bed.ssh(host, "cd /root && apt-get download -qq nvidia-persistenced && dpkg --unpack ./nvidia-persistenced_*.deb")
    image = {"nvidia_driver_source": "image"}
    refused(role("nvidia_driver", **image), "half-installed packages: nvidia-persistenced", "dpkg --configure -a")
    bed.ssh(host, "dpkg --configure -a")
    assert converges(role("nvidia_driver", **image), host).changed == 0


def test_an_interrupted_installation_of_its_own_is_finished(bed, host, role):
    bed.ssh(host, "cd /root && apt-get download -qq nvidia-persistenced && dpkg --unpack ./nvidia-persistenced_*.deb")
    assert converges(role("nvidia_driver"), host).changed > 0
    assert bed.ssh(host, "dpkg-query -W -f '${db:Status-Abbrev}' nvidia-persistenced").strip() == "ii"
    assert converges(role("nvidia_driver"), host).changed == 0


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        (
            "nvidia_driver",
            {"source": "image", "version": "595", "instance_type": "g7.2xlarge"},
            ("driver 580.95.05", "driver 595 or later"),
        ),
        ("nvidia_driver", {"version": "580.99.99"}, ("580.99.99", "apt-cache madison")),
        ("dcgm", {"supported": ["Ubuntu 24.04"]}, ("Debian 12", "one of Ubuntu 24.04")),
    ],
    ids=["an image's driver below the minimum of its type", "a version that nobody offers", "a wrong system"],
)
def test_what_does_not_fit_the_host_is_named(role, name, given, words):
    own = "_" if "supported" in given else ""
    refused(role(name, **{f"{own}{name}_{key}": value for key, value in given.items()}), *words)


def test_imex_starts_at_boot_with_the_racks_nodes(bed, host, role):
    """test_imex.py shows that the real daemon takes such a list; here the package is a stand-in."""
    rack = {"instance_type": "p6e-gb200.36xlarge"}
    nodes = "/etc/nvidia-imex/nodes_config.cfg"
    try:
        converges(role("nvidia_driver", **rack), host)
        assert bed.ssh(host, f"cat {nodes}").split() == [bed.machine(name).address for name in bed.hosts]
        assert bed.ssh(host, "systemctl is-enabled nvidia-imex").strip() == "enabled"
        bed.ssh(host, f"sed -i 1d {nodes}; systemctl disable --quiet nvidia-imex")
        assert converges(role("nvidia_driver", **rack), host).changed > 0
        assert bed.ssh(host, f"cat {nodes}").split() == [bed.machine(name).address for name in bed.hosts]
        assert bed.ssh(host, "systemctl is-enabled nvidia-imex").strip() == "enabled"
        assert converges(role("nvidia_driver", **rack), host).changed == 0
    finally:
        bed.ssh(host, "dpkg --purge nvidia-imex; rm -rf /etc/nvidia-imex", check=False)
    converges(role("nvidia_driver"), host)


def test_a_file_system_that_does_not_resolve_is_named_and_nothing_is_mounted(bed, host, role):
    mounts = [{"dns_name": "fs-0.fsx.invalid", "mount_name": "abc", "path": "/lost"}]
    played = role("lustre_client", lustre_client_mounts=mounts)
    refused(played, "fs-0.fsx.invalid does not resolve", "nothing was mounted")
    assert absent(bed, host, "/etc/systemd/system/lost.mount")


def test_a_file_system_is_mounted_with_its_options(bed, host, role):
    converges(role("lustre_client"), host)
    assert bed.ssh(host, "findmnt --noheadings --output SOURCE /fsx").strip() == "mirror@tcp:/fsx"
    assert converges(role("lustre_client"), host).changed == 0


def test_an_agent_configuration_that_the_schema_refuses_changes_nothing(bed, host, role):
    converges(role("cloudwatch_agent"), host)
    config = {"metrics": {"colour": "red"}}
    with unchanged(bed, host, AGENT_CONFIG):
        refused(role("cloudwatch_agent", cloudwatch_agent_config=config), "colour is not allowed")


def test_an_agent_configuration_that_the_agent_refuses_is_taken_back(bed, host, role):
    metrics = {"namespace": "refused-by-the-agent", "metrics_collected": {"mem": {"measurement": ["used_percent"]}}}
    with unchanged(bed, host, AGENT_CONFIG):
        played = role("cloudwatch_agent", cloudwatch_agent_config={"metrics": metrics})
        refused(played, "Configuration validation second phase failed")
    assert bed.ssh(host, "systemctl is-active amazon-cloudwatch-agent").strip() == "active"
