"""df: every form prints the same facts; long names, paths with spaces, no sizes, df's complaints."""

import pytest

from tests.unit.parsers.hosttools import parse, read


def by_mount(facts):
    return {entry["mount"]: entry for entry in facts["filesystems"]}


@pytest.mark.parametrize("form", ["kP", "T", "plain"])
def test_recorded_forms_in_kib(form):
    root = by_mount(read("df", f"df/debian12-{form}.txt"))["/"]
    assert root["filesystem"] == "/dev/vda"
    assert root["size_kib"] == 264212084
    assert 5 <= root["used_percent"] <= 20
    assert root.get("type") == ("ext4" if form == "T" else None)


def test_recorded_human_form_is_rounded():
    root = by_mount(read("df", "df/debian12-h.txt"))["/"]
    assert root["size_kib"] == 252 * 1024 * 1024
    assert by_mount(read("df", "df/debian12-h.txt"))["/dev"]["used_kib"] == 0


def test_inodes_join_by_mount():
    entries = by_mount(read("df", "df/debian12-kP.txt", "df/debian12-iP.txt"))
    assert entries["/"]["inodes"] == 16777216
    assert entries["/"]["inodes_used_percent"] == 3
    assert entries["/"]["size_kib"] == 264212084


def test_file_system_without_inodes():
    entries = by_mount(read("df", "df/full-kP.txt", "df/full-iP.txt"))
    assert entries["/boot/efi"]["inodes_used_percent"] is None
    assert (entries["/"]["used_percent"], entries["/"]["inodes_used_percent"]) == (100, 100)


def test_wrapped_names_odd_paths_and_complaints():
    facts = read("df", "df/wrapped.txt")
    entries = by_mount(facts)
    scratch = entries["/opt/dlami/nvme"]
    assert scratch["filesystem"] == "/dev/mapper/vg.01-lv_ephemeral_with_a_long_name"
    assert (scratch["size_kib"], scratch["used_percent"]) == (30004543488, 98)
    assert entries["/data/with a space"]["used_percent"] == 1
    assert entries["/proc/sys/fs/binfmt_misc"]["used_percent"] is None
    assert entries["/proc/sys/fs/binfmt_misc"]["size_kib"] is None
    assert facts["errors"] == ["df: /fsx: Stale file handle", "df: /sys/kernel/debug/tracing: Permission denied"]


@pytest.mark.parametrize(
    ("header", "kib"), [("512-blocks", 500), ("1K-blocks", 1000), ("1M-blocks", 1024000), ("1024-blocks", 1000)]
)
def test_block_sizes(header, kib):
    facts = parse("df", f"Filesystem {header} Used Available Use% Mounted on\n/dev/sda1 1000 10 990 1% /\n")
    assert facts["filesystems"][0]["size_kib"] == kib


def test_only_complaints_are_kept():
    assert parse("df", "df: /fsx: Stale file handle\n") == {
        "filesystems": [],
        "errors": ["df: /fsx: Stale file handle"],
    }


def test_a_wrapped_row_may_have_an_empty_line_in_it():
    text = (
        "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/mapper/vg0-a_long_name_for_root\n\n 100 97 3 97% /\n"
    )
    assert by_mount(parse("df", text))["/"]["used_percent"] == 97
