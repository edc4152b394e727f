"""Which programs and libraries a name means on a host, whatever its roles."""

import re
from pathlib import Path

import pytest

from .looking import installed, say

LOUD = re.compile(
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|PYTHON\w+|(NCCL|FI|OFI|CUDA|NVIDIA|OMPI|PMIX|UCX|SLURM|GLIBC|MALLOC|AWS)_\w+|BASH_ENV|ENV"
    r"|(HTTPS?|ALL|https?|all)_(PROXY|proxy)|(SSL|REQUESTS|CURL)_\w+"
)
"""Variables that change which code runs, how fast, or who answers for AWS."""


SET_ID_USUAL = frozenset(
    re.findall(
        r"\S+",
        "at chage chfn chsh crontab dbus-daemon-launch-helper dotlockfile exim4 expiry fusermount fusermount3 "
        "gpasswd locate lockdev lxc-user-nic mlocate mount mount.cifs mount.ecryptfs_private mount.nfs "
        "newgidmap newgrp newuidmap nvidia-modprobe pam_extrausers_chkpwd pam_timestamp_check passwd ping "
        "ping6 pkexec plocate polkit-agent-helper-1 postdrop postqueue procmail screen sg snap-confine "
        "ssh-agent ssh-keysign staprun su sudo sudoedit umount unix_chkpwd userhelper usernetctl utempter "
        "vmware-user-suid-wrapper wall write bsd-write",
    )
)
"""Programs that distributions ship with such a bit. A package says nothing of its files' modes, so that one more is not noticed by it."""
CAPABLE_USUAL = frozenset(
    re.findall(
        r"\S+", "arping clockdiff dumpcap gst-ptp-helper mtr-packet newgidmap newuidmap ping snap-confine suexec"
    )
)
SEARCHED = ("/opt/amazon", "/usr/local/cuda", "/usr/local/lib", "/usr/lib")


VOUCHED = (
    *("libc6", "glibc", "libpam*", "pam", "sudo", "openssh-*", "systemd*"),
    *("bash", "dash", "coreutils", "util-linux", "mount", "kmod"),
)


def test_no_set_user_id_program_is_a_strangers(ask, strangers):
    """Whoever starts such a program becomes its owner; a copied shell is a door."""
    found = ask.found("find / -xdev -type f -perm /6000 -print")
    strangers.none("set-user-id or set-group-id", found, "only programs of packages")


def test_no_packages_program_was_given_rights(ask, strangers):
    """chmod u+s on find, or a capability on python3: the package answers for the file and not for its mode."""
    found = ask.found("find / -xdev -type f -perm /6000 -print")
    given = [path for path in found if Path(path).name not in SET_ID_USUAL]
    if ask.has("getcap"):
        rows = ask.found("getcap -r /usr /opt")
        given += [path for row in rows if Path(path := row.split(" ")[0]).name not in CAPABLE_USUAL]
    say.none(
        "more rights than its package gave has",
        strangers.unnamed(given),
        "none but the distributions' usual programs",
        "chmod ug-s, setcap -r, or reinstall the package",
    )


def test_programs_belong_to_root(ask, strangers):
    """dpkg compares what is in a file. Whoever owns it can change it tomorrow."""
    rows = ask.found(
        "find /usr /opt/flightline -xdev ! -type l \\( ! -user root -o -perm -0020 ! -group root ! -group staff \\)"
    )
    found = strangers.unnamed(path for path in rows if Path(path).name not in SET_ID_USUAL)
    say.none("not root's alone", found, "root's files", "chown root, or reinstall the package")


def test_no_packages_file_was_set_aside(ask, strangers):
    """A diversion moves a package's program away and lets another stand in its place; dpkg then verifies the one that was moved."""
    say.needs(ask.family() == "Debian", "dpkg only")
    rows = ask("dpkg-divert --list").splitlines()
    local = [row.split(" of ", 1)[1].split(" to ")[0] for row in rows if row.startswith("local diversion")]
    say.none("set aside by hand", strangers.unnamed(local), "only packages' diversions", "dpkg-divert --remove PATH")


def test_no_file_capability_is_a_strangers(ask, strangers):
    """A capability on a file is a set-user-id bit that find does not show."""
    say.needs(ask.has("getcap"), "getcap is not installed")
    found = [line.rsplit(" ", 1)[0] for line in ask.found("getcap -r /usr /opt /etc /home /root /srv /var/lib")]
    strangers.none("capabilities on", found, "only programs of packages")


def test_no_program_hides_another(ask, strangers):
    """/usr/local comes first on every PATH: a wrapper of nvidia-smi there is what the checks would ask."""
    places = "/usr/local/sbin /usr/local/bin /root/bin /root/.local/bin"
    rows = ask.lines(
        f"for d in {places}; do [ -d $d ] && ls $d | while read -r f; do for o in /usr/sbin /usr/bin /opt/amazon/efa/bin"
        " /opt/amazon/openmpi/bin /usr/local/cuda/bin; do [ -e $o/$f ] && echo $d/$f && break; done; done; done; true"
    )
    strangers.none("programs hide the system's", rows, "each program once on the PATH")


