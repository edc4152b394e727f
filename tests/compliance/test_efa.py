"""Role efa."""

import pytest

from .looking import decided, installed, say

ELF = "7f454c46"
PLUGIN = "libnccl-net*.so*"
PACKAGES = ("libnccl-ofi*", "libfabric*aws*", "efa", "efa-*", "rdma-core", "libibverbs*", "openmpi*-aws")
SETTINGS = ("/etc/nccl.conf", "/root/.nccl.conf")


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Without the module at boot a job that starts early sees no EFA device."""
    as_the_role_writes_it()


def test_bundle_is_the_one_that_was_decided(ask, wanted, part_of):
    """Driver, libfabric and plugin are one set; another installer is another set."""
    part = part_of("efa")
    first = (ask.lines("cat /opt/amazon/efa_installed_packages") or [""])[0]
    version = first.rpartition(":")[2].strip()
    say.same("the EFA installer was", version, part["installer"])
    decided.serves(part, version, wanted["efa_instance_type"], "efa_installer")
    say.unchanged(ask.files(*part["files"]), part["files"], "reinstall libfabric and libnccl-ofi, or replace the node")


def test_libfabric_is_there(ask, wanted):
    """NCCL falls back to TCP without it, at a tenth of the speed and without an error."""
    say.needs(not wanted["efa_minimal"], "efa_minimal: containers bring libfabric")
    mode = ask.file("/opt/amazon/efa/bin/fi_info")["mode"]
    say.holds(mode & 0o111, f"fi_info has mode {oct(mode)}", "a program")


def test_plugin_is_a_library_of_its_package(ask, wanted):
    """NCCL finds EFA through this plugin only; one that cannot be loaded is passed over without an error."""
    say.needs(not wanted["efa_minimal"], "efa_minimal: containers bring the plugin")
    paths = ask.found("find /opt/amazon/ofi-nccl/ /opt/aws-ofi-nccl/ -name %s", PLUGIN)
    say.holds(paths, "no aws-ofi-nccl plugin below /opt/amazon/ofi-nccl", PLUGIN)
    files = ask.files(*paths)
    say.none(
        "not a shared library",
        [path for path in paths if path not in files or files[path]["head"] != ELF],
        "ELF files",
        "install libnccl-ofi of the EFA installer that is recorded, or replace the node",
    )
    say.none("of no package", ask.unowned(files[path]["real"] for path in paths), "the package libnccl-ofi")


def test_bundle_is_its_packages(ask):
    """What the installer brought and what lies there now are two things."""
    installed.unaltered(ask, PACKAGES, "the installer's packages", "run the EFA installer again", "")


def test_modules_can_be_loaded(ask):
    """A line of modprobe.d can replace the EFA driver by /bin/false."""
    rows = [line.split(None, 2) for line in ask.lines("modprobe --showconfig 2>/dev/null")]
    rows = [
        row
        for row in rows
        if len(row) > 1 and row[1].replace("-", "_") in ("efa", "ib_uverbs", "efa_nv_peermem", "gdrdrv")
    ]
    bad = [" ".join(row) for row in rows if row[0] == "blacklist" or (row[0] == "install" and "modprobe" not in row[2])]
    say.none(
        "modprobe has", bad, "nothing that keeps EFA out", "grep -rnE 'efa|ib_uverbs' /etc/modprobe.d; remove the line"
    )


@pytest.mark.over("efa_modules")
def test_module_is_loaded_at_boot(ask, item, part):
    """EFA devices appear with their module; a job that starts earlier sees none."""
    part("efa_modules")
    rows = [row.strip() for row in ask.lines("systemd-analyze cat-config modules-load.d")]
    say.holds(item in rows, f"systemd loads no {item} at boot", item)


def test_nccl_has_no_settings_of_strangers(ask, wanted):
    """NCCL reads these files in every job: NCCL_NET_PLUGIN=none there is TCP on this node, and a slow ring for all."""
    homes = [row.split(":")[5] for row in ask.lines("getent passwd") if row.split(":")[6].endswith("sh")]
    paths = [*SETTINGS, *(f"{home}/.nccl.conf" for home in homes if home != "/root")]
    allowed = {str(key): str(value) for key, value in wanted["compliance_environment"].items()}
    found = []
    for path in paths:
        for row in ask.found("cat %s", path):
            key, mark, value = (word.strip() for word in row.partition("="))
            if mark and not row.lstrip().startswith("#") and allowed.get(key) != value:
                found.append(f"{key}={value} in {path}")
    say.none(
        "NCCL is told",
        found,
        "only what compliance_environment names",
        "grep -rnE '^(NCCL|FI|OFI)_' /etc/nccl.conf /root/.nccl.conf /home/*/.nccl.conf; remove the line",
    )


def test_the_archive_belongs_to_root(ask):
    """Between download and installation nobody may exchange it."""
    installed.roots_alone(ask, "/var/cache/flightline")
