"""Follow what a finding says is to be done, as a person at the host reads it, and nothing more than it says."""

import re

PROGRAMS = {
    *("apt-get", "apt-mark", "chage", "chattr", "chmod", "chown", "chronyc", "dpkg"),
    *("dpkg-divert", "ethtool", "gpasswd", "hostnamectl", "ip", "ldconfig", "localectl", "mount"),
    *("passwd", "pam-auth-update", "rm", "sed", "setcap", "setfacl", "ssh-keygen", "swapoff"),
    *("sysctl", "systemctl", "tc", "timedatectl", "umount", "update-alternatives", "userdel"),
}  # fmt: skip
"""What changes something. Programs that only look (journalctl, grep, sshd -T) mend nothing."""
CONFIGURE = "run make configure"
PLACE = re.compile(r"\b(PATH|NAME|UNIT|LINK|PLACE|PACKAGE|HOST|ENTRY)\b|(?<= )it\b")
REMOVE = re.compile(
    r"(?:rm|remove) (?:it|them|the lines?|these files|the later (?:file|line)|the other preference|the unit|the source)\b"
)
LINE = re.compile(r"(/[^:\s]+):(\d+):")
TAKEN_OUT = (
    "| grep -v flightline | grep -vE '^[^:]*:[0-9]+:[[:space:]]*#([[:space:]]|[^a-z])' | sort -t: -k1,1 -k2,2nr"
    ' | while IFS=: read -r f n _; do sed -i "${n}d" "$f"; done'
)
"""The lines that a search shows are removed from the last on, but for comments and those in files of the roles."""
OWNER = "$(dpkg -S {} | head -n 1 | cut -d: -f1)"


def entries(said: str) -> list[str]:
    """What the finding names: after the first colon of what was seen, and one a line where there was no room."""
    seen = said.partition("; wanted: ")[0].removeprefix("saw: ")
    more = [row.removeprefix("saw also: ") for row in said.splitlines() if row.startswith("saw also: ")]
    return [*(entry for entry in seen.partition(": ")[2].split(", ") if entry), *more]


def commands(said: str) -> list[str]:
    """Shell lines of its last part, in order; none where it only says where to look, or names no command."""
    do = said.partition("; do: ")[2].partition("\nsaw also: ")[0]
    found: list[str] = []
    searched = ""
    for step in re.split(r"; |, and |, or ", do.partition("\n")[0]):
        step = re.sub(r" \(.*?\)|, .*$", "", step).strip()
        if step.startswith("grep -rn"):
            searched = PLACE.sub(entries(said)[0].split()[0] if entries(said) else "", step).replace("-rn", "-Hrn", 1)
        elif searched and REMOVE.match(step):
            found.append(f"{searched} {TAKEN_OUT}")
        else:
            found += _step(step, entries(said))
    reload = ["systemctl daemon-reload"] if any("/systemd/" in line for line in found) else []
    return [*found, *reload]


def asks_for_configure(said: str) -> bool:
    """Does it say that the roles put this right?"""
    return CONFIGURE in said.partition("; do: ")[2]


def _step(step: str, named: list[str]) -> list[str]:
    if REMOVE.match(step):
        return [line for entry in named for line in _removal(entry)]
    if step.partition(" ")[0] not in PROGRAMS:
        return []
    if not PLACE.search(step):
        return [step]
    words = [entry.split()[0].strip("'") for entry in named]
    packaged = [step.replace("PACKAGE", OWNER.format(word)) for word in words]
    return [PLACE.sub(word.replace("\\", r"\\"), line) for word, line in zip(words, packaged)]


def _removal(entry: str) -> list[str]:
    line = LINE.match(entry)
    if line:
        return [f"sed -i {line.group(2)}d {line.group(1)}"]
    path = re.search(r"(?:^| in )(/\S+)$", entry.strip())
    return [f"rm -f {path.group(1)}"] if path else []
