"""What configure decided about a host, as the control side keeps it: the expected value of all that an image may bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flightline.configure import host_state
from flightline.configure.node_software import software
from flightline_host.version import reaches

from . import say
from .ask import Asked
from .expected import Site


def record(site: Site, host: str, ask: Asked) -> dict[str, Any]:
    """The record of a host; a finding where there is none, where this side did not sign it, or where it is another machine's."""
    place = Path(str(site.of_role(host, "host_state", ask.facts())["host_state_directory"]))
    try:
        found = host_state.kept(place, host)
    except host_state.NotSigned as error:
        pieces = dict(piece.split(": ", 1) for piece in str(error).split("; ", 2))
        say.finding(pieces["saw"], pieces["wanted"], pieces["do"])
    say.holds(found, f"no record of {host} in {place}", "what configure decided about it")
    machine = ask("cat /etc/machine-id")
    saw = f"{host} is machine {machine[:8]}, the record is of {found['machine'][:8]}"
    do = f"put /etc/machine-id back; or, of an instance that was replaced, {say.CONFIGURE}"
    say.holds(machine == found["machine"], saw, "the machine that was configured", do)
    return found


def serves(part: dict[str, Any], version: str, instance_type: str, name: str) -> None:
    """A finding when an image brought less than the hardware table asks for."""
    least = software(instance_type)[f"{name}_minimum"]
    if part["adopted"] and least:
        do = f"use an image with {name} {least} or later"
        say.holds(reaches(version, least), f"the image's {name} {version}", f"{least} or later for {instance_type}", do)
