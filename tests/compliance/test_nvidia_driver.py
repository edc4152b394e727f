"""Role nvidia_driver."""

import re

import pytest

from .looking import decided, installed, say, units

MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem")
PACKAGES = ("nvidia-*", "libnvidia-*", "libcuda1", "cuda-drivers*")


def versions(ask):
    """Version of every NVIDIA driver library on the linker's paths."""
    found = ask.found("find /usr/lib /usr/lib64 -name 'libnvidia-ml.so.[0-9]*.*' -type f")
    return {line.rsplit(".so.", 1)[1] for line in found}


def kernel_rows(ask):
    """modprobe's own reading of all its directories."""
    return [
        line.split(None, 2) for line in ask.lines("modprobe --showconfig 2>/dev/null") if len(line.split(None, 2)) > 1
    ]


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """It decides which module takes the GPUs."""
    as_the_role_writes_it()


def test_driver_is_the_one_that_was_decided(ask, wanted, part_of):
    """Nodes of one job with different drivers fail in ways that look like hardware. What an image brings need not be the pin."""
    part = part_of("driver")
    found = ask.found("find /usr/lib /usr/lib64 -name 'libnvidia-ml.so.[0-9]*.*' -type f")
    say.holds(found, "no driver library", f"libnvidia-ml {part['version']}")
    others = [path for path in found if path.rpartition(".so.")[2] != part["version"]]
    do = "remove these files, or the package that dpkg -S or rpm -qf names; never that of the wanted version"
    say.none("driver libraries of another version", others, f"those of {part['version']} alone", do)
    decided.serves(part, part["version"], wanted["nvidia_driver_instance_type"], "driver")


def test_driver_is_its_packages(ask):
    """nvidia-smi and the libraries are what every check asks."""
    installed.unaltered(ask, PACKAGES, "the driver's packages", say.REINSTALL)


def test_driver_cannot_change_by_itself(ask):
    """apt keeps the driver where it is, also in an upgrade by hand. apt itself is asked: another pin may stand above the role's."""
    say.needs(ask.family() == "Debian", "apt only")
    names = ask(
        "dpkg-query -W -f '${db:Status-Abbrev}|${Package}\\n' 'nvidia-*' 'libnvidia-*' libcuda1 2>/dev/null | sed -n 's/^.i |//p'"
    ).split()
    moved = []
    for block in re.split(r"\n(?=\S)", ask(f"apt-cache policy {' '.join(names)}")):
        name, *rows = block.splitlines()
        seen = dict(row.strip().split(": ", 1) for row in rows if ": " in row)
        if seen.get("Candidate") != seen.get("Installed"):
            moved.append(f"{name} {seen.get('Installed')} to {seen.get('Candidate')}")
    do = "apt-cache policy NAME names the pin; remove the other preference"
    say.none("apt would change", moved, "nothing of the driver", do)


def test_nouveau_stays_out(ask):
    """nouveau would hold the GPUs before NVIDIA's driver is loaded."""
    say.holds(["blacklist", "nouveau"] in kernel_rows(ask), "modprobe may load nouveau by itself", "blacklist nouveau")
    say.holds(ask.answer("test -e /sys/module/nouveau").rc, "nouveau is loaded", "not loaded", "reboot")


def test_modules_can_be_loaded(ask):
    """A line of modprobe.d can replace the driver by /bin/false, or leave it out, and no file of the role shows it."""
    rows = [row for row in kernel_rows(ask) if row[1].replace("-", "_") in MODULES]
    bad = [
        " ".join(row)
        for row in rows
        if row[0] == "blacklist" or (row[0] in ("install", "remove") and "modprobe" not in row[2])
    ]
    do = "grep -rn nvidia /etc/modprobe.d /run/modprobe.d; remove the line"
    say.none("modprobe has", bad, "nothing that keeps the driver out", do)


