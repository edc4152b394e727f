"""Room for what training writes beside its checkpoints."""

from .looking import say

SHARED_MIB = 1024
"""NCCL's rings between eight GPUs and the batches of loader workers; Docker's default of 64 MiB ends both with a bus error."""
FULL_PERCENT = 95


def test_shared_memory_has_room(ask):
    """A small /dev/shm ends loader workers with SIGBUS, in the middle of an epoch."""
    mib = int(ask("df --output=size --block-size=1M /dev/shm").splitlines()[-1])
    do = "mount -o remount,size=50% /dev/shm, and look in /etc/fstab and units for who made it small"
    say.holds(mib >= SHARED_MIB, f"/dev/shm has {mib} MiB", f"{SHARED_MIB} MiB or more", do)


def test_programs_may_run_where_compilers_write_them(ask):
    """Triton and torch.compile load what they wrote to /tmp; with noexec every rank of this node fails at its first step."""
    places = [
        place
        for place in ("/tmp", "/var/tmp")
        if "noexec" in ask("findmnt --noheadings --output OPTIONS --target %s", place)
    ]
    say.none(
        "mounted noexec", places, "exec", "mount -o remount,exec PLACE, and correct its line in /etc/fstab or its unit"
    )


def test_no_disk_is_full(ask):
    """A checkpoint that does not fit ends the run after the hours that it was to keep."""
    rows = [
        row.split() for row in ask("df --local --output=pcent,ipcent,target -x squashfs -x efivarfs").splitlines()[1:]
    ]
    full = [
        f"{row[2]} {row[0]}, inodes {row[1]}" for row in rows if any(_percent(word) > FULL_PERCENT for word in row[:2])
    ]
    say.none("full", sorted(set(full)), f"{FULL_PERCENT} % or less", "du -xh PLACE | sort -h | tail; df -i")


def _percent(word):
    return int(word.rstrip("%")) if word.rstrip("%").isdigit() else 0
