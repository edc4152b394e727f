"""The image that all machines share: Debian bookworm, or an Ubuntu, from debootstrap, made once per recipe."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.beds import ran

from . import layout, mounts, ubuntu

DEBIAN = "bookworm"
SUITE = os.environ.get("FLIGHTLINE_SUITE", DEBIAN)
PACKAGES = "systemd,systemd-sysv,dbus,openssh-server,python3,python3-apt,sudo,iproute2,procps,ca-certificates,kmod,cron,logrotate,nftables"
COMPONENTS = ubuntu.COMPONENTS if SUITE in ubuntu.SUITES else "main contrib non-free non-free-firmware"
KEYRING = ubuntu.KEYRING if SUITE in ubuntu.SUITES else "/usr/share/keyrings/debian-archive-keyring.gpg"
KEPT_SETTINGS = ("Acquire::Check-Valid-Until", "Acquire::Check-Date")

SIMULATED_PARAMETERS = (
    *("net/core/rmem_max", "net/core/wmem_max"),
    *("vm/max_map_count", "vm/nr_hugepages", "vm/swappiness", "vm/zone_reclaim_mode"),
)
"""Each file by itself: with a whole directory in its place `sysctl -a` never ends."""
SIMULATED_KERNEL = """\
# Simulated: these parameters belong to the outer machine's kernel, so each machine reads and writes files of its own.
[Unit]
DefaultDependencies=no
Before=systemd-sysctl.service sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
{mounts}
[Install]
WantedBy=sysinit.target
""".format(
    mounts="\n".join(
        f"ExecStart=/bin/mount --bind /var/lib/bed/sys/{name} /proc/sys/{name}" for name in SIMULATED_PARAMETERS
    )
)
CHRONY = """\
# The clock belongs to the outer machine: -x reads time sources and leaves the clock alone.
[Unit]
ConditionCapability=
[Service]
ExecStart=
ExecStart=!/usr/sbin/chronyd -F 1 -x
"""
FILES: Mapping[str, str] = {
    "etc/systemd/system/bed-kernel.service": SIMULATED_KERNEL,
    "etc/systemd/system/chrony.service.d/bed.conf": CHRONY,
    "etc/dpkg/dpkg.cfg.d/bed": "path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\nforce-unsafe-io\n",
    "etc/sudoers.d/admin": f"{layout.USER} ALL=(ALL) NOPASSWD: ALL\n",
    # udev does not run in a container; these are the names it gives to an instance-store disk of EC2.
    "etc/tmpfiles.d/bed.conf": "d /dev/disk/by-id 0755\n"
    "L /dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0001 - - - - ../../nvme1n1\n",
}
SETUP = f"""\
useradd --create-home --shell /bin/bash {layout.USER}
systemctl enable systemd-networkd ssh bed-kernel
systemctl disable systemd-networkd-wait-online
systemctl mask console-getty.service apt-daily.timer apt-daily-upgrade.timer
apt-get update -qq -o APT::Update::Error-Mode=any
apt-get clean
rm -f /etc/ssh/ssh_host_* /etc/machine-id /etc/resolv.conf
"""


class Source(NamedTuple):
    """One suite of Debian as the outer machine reads it."""

    uri: str
    suite: str


def read_sources(listing: str) -> list[Source]:
    """The suites of Debian bookworm in `apt-get indextargets` output."""
    wanted = {DEBIAN, f"{DEBIAN}-updates", f"{DEBIAN}-security"}
    rows = (line.split("|") for line in listing.splitlines())
    return sorted(
        {Source(row[0], row[1]) for row in rows if len(row) == 3 and row[1] in wanted and row[2] == "Packages"}
    )


def outer_sources() -> list[Source]:
    """Where the outer machine gets Debian bookworm from (empty where it is another system), or Ubuntu's archive."""
    if SUITE in ubuntu.SUITES:
        return [Source(ubuntu.ARCHIVE, name) for name in (SUITE, f"{SUITE}-updates", f"{SUITE}-security")]
    form = "$(REPO_URI)|$(RELEASE)|$(CREATED_BY)"
    if not shutil.which("apt-get"):
        return []
    return read_sources(ran("apt-get", "indextargets", "--no-release-info", "--format", form).stdout)


def apt_files(sources: list[Source], settings: str) -> dict[str, str]:
    """The machine's apt configuration: the outer machine's sources, through the bed's proxy."""
    lines = [
        f"deb [signed-by={KEYRING}] {source.uri.replace('https://', 'http://', 1)} {source.suite} {COMPONENTS}\n"
        for source in sources
    ]
    kept = [line for line in settings.splitlines() if line.startswith(KEPT_SETTINGS)]
    own = ['Acquire::Retries "5";', 'APT::Install-Recommends "false";', 'Acquire::Languages "none";', ""]
    return {"etc/apt/sources.list": "".join(lines), "etc/apt/apt.conf.d/80bed": "\n".join([*kept, *own])}


def recipe(sources: list[Source]) -> str:
    """What the image is made of, as a short hash: another recipe is another image."""
    text = repr((SUITE, PACKAGES, sorted(FILES.items()), SETUP, sources, COMPONENTS))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _kernel_parameters(root: Path) -> None:
    """Copy the values below /proc/sys into the files that stand for them."""
    _write(root, {f"var/lib/bed/sys/{name}": Path("/proc/sys", name).read_text() for name in SIMULATED_PARAMETERS})


def _run(argv: list[str], log: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    with log.open("ab") as output:
        done = subprocess.run(
            argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment, check=False
        )
    if done.returncode:
        raise layout.BedError(f"seen: {argv[0]} ended with {done.returncode}; wanted: an image; do: read {log}")


def hosts_of(sources: list[Source]) -> dict[str, str]:
    """The scheme by which the proxy asks each host, by host name."""
    return {urlsplit(source.uri).netloc: urlsplit(source.uri).scheme for source in sources}


def _target(draft: Path, sources: list[Source], state: Path) -> list[str]:
    uri = [source.uri for source in sources if source.suite == SUITE][:1]
    if SUITE in ubuntu.SUITES:
        return [*ubuntu.arguments(SUITE, state), str(draft), *uri, ubuntu.SCRIPT]
    return [SUITE, str(draft), *uri]


def build(state: Path = layout.STATE) -> Path:
    """The image's root directory; made when there is none of this recipe."""
    sources = outer_sources()
    root = state / f"image-{recipe(sources)}"
    if root.is_dir():
        return root
    if not (state / "machines").is_dir():  # a running machine may still read an older one
        for old in state.glob("image-*"):
            mounts.remove(old)
    draft, log = state / "image-draft", state / "image.log"
    state.mkdir(parents=True, exist_ok=True)
    mounts.remove(draft)
    log.unlink(missing_ok=True)
    _run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", *_target(draft, sources, state)], log)
    settings = ran("apt-config", "dump").stdout
    given = apt_files(sources, settings) if sources else {}
    _write(draft, {**FILES, **given, "setup.sh": SETUP})
    _kernel_parameters(draft)
    # With the outer machine's resolver, which is removed again: machines reach nothing but the bridge.
    shutil.copy("/etc/resolv.conf", draft / "etc/resolv.conf")
    _run(["chroot", str(draft), "sh", "-eu", "/setup.sh"], log)
    (draft / "setup.sh").unlink()
    _write(draft, {"etc/apt/apt.conf.d/81proxy": f'Acquire::http::Proxy "{layout.URL}";\n'})
    draft.rename(root)
    return root
