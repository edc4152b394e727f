"""A real host whose repository lies, whose clock or disk is wrong, or that is far away: each with what is said about it."""

import shutil
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from .mirror import Mirror
from .test_gpu_roles import absent, converges, refused, repository

pytestmark = [pytest.mark.root, pytest.mark.slow]
SOURCES = "/etc/apt/sources.list.d/flightline-liar.sources"
PACKAGE = "datacenter-gpu-manager-4-cuda13"
RELAY = Path(__file__).with_name("far_away.py")


@pytest.fixture
def liar(bed):
    """A repository of its own, signed as it should be; each test makes it lie."""
    made = Mirror(bed.mirror.directory / "liar")
    for path in (bed.mirror.directory / "apt/pool").glob("datacenter-gpu-manager*.deb"):
        (made.directory / "apt/pool").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, made.directory / "apt/pool")
    made.publish()
    yield made
    shutil.rmtree(made.directory)


def asked(bed, liar, name="flightline-liar"):
    """The variables of the lying repository."""
    place = f"{bed.url}/liar"
    return repository(bed, name, url=f"{place}/apt", key_url=f"{place}/key.asc", key_fingerprint=liar.fingerprint)


def dated(liar, **lines):
    """Give the signed Release other dates, as a mirror has that stands still, or as one looks to a clock that is wrong."""
    liar.publish(
        dates={name.replace("_", "-"): f"{format_datetime(when, usegmt=True)[:-3]}UTC" for name, when in lines.items()}
    )


@pytest.fixture
def strict(bed, host):
    """Dates are looked at; the bed leaves that out, whose Debian may be a snapshot. Debian is not asked meanwhile."""
    bed.ssh(host, "apt-get install -qq --yes gnupg ca-certificates && mkdir /root/aside")
    bed.ssh(host, "mv /etc/apt/sources.list* /root/aside && mkdir /etc/apt/sources.list.d")
    for name in ("Check-Date", "Check-Valid-Until"):
        bed.ssh(host, f"echo 'Acquire::{name} \"true\";' >> /etc/apt/apt.conf.d/99dates")
    yield
    bed.ssh(
        host,
        "rm -rf /etc/apt/apt.conf.d/99dates /etc/apt/sources.list* && mv /root/aside/* /etc/apt && rmdir /root/aside",
    )


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ({"Date": 1}, ("not valid yet", "the clock of this host is behind", "chronyc makestep")),
        ({"Date": -9, "Valid_Until": -1}, ("expired", "old snapshot", "or the clock is ahead")),
    ],
    ids=["a clock one day behind", "an old snapshot, or a clock one day ahead"],
)
def test_a_clock_or_a_snapshot_of_another_day_is_named_and_the_repository_taken_out(
    bed, host, role, liar, lines, words
):
    dated(liar, **{name: datetime.now(UTC) + timedelta(days=days) for name, days in lines.items()})
    refused(role("package_repository", **asked(bed, liar)), *words, "nothing was installed")
    assert absent(bed, host, SOURCES)
    liar.publish()
    converges(role("package_repository", **asked(bed, liar)), host)
    bed.ssh(host, f"rm {SOURCES}")


def spoiled(bed, host, liar):
    for path in (liar.directory / "apt/pool").glob("*.deb"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")


def lost(bed, host, liar):
    for path in (liar.directory / "apt/pool").glob("*.deb"):
        path.unlink()


def filled(bed, host, liar):
    bed.ssh(host, "mount -t tmpfs -o size=64k tmpfs /var/cache/apt/archives && mkdir /var/cache/apt/archives/partial")
    bed.ssh(host, "head -c 1M /dev/zero > /var/cache/apt/archives/full", check=False)


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (spoiled, ("other bytes than its signed index names", "leave verification on")),
        (lost, ("404", "the mirror has no more", "apt-get update")),
        (filled, ("a disk is full", "df -h")),
    ],
    ids=["bad checksum", "404", "a disk that fills between two tasks"],
)
def test_a_file_that_cannot_be_had_is_told_by_its_cause_and_a_run_after_it_converges(bed, host, role, liar, lie, words):
    given = {
        f"nvidia_repository_{key.removeprefix('package_repository_')}": value for key, value in asked(bed, liar).items()
    }
    given = {**given, "dcgm_state": "enabled", "dcgm_gpu_count": 0}
    bed.ssh(
        host, f"dpkg --purge {PACKAGE}; apt-get install -qq --yes gnupg ca-certificates; apt-get clean", check=False
    )
    lie(bed, host, liar)
    refused(role("dcgm", **given), *words)
    assert "no packages found" in bed.ssh(host, f"dpkg-query --show {PACKAGE}", check=False)
    bed.ssh(host, "umount /var/cache/apt/archives", check=False)
    shutil.copytree(bed.mirror.directory / "apt/pool", liar.directory / "apt/pool", dirs_exist_ok=True)
    liar.publish()
    bed.ssh(host, "apt-get update -qq")
    converges(role("dcgm", **given), host)
    bed.ssh(host, "rm /etc/apt/sources.list.d/flightline-nvidia.sources")


def test_a_host_two_seconds_away_converges_without_a_word(bed, host, role):
    far = f"-o ControlPath=none -o ProxyCommand='{sys.executable} {RELAY} 1 %h %p' -o IdentitiesOnly=yes"
    known = f"-o UserKnownHostsFile={bed.inventory.parent / 'known_hosts'}"
    began = time.monotonic()
    played = role("package_repository", **repository(bed, "flightline-far"), ansible_ssh_common_args=f"{far} {known}")
    converges(played, host)
    assert time.monotonic() - began > 10, "nothing was slow"
    bed.ssh(host, "rm /etc/apt/sources.list.d/flightline-far.sources")
