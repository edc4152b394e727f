"""What a failed installation says is to be done: by the package manager's own words, quoted as apt, dnf and OpenSSL print them."""

import re
from pathlib import Path

import pytest

from flightline.configure.package_trouble import CAUSES, advice
from flightline.configure.site_summary import HostTrouble

ROLES = Path(__file__).parents[3] / "roles"
SAID = [
    (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 811 (unattended-upgr)",
        "another program",
    ),
    (
        "E: Release file for http://x/InRelease is not valid yet (invalid for another 23h 58min 2s).",
        "clock of this host is behind",
    ),
    ("certificate verify failed: certificate is not yet valid", "clock of this host is behind"),
    (
        "E: Release file for http://x/InRelease is expired (invalid since 2d 3h). Updates will not be applied.",
        "old snapshot",
    ),
    ("Failed to fetch http://x/a.deb  File has unexpected size (812 != 900). Mirror sync in progress?", "other bytes"),
    ("Failed to fetch http://x/a.deb  Hash Sum mismatch", "other bytes"),
    ("Failed to fetch http://x/a.deb  404  Not Found [IP: 10.0.0.1 80]", "the mirror has no more"),
    ("E: You don't have enough free space in /var/cache/apt/archives/.", "a disk is full"),
    ("dpkg: error processing archive a.deb: failed to write (No space left on device)", "a disk is full"),
    ("Failed to fetch http://x/  Temporary failure resolving 'x'", "a name is not resolved"),
    ("Version '4.9' for 'datacenter-gpu-manager' was not found", "correct dcgm_version"),
]


@pytest.mark.parametrize(("said", "wanted"), SAID, ids=lambda value: value[:30])
def test_the_cause_is_what_has_to_be_done_something_about(said, wanted):
    assert wanted in advice({"msg": "apt failed", "stderr": said}, "correct dcgm_version")
    assert wanted in advice(said, "correct dcgm_version")


def test_every_cause_was_seen_and_no_advice_breaks_a_sentence():
    assert all(any(re.search(words, said, re.IGNORECASE) for said, _ in SAID) for words, _ in CAUSES)
    assert not [do for _, do in CAUSES if "; do:" in do]


def test_the_end_of_a_run_says_the_cause_also_of_a_task_without_words_of_its_own():
    long = "E: " + "x " * 400
    assert str(HostTrouble("Install munge", f"{long} 404  Not Found [IP: 10.0.0.1 80]")).endswith(
        "apt-get update, then run again"
    )
    assert str(HostTrouble("Install munge", f"seen: {long}; wanted: y; do: look")).endswith("...; do: look")


def test_every_role_that_installs_says_the_cause():
    saying = {path for path in ROLES.glob("*/tasks/*.yml") if "package manager failed" in path.read_text()}
    assert saying and not [path for path in saying if "flightline_package_advice" not in path.read_text()]
