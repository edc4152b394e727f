"""Role container_toolkit."""

import re

import pytest

from .looking import installed, say, units


@pytest.mark.over("container_toolkit_packages")
def test_package_has_the_pinned_version(ask, item, part, wanted):
    """The toolkit's packages work only with each other's version."""
    version = ask.version(part("container_toolkit_packages"))
    say.holds(version, f"no package {item}", "installed")
    say.same(f"{item} has version", version, str(wanted["container_toolkit_version"]))


def test_toolkit_is_its_packages(ask, wanted):
    """The runtime runs as root between the engine and every container."""
    installed.unaltered(ask, wanted["container_toolkit_packages"], "the toolkit's packages")


@pytest.mark.over("container_toolkit_engines")
def test_engine_knows_the_runtime(ask, item, part):
    """A container without this runtime starts and sees no GPU. The engine itself is asked: it may import other files."""
    part("container_toolkit_engines")
    if item == "containerd":
        said = ask("containerd config dump")
        names = re.findall(r"BinaryName = [\"'](.*)[\"']", said)
        say.holds("runtimes.nvidia" in said, "containerd has no runtime nvidia", "nvidia-container-runtime")
        saw = f"containerd starts {', '.join(filter(None, names)) or 'runc'}"
        say.holds("/usr/bin/nvidia-container-runtime" in names, saw, "/usr/bin/nvidia-container-runtime")
    else:
        there = ask.files("/etc/docker/daemon.json")
        runtimes = ask.json("/etc/docker/daemon.json").get("runtimes", {}) if there else {}
        path = str(runtimes.get("nvidia", {}).get("path"))
        say.holds(
            path.endswith("nvidia-container-runtime"), f"docker's runtime nvidia is {path}", "nvidia-container-runtime"
        )


@pytest.mark.over("container_toolkit_engines")
def test_engine_runs(ask, strangers, item, part):
    """Jobs in containers cannot start without it."""
    part("container_toolkit_engines")
    units.runs(ask, strangers, f"{item}.service")
    units.fresh(
        ask, f"{item}.service", {"containerd": "/etc/containerd/config.toml", "docker": "/etc/docker/daemon.json"}[item]
    )
