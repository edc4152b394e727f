"""Settings that change how a host behaves and that nobody answers for: files added, files of packages edited, choices by hand."""

from fnmatch import fnmatch

import pytest

from .looking import say

PLACES = {
    "the kernel and its modules": "/etc/modprobe.d /run/modprobe.d /etc/sysctl.d /run/sysctl.d /etc/binfmt.d",
    "limits": "/etc/security/limits.d /etc/security/namespace.d",
    "the next boot": "/etc/initramfs-tools /etc/dracut.conf.d /etc/kernel /etc/init.d /etc/tuned /etc/crypttab"
    " /var/lib/cloud/scripts /etc/cloud/cloud.cfg.d /etc/systemd/system-generators"
    " /etc/systemd/system-environment-generators /etc/systemd/system-shutdown /etc/systemd/system-sleep",
    "logs and logins": "/etc/logrotate.d /etc/rsyslog.d /etc/audit /etc/update-motd.d /etc/bash_completion.d /etc/profile.d"
    " /etc/environment.d /etc/skel /etc/dbus-1 /etc/pam.d /root/.ssh/rc /root/.ssh/config",
    "the network": "/etc/dhcp /etc/systemd/network /run/systemd/network /etc/network /etc/netplan /etc/networkd-dispatcher"
    " /etc/NetworkManager/conf.d /etc/NetworkManager/dispatcher.d",
    "packages": "/etc/apt/preferences.d /etc/apt/apt.conf.d /etc/dpkg/dpkg.cfg.d /etc/dnf/vars /etc/dnf/plugins"
    " /etc/pip.conf /root/.config/pip /root/.pip",
    "containers": "/etc/containerd /etc/cdi /var/run/cdi /etc/enroot /etc/crictl.yaml /etc/docker /root/.docker",
    "GPUs and NCCL": "/etc/nvidia /root/.nccl.conf /root/.local/lib /usr/local/lib/lib*.so*",
    "AWS": "/root/.boto /root/.aws /etc/boto.cfg /etc/amazon/ssm",
}
"""What each decides -> where its settings lie."""
SYSTEMS = (
    *("/etc/pam.d/common-*", "/etc/security/opasswd", "/etc/netplan/50-cloud-init.yaml", "/etc/cloud/cloud.cfg.d/90_dpkg.cfg"),
    *("/etc/network/interfaces.d/50-cloud-init", "/etc/apt/apt.conf.d/90cloud-init-pipelining", "/etc/docker/key.json"),
    *("/etc/cloud/cloud.cfg.d/99-installer.cfg", "/etc/apt/apt.conf.d/01-vendor-ubuntu", "/etc/apt/apt.conf.d/20auto-upgrades"),
)  # fmt: skip
"""Made by packages at their installation (pam-auth-update, debconf) and by cloud-init; the PAM files have a test of their own."""
EDITED = {
    *("/etc/containerd/config.toml", "/etc/chrony/chrony.conf", "/etc/chrony.conf", "/etc/ssh/sshd_config"),
    *("/etc/default/slurmd", "/etc/cloud/cloud.cfg", "/etc/pam.d/sshd", "/etc/sudoers"),
}
"""What roles and images edit in place; each is asked of its own tool by another test."""
CONFFILES = (
    "dpkg-query -W -f '${Conffiles}\\n' | awk 'NF == 2 && length($2) == 32 {print $2 \"  \" $1}'"
    " | LC_ALL=C md5sum --check --quiet 2>/dev/null | sed -n 's/: FAILED$//p' || true"
)
RPMS = "rpm -qac | sort -u | xargs --no-run-if-empty rpm -Vf 2>/dev/null | awk '$1 ~ /5/ && $2 == \"c\" {print $3}' || true"


@pytest.mark.parametrize("what", PLACES)
def test_no_setting_is_a_strangers(ask, strangers, what):
    """Every tool reads a whole directory: one file of a trial long ago, and this node alone is slower, or another, after its boot."""
    found = ask.found(f"find {PLACES[what]} -type f ! -name '*.dpkg-*' ! -name '*.pyc' ! -name README")
    rows = [path for path in found if not any(fnmatch(path, pattern) for pattern in SYSTEMS)]
    strangers.none(f"{what}: settings of nobody's in", rows, "files of packages, roles and the site")


def test_settings_are_their_packages(ask, strangers):
    """A package's own file, edited: nothing is added that would show, and the next upgrade asks about it, or keeps it for ever."""
    rows = [row for row in ask.lines(CONFFILES if ask.family() == "Debian" else RPMS) if row not in EDITED]
    say.none(
        "not as its package brought it",
        strangers.unnamed(rows),
        "unchanged, or named in compliance_known_files",
        say.PACKAGED,
    )


def test_nothing_was_chosen_by_hand(ask):
    """A hold keeps security updates out, an alternative makes a name mean another program: both outlive the reason."""
    say.needs(ask.family() == "Debian", "dpkg only")
    held = [
        row
        for row in ask.lines("apt-mark showhold")
        if not row.startswith(("linux-", "nvidia-", "libnvidia-", "libnccl"))
    ]
    chosen = [
        f"alternative {row.split()[0]}"
        for row in ask.lines("update-alternatives --get-selections")
        if row.split()[1] == "manual"
    ]
    astray = ask.found(
        "for l in /etc/alternatives/*; do update-alternatives --query ${l##*/} | grep -q 'Status: auto' || continue;"
        " v=$(update-alternatives --query ${l##*/} | sed -n 's/^Best: //p');"
        ' [ "$(readlink $l)" = "$v" ] || echo ${l##*/}; done'
    )
    foreign = [f"architecture {row}" for row in ask.lines("dpkg --print-foreign-architectures")]
    ways = {
        "hold": "apt-mark unhold",
        "alternative": "update-alternatives --auto",
        "link": "update-alternatives --auto",
        "architecture": "dpkg --remove-architecture",
    }
    rows = [*(f"hold of {row}" for row in held), *chosen, *(f"link {row}" for row in astray), *foreign]
    do = "; ".join(dict.fromkeys(f"{ways[row.split()[0]]} {row.split()[-1]}" for row in rows))
    say.none("chosen by hand", rows, "the distribution's choices", do)


def test_words_can_be_read(ask):
    """With a locale that is not there tools warn on every line, and Python and perl fall back to ASCII."""
    rows = ask.found(
        "for f in /etc/default/locale /etc/locale.conf; do [ ! -e $f ] || (unset LC_ALL; set -a; . $f; locale 2>&1 >/dev/null); done"
    )
    say.none(
        "the locale says",
        rows,
        "no complaint",
        "sed -i s/^LANG=.*/LANG=C.UTF-8/ /etc/default/locale (localectl set-locale)",
    )