def test_nothing_is_loaded_into_every_program(ask):
    """/etc/ld.so.preload puts a library into every process of the node, the checks included."""
    found = ask("cat /etc/ld.so.preload 2>/dev/null || true").split()
    say.none("/etc/ld.so.preload loads", found, "no such file", "rm /etc/ld.so.preload")


def test_libraries_come_from_known_places(ask, strangers):
    """The linker's cache decides which libnccl, libcuda and libfabric a program gets."""
    paths = ask.found("grep -hvE '^ *(#|include|$)' /etc/ld.so.conf /etc/ld.so.conf.d/*.conf")
    files = ask.found("ls -d /etc/ld.so.conf.d/*.conf")
    found = [path for path in paths if not path.startswith((*SEARCHED, "/lib"))]
    do = f"remove it from {', '.join(strangers.among(files)) or '/etc/ld.so.conf'}; ldconfig"
    say.none("libraries are searched in", found, f"below {', '.join(SEARCHED)}", do)


def test_linker_finds_known_libraries(ask):
    """The cache itself: `ldconfig DIRECTORY` puts libraries into it that no file of ld.so.conf.d names."""
    paths = [row.rpartition(" => ")[2] for row in ask.lines("ldconfig -p") if " => " in row]
    found = [path for path in paths if not path.startswith((*SEARCHED, "/lib"))]
    say.none(
        "the linker would take", found, f"libraries below {', '.join(SEARCHED)}", "ldconfig, and look who added them"
    )


REMOTE = "cd; exec env -i HOME=$HOME USER=$USER PATH=$PATH SSH_CLIENT='192.0.2.1 22 22' bash -c env"
"""What a command over ssh gets: bash then reads its files for interactive shells (bash(1), Invocation)."""


@pytest.mark.parametrize("who", ["login", "remote", "root", "services"])
def test_environment_is_the_sites(ask, wanted, who):
    """One NCCL or linker variable for all is a fabric at a tenth of its speed, or another library, on this node only."""
    user = {"login": wanted["ansible_user"], "remote": wanted["ansible_user"], "root": "root"}.get(who, "")
    command = REMOTE if who == "remote" else "env"
    rows = ask.lines("su - %s -c %s </dev/null", user, command) if user else ask.lines("systemctl show-environment")
    seen = dict(row.split("=", 1) for row in rows if "=" in row)
    allowed = {str(key): str(value) for key, value in wanted["compliance_environment"].items()}
    found = [
        f"{key}={value}" for key, value in sorted(seen.items()) if LOUD.fullmatch(key) and allowed.get(key) != value
    ]
    found = [entry for entry in found if not _searches_known(entry)]
    do = "look in /etc/environment, /etc/profile.d, /etc/environment.d, system.conf.d"
    say.none(f"the environment of {who} has", found, "only what compliance_environment names", do)


def _searches_known(entry):
    name, _, value = entry.partition("=")
    return name == "LD_LIBRARY_PATH" and all(path.startswith(SEARCHED) for path in value.split(":") if path)


@pytest.mark.parametrize("who", ["login", "root"])
def test_programs_are_searched_in_known_places(ask, wanted, who):
    """A directory that somebody else may write, early on the PATH, decides what every name means."""
    user = wanted["ansible_user"] if who == "login" else "root"
    home = ask("getent passwd %s", user).split(":")[5]
    places = ask("su - %s -c 'echo $PATH' </dev/null", user).split(":")
    known: tuple[str, ...] = ("/usr/", "/bin", "/sbin", "/opt/amazon", "/opt/slurm", "/opt/aws", "/snap/bin")
    known += (f"{home}/.local/bin", f"{home}/bin")
    found = [place for place in places if not place.startswith(known)]
    do = "look in /etc/environment, /etc/login.defs and /etc/profile.d"
    say.none(f"{user} searches programs in", found, "the system's directories", do)


def test_python_starts_without_strangers(ask, strangers):
    """A .pth or sitecustomize runs inside every Python program of root, flightline-check among them."""
    find = "find /usr/lib/python3* /usr/local/lib/python3* /etc/python3* -xdev \\( -name '*.pth' -o -name sitecustomize.py -o -name usercustomize.py \\) 2>/dev/null || true"
    strangers.none("python3 runs at its start", ask(find).splitlines(), "only files of packages")


def test_system_programs_are_their_packages(ask):
    """Everything else here asks these programs; a changed one can answer what it likes."""
    installed.unaltered(ask, VOUCHED, "their packages", "reinstall the package, and look who changed it")


def test_nothing_is_mounted_over_the_system(ask, wanted):
    """A mount over a file hides what is there: the disk is right, and what runs is something else."""
    places = ask("findmnt --raw --noheadings --output TARGET").splitlines()
    own: tuple[str, ...] = ("/etc/", "/usr/", "/opt/", "/root/", "/lib/", "/bin/", "/sbin/", "/home/")
    own += ("/var/lib/flightline", "/var/lib/dpkg")
    known = [str(pattern) for pattern in wanted["compliance_known_files"]]
    found = [place for place in places if place.startswith(own) and place not in known]
    found = [
        place
        for place in found
        if ask.answer("test -d %s", place).rc or place.startswith(("/etc/", "/usr/", "/opt/flightline"))
    ]
    say.none("mounted over", found, "nothing over files of the system", "umount it, and look in /etc/fstab")
