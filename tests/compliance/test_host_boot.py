"""What the next boot does, which nothing that runs now shows."""

from .looking import say

WORDS = "for f in /etc/default/grub /etc/default/grub.d/*.cfg; do [ ! -e $f ] || . $f; done; echo $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"
LOADED = "sed -nE 's/^[[:space:]]*linux[a-z]*[[:space:]]+[^[:space:]]+//p' /boot/grub/grub.cfg /boot/grub2/grub.cfg"
NEEDED = ("/", "/boot", "/boot/efi", "none", "swap")
"""Without these nothing starts in any case (fstab(5), systemd.mount(5), nofail)."""


def test_the_next_boot_has_the_kernels_words_of_this_one(ask):
    """modprobe.blacklist=nvidia in grub.d shows at the next boot, when nobody remembers it."""
    now = set(ask("cat /proc/cmdline").split())
    words = [word for row in ask.found(LOADED) for word in row.split()] + ask.found(f"sh -c '{WORDS}'")
    later = sorted({word for row in words for word in row.split() if "$" not in word} - now)
    own = [word for word in later if word.partition("=")[0] not in ("root", "ro", "recovery", "single", "nomodeset")]
    do = f"grep -rnE '{'|'.join(own)}' /etc/default/grub.d /etc/default/grub; remove the line; update-grub, or reboot where it is wanted"
    say.none("the next boot's kernel also gets", own, "the words that this one was started with", do)


def test_no_lost_disk_stops_the_next_boot(ask):
    """A line of fstab without nofail: after a stop and start its disk is blank or another, and the node waits in emergency mode."""
    rows = [row.split() for row in ask.found("findmnt --fstab --raw --noheadings --output TARGET,OPTIONS")]
    bad = [row[0] for row in rows if row[0] not in NEEDED and not {"nofail", "noauto"} & set(row[-1].split(","))]
    say.none(
        "fstab mounts without nofail",
        bad,
        "nofail in each line",
        r"sed -Ei 's|^([^#[:space:]]+[[:space:]]+PLACE[[:space:]]+[^[:space:]]+[[:space:]]+[^[:space:]]+)|\1,nofail|' /etc/fstab",
    )


def test_nothing_of_a_strangers_is_loaded_or_run_at_boot(ask, strangers):
    """A module that takes the GPUs before the driver, or rc.local: both run before anything looks."""
    rows = ask.found("find /etc/modules-load.d /run/modules-load.d -type f")
    rows += ask.found("find /etc/rc.local /etc/rc.d/rc.local -type f -perm -0100 -size +0")
    strangers.none("at boot comes also", rows, "only files of packages and roles")
    own = ask.found("grep -vE '^[[:space:]]*(#|$)' /etc/modules")
    say.none("/etc/modules loads", own, "nothing", "sed -i '/^NAME/d' /etc/modules, or load them by a role")
