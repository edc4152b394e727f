"""The bed's pure parts: which sources it takes over, what it calls its machines, what it signs. Needs no root."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import urllib.error
from email.message import Message

import pytest

from tests.integration import mirror
from tests.integration.bed import image, inventory, layout, mounts, server, timesource

LISTING = """\
http://deb.example.org/debian/|bookworm|Packages
http://deb.example.org/debian/|bookworm|DEP-11
https://deb.example.org/debian-security/|bookworm-security|Packages
https://other.example.org/node|nodistro|Packages
http://deb.example.org/debian/|trixie|Packages
cut off
"""


def test_only_debian_bookworm_is_taken_over():
    assert image.read_sources(LISTING) == [
        ("http://deb.example.org/debian/", "bookworm"),
        ("https://deb.example.org/debian-security/", "bookworm-security"),
    ]


def test_machines_ask_by_http_and_the_proxy_by_what_the_outer_machine_uses():
    sources = image.read_sources(LISTING[: LISTING.index("\n", LISTING.index("security"))])
    text = image.apt_files(sources, "")["etc/apt/sources.list"]
    assert "https://" not in text
    assert "http://deb.example.org/debian-security/ bookworm-security main" in text
    assert "non-free" in text
    mixed = [image.Source("https://a.example.org/x", "bookworm")]
    assert image.hosts_of(mixed) == {"a.example.org": "https"}


def test_only_named_settings_of_apt_are_taken_over():
    dump = 'Acquire::Check-Date "false";\nAcquire::http::Proxy "http://user:secret@proxy";\n'
    kept = image.apt_files([], dump)["etc/apt/apt.conf.d/80bed"]
    assert 'Acquire::Check-Date "false";' in kept
    assert "secret" not in kept


def test_another_source_is_another_image():
    one, other = [image.Source("http://a/", "bookworm")], [image.Source("http://b/", "bookworm")]
    assert image.recipe(one) == image.recipe(one) != image.recipe(other)


@pytest.mark.parametrize(
    ("answers", "asked", "told"),
    [
        ([OSError("reset"), 503, "ok"], 3, "ok"),
        ([404], 1, 404),
        ([304], 1, 304),
        ([OSError("no route")] * 4, 4, OSError),
    ],
)
def test_a_mirror_with_trouble_is_asked_again_and_its_no_is_taken(monkeypatch, answers, asked, told):
    seen = []

    def urlopen(request, timeout):
        seen.append(request.full_url)
        answer = answers[len(seen) - 1]
        if isinstance(answer, int):
            raise urllib.error.HTTPError(request.full_url, answer, "", Message(), None)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(server.urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(server.time, "sleep", lambda _: None)
    try:
        found = server.ask("http://mirror.example.org/x.deb", {})
    except urllib.error.HTTPError as error:
        found = error.code
    except OSError:
        found = OSError
    assert (len(seen), found) == (asked, told)


@pytest.mark.parametrize("count", [0, layout.MOST + 1])
def test_a_number_of_machines_that_cannot_be_is_refused(count):
    with pytest.raises(layout.BedError, match="wanted: 1 to"):
        layout.machines(count)


def test_every_machine_has_its_own_name_and_address(tmp_path):
    fleet = layout.machines(layout.MOST, tmp_path)
    assert len({one.name for one in fleet}) == len({one.address for one in fleet}) == layout.MOST


def test_host_keys_stand_in_the_inventory_by_name_and_address(tmp_path):
    fleet = layout.machines(2, tmp_path)
    for one in fleet:
        (one.upper / "etc/ssh").mkdir(parents=True)
        (one.upper / "etc/ssh/ssh_host_ed25519_key.pub").write_text(f"ssh-ed25519 KEY{one.name} comment\n")
    assert inventory.known_hosts(fleet) == (
        f"gpu-01,{fleet[0].address} ssh-ed25519 KEYgpu-01\ngpu-02,{fleet[1].address} ssh-ed25519 KEYgpu-02\n"
    )
    text = str(inventory.inventory(fleet, tmp_path))
    assert "StrictHostKeyChecking" not in text
    assert str(tmp_path / "known_hosts") in text


def test_the_time_source_answers_a_client_with_its_own_stamp():
    request = bytes([0x23]) + bytes(39) + b"CLIENT-T"
    reply = timesource.answer(request, 1_700_000_000.0, 1_700_000_000.5)
    assert len(reply) == timesource.REQUEST_BYTES
    assert reply[0] & 0x7 == 4  # server
    assert reply[24:32] == b"CLIENT-T"
    seconds = int.from_bytes(reply[40:44], "big") - timesource.NTP_EPOCH_S
    assert (seconds, int.from_bytes(reply[44:48], "big")) == (1_700_000_000, 1 << 31)


def test_a_tarball_is_the_same_bytes_each_time_and_keeps_execute_bits():
    members: dict[str, mirror.Content] = {"b/run.sh": mirror.Executable("#!/bin/sh\n"), "a.txt": "text"}
    one = mirror.tarball(members)
    assert hashlib.sha256(one).digest() == hashlib.sha256(mirror.tarball(dict(reversed(members.items())))).digest()
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert [(entry.name, entry.mode) for entry in archive] == [("a.txt", 0o644), ("b/run.sh", 0o755)]


def test_a_release_lists_size_and_checksum_of_every_index():
    digest = hashlib.sha256(b"Package: x\n").hexdigest()
    text = mirror.release("bookworm", {"main/binary-amd64/Packages": b"Package: x\n"})
    assert f" {digest} 11 main/binary-amd64/Packages\n" in text


def test_a_bed_of_another_number_shares_no_name_with_the_first():
    script = (
        "from tests.integration.bed import layout as l; m = l.machine(9)\n"
        "print(l.STATE, l.BRIDGE, l.SUBNET, m.outer_name, m.address, l.URL, sep='\\n')"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "FLIGHTLINE_BED": number},
            cwd=layout.ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for number in "01"
    )
    assert not set(first) & set(second)
    longest_interface_name = 15  # linux/if.h, IFNAMSIZ with its end
    assert len(f"vb-{second[3]}") <= longest_interface_name


@pytest.mark.parametrize("text", ["", "x", "-1", "200"])
def test_a_bed_number_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="wanted: one of 0, 1"):
        layout.chosen(text)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_removing_an_image_does_not_walk_into_what_is_mounted_in_it(tmp_path):
    """debootstrap mounts /proc in its target, and a killed one leaves it there."""
    outer, draft = tmp_path / "outer", tmp_path / "image draft"
    (outer / "kept").mkdir(parents=True)
    (draft / "proc").mkdir(parents=True)
    done = subprocess.run(["mount", "--bind", str(outer), str(draft / "proc")], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"this machine does not let root mount: {done.stderr.decode().strip()}")
    assert mounts.below(draft) == [str(draft / "proc")]
    mounts.remove(draft)
    assert not draft.exists()
    assert (outer / "kept").is_dir()
    assert mounts.below(tmp_path) == []