def test_module_options_are_the_sites(ask, wanted):
    """Of two options lines of a module both count: a stranger's turns peer memory off, or persistence, or ECC."""
    given = {
        (module, f"{key}={value}")
        for module, options in wanted["nvidia_driver_module_options"].items()
        for key, value in options.items()
    }
    rows = [row for row in kernel_rows(ask) if row[0] == "options" and row[1].replace("-", "_") in MODULES]
    other = [
        f"{row[1]} {word}"
        for row in rows
        for word in row[2].split()
        if (row[1], word) not in given and not word.startswith("modeset=")
    ]
    do = "grep -rn 'options nvidia' /etc/modprobe.d; remove the line"
    say.none("options of the driver", other, "those of nvidia_driver_module_options", do)


def test_fabric_manager_has_the_drivers_version(ask, wanted):
    """Fabric Manager refuses any other driver, and CUDA then fails with error 802."""
    say.needs(wanted["nvidia_driver_fabric_manager"], "the instance type has no NVSwitch")
    said = ask("nv-fabricmanager --version").split(":")[-1].strip()
    say.holds(said in versions(ask), f"Fabric Manager {said}", f"one of {', '.join(sorted(versions(ask)))}")


@pytest.mark.parametrize("unit", ["nvidia-fabricmanager", "nvidia-persistenced", "nvidia-imex"])
def test_service_starts_at_boot(ask, strangers, wanted, unit):
    """Without them the GPUs cannot be used together, or are initialised anew by each job."""
    variable = {
        "nvidia-fabricmanager": "nvidia_driver_fabric_manager",
        "nvidia-persistenced": "nvidia_driver_persistenced",
        "nvidia-imex": "nvidia_driver_imex_service",
    }[unit]
    say.needs(wanted[variable], f"{variable} is false")
    units.enabled(units.effective(ask, strangers, f"{unit}.service"), unit)


def test_the_driver_is_loaded(ask, wanted):
    """Installed and running are two things until the node has booted."""
    say.needs(wanted["nvidia_driver_state"] == "loaded", "the site loads no driver here (nvidia_driver_state)")
    loaded = ask("cat /sys/module/nvidia/version 2>/dev/null || echo none").strip()
    do = "modprobe nvidia, or reboot"
    say.holds(loaded in versions(ask), f"driver {loaded} is loaded", f"{', '.join(sorted(versions(ask)))}", do)


def test_the_repository_is_signed_by_the_pinned_key(ask):
    """A repository without a key of its own is trusted by any key on the system."""
    path = "/etc/apt/sources.list.d/flightline-nvidia.sources"
    say.needs(ask.files(path), "the driver does not come from the vendor's repository")
    rows = ask.lines("cat %s", path)
    keys = [row.split(":", 1)[1].strip() for row in rows if row.startswith("Signed-By:")]
    say.holds(
        keys and all(key.startswith("/etc/apt/keyrings/flightline-") for key in keys),
        f"{path} is signed by {keys or 'any key'}",
        "the role's key alone",
    )
    for key in keys:
        pinned = key.rpartition("flightline-")[2].partition(".")[0]
        shown = ask("gpg --batch --show-keys --with-colons %s 2>/dev/null || true", key)
        prints = re.findall(r"^fpr:+([0-9A-F]{40})", shown, re.MULTILINE)
        saw = f"{key} holds {', '.join(prints) or 'no key'}"
        say.holds(prints[:1] == [pinned] and shown.count("\npub:") + shown.startswith("pub:") == 1, saw, pinned)


def test_the_repository_is_the_vendors(ask, wanted):
    """Another address with the same name offers other packages."""
    path = "/etc/apt/sources.list.d/flightline-nvidia.sources"
    if not ask.files(path) or not wanted["nvidia_repository_url"]:
        pytest.skip("no repository of the role, or the vendor's own address")
    uris = [row.split(":", 1)[1].strip() for row in ask.lines("cat %s", path) if row.startswith("URIs:")]
    say.same(f"{path} reads", uris, [str(wanted["nvidia_repository_url"])])
