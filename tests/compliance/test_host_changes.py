"""What changes the host by itself, beside a training run."""

import re

from .looking import say

HOOKS = (
    "grep -rlE '(Pre|Post)-Invoke|Pre-Install-Pkgs|^(pre|post)-invoke' /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/dpkg"
)
RESTARTS = "grep -rhE '^[[:space:]]*[$]nrconf[{]restart[}]' /etc/needrestart"


def test_no_upgrade_reboots_the_host(ask):
    """A node that reboots at four in the morning ends the run on all others."""
    if ask.family() == "Debian":
        rows = ask.lines("apt-config dump Unattended-Upgrade::Automatic-Reboot")
        found = [row for row in rows if re.search(r'Automatic-Reboot "(true|1|yes)"', row, re.IGNORECASE)]
    else:
        found = ask.found("grep -hE '^reboot *= *(when|always)' /etc/dnf/automatic.conf")
    say.none(
        "an upgrade may reboot",
        found,
        "no reboot by itself",
        "grep -rn Automatic-Reboot /etc/apt/apt.conf.d /etc/dnf/automatic.conf; remove the line",
    )


def test_no_upgrade_restarts_services_by_itself(ask):
    """needrestart in its automatic mode starts slurmd and Fabric Manager again under a running job."""
    found = [row for row in ask.found(RESTARTS) if re.search(r"=\s*['\"]a['\"]", row)]
    say.none(
        "needrestart has", found, "restart 'l' or 'i'", "grep -rn 'nrconf{restart}' /etc/needrestart; remove the line"
    )


def test_no_installation_runs_a_strangers_program(ask, strangers):
    """A hook of apt or dpkg runs as root at every installation, that of the roles as well."""
    strangers.none("installations also run what is named in", ask.found(HOOKS), "hooks of packages alone")


def test_no_package_is_half_configured(ask):
    """It works until the next boot, and every later installation first tries to finish it."""
    say.needs(ask.family() == "Debian", "dpkg only")
    found = [row.split()[0] for row in ask.lines("dpkg --audit") if row.startswith(" ")]
    say.none("half-configured", found, "whole packages", "dpkg --configure -a")
