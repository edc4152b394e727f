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


MODES = {
    "/tmp": "1777",
    "/var/tmp": "1777",
    "/dev/shm": "1777",
    "/dev/null": "666",
    "/dev/zero": "666",
    "/etc/passwd": "644",
    "/etc/group": "644",
    "/etc/nsswitch.conf": "644",
    "/etc/hosts": "644",
}
CLOSED = "find /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*_key /root -maxdepth 0 -perm /0007"
GROUPS = "find /etc/ssh/ssh_host_*_key -perm /0040 -group root; find /root /home/* -maxdepth 0 -perm /0022"


def test_system_places_have_their_modes(ask):
    """A closed /tmp or /etc/passwd fails every program that is not root's, and no file is missing; an open key is anybody's."""
    rows = dict(reversed(row.split(" ", 1)) for row in ask.found(f"stat -c '%a %n' {' '.join(MODES)}"))
    wrong = {path: mode for path, mode in MODES.items() if rows.get(path, mode) != mode}
    wrong |= dict.fromkeys(ask.found(CLOSED), "o-rwx") | dict.fromkeys(ask.found(f"{{ {GROUPS}; }}"), "go-rwx")
    do = "; ".join(f"chmod {mode} {path}" for path, mode in wrong.items())
    say.none("modes", [f"{path} {rows.get(path, 'open to others')}" for path in wrong], "the distribution's", do)


def test_processes_can_be_seen(ask):
    """With hidepid Slurm, DCGM and the checks see no process of a job: a GPU in use looks idle."""
    options = ask("findmnt --noheadings --output OPTIONS /proc").splitlines()[-1].split(",")
    hidden = [one for one in options if one.startswith("hidepid=") and one not in ("hidepid=0", "hidepid=off")]
    say.none("/proc is mounted with", hidden, "no hidepid", "mount -o remount,hidepid=0 /proc, and correct /etc/fstab")
