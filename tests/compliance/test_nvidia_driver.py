"""Role nvidia_driver."""

from __future__ import annotations

import pytest


def versions(host):
    """Version of every NVIDIA driver library on the linker's paths."""
    found = host.check_output("find /usr/lib /usr/lib64 -name 'libnvidia-ml.so.[0-9]*.*' -type f 2>/dev/null || true")
    return {line.rsplit(".so.", 1)[1] for line in found.splitlines()}


def test_driver_has_the_pinned_version(host, wanted):
    """Nodes of one job with different drivers fail in ways that look like hardware."""
    pin = str(wanted["nvidia_driver_version"])
    found = versions(host)
    assert found
    assert {version for version in found if not (version + ".").startswith(pin + ".")} == set()


def test_no_driver_package_is_half_installed(host):
    """A half-installed driver works until the next boot."""
    if not host.file("/etc/debian_version").exists:
        pytest.skip("dpkg only")
    rows = host.check_output(
        "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' '*nvidia*' 2>/dev/null || true"
    ).splitlines()
    assert [row for row in rows if row[:2] not in ("ii", "hi", "un", "rc")] == []


def test_driver_cannot_change_by_itself(host, wanted):
    """apt keeps the driver where it is, also in an upgrade by hand."""
    if not host.file("/etc/debian_version").exists:
        pytest.skip("apt only")
    file = host.file("/etc/apt/preferences.d/flightline-nvidia-driver")
    assert f"Pin: version {wanted['nvidia_driver_version']}*" in file.content_string
    assert "Pin-Priority: 1001" in file.content_string


def test_nouveau_stays_out(host):
    """nouveau would hold the GPUs before NVIDIA's driver is loaded."""
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/flightline-nvidia.conf").content_string
    assert not host.file("/sys/module/nouveau").exists


def test_fabric_manager_has_the_drivers_version(host, wanted):
    """Fabric Manager refuses any other driver, and CUDA then fails with error 802."""
    if not wanted["nvidia_driver_fabric_manager"]:
        pytest.skip("the instance type has no NVSwitch")
    said = host.check_output("nv-fabricmanager --version")
    assert said.split(":")[-1].strip() in versions(host)


@pytest.mark.parametrize("unit", ["nvidia-fabricmanager", "nvidia-persistenced"])
def test_service_starts_at_boot(host, wanted, unit):
    """Without them the GPUs cannot be used together, or are initialised anew by each job."""
    variable = {
        "nvidia-fabricmanager": "nvidia_driver_fabric_manager",
        "nvidia-persistenced": "nvidia_driver_persistenced",
    }[unit]
    if not wanted[variable]:
        pytest.skip(f"{variable} is false")
    assert host.service(unit).is_enabled


def test_the_driver_is_loaded(host, wanted):
    """Installed and running are two things until the node has booted."""
    if wanted["nvidia_driver_state"] != "loaded":
        pytest.skip("the site loads no driver here (nvidia_driver_state)")
    assert host.file("/sys/module/nvidia/version").content_string.strip() in versions(host)


def test_the_repository_is_signed_by_the_pinned_key(host):
    """A repository without a key of its own is trusted by any key on the system."""
    if not host.file("/etc/apt/sources.list.d/flightline-nvidia.sources").exists:
        pytest.skip("the driver does not come from the vendor's repository")
    text = host.file("/etc/apt/sources.list.d/flightline-nvidia.sources").content_string
    assert "Signed-By: /etc/apt/keyrings/flightline-" in text
    assert "Trusted:" not in text
