"""Is the clock synchronised, and close to the right time?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from ..context import Context

NOT_SYNCHRONISED = Reason("not_synchronised", "the clock is not synchronised", Remedy.FIX_CONFIG)
UNSYNCHRONISED_STRATUM = Reason("bad_stratum", "the time server's stratum is out of bounds", Remedy.FIX_CONFIG)
NO_LEAP = Reason("no_leap", "the time daemon prints no leap status")
DAEMON_SILENT = Reason("daemon_silent", "the time daemon does not answer", Remedy.FIX_CONFIG)
STATE_UNREAD = Reason("state_unread", "the clock's state could not be read")
NO_DAEMON = Reason("no_daemon", "no time daemon runs", Remedy.FIX_CONFIG)
OFFSET_NOT_PRINTED = Reason("offset_not_printed", "by how much the clock is off was not printed")
OFF = Reason("off", "the clock is off", Remedy.FIX_CONFIG)
LOCAL_MODE = Reason("local_mode", "the clock follows itself and no time server", Remedy.FIX_CONFIG)
DISPERSION = Reason("dispersion", "the clock may be off: its source is silent")

MAX_STRATUM = 15
LOCAL_REFERENCE = "7F7F01"
MAX_DISPERSION_S = 1.0
"""RFC 5905, MAXDIST. chrony lets the dispersion grow with every second without an answer; leap stays Normal."""
_DAEMONS = ("chronyd", "chrony", "systemd-timesyncd", "ntp", "ntpd", "ntpsec", "ptp4l", "phc2sys", "timebeat")


def evaluate(context: Context) -> Iterator[Finding]:
    """Synchronised at all, then the offset; without an offset, that a time daemon runs."""
    facts = context.facts("chrony")
    if facts.get("error"):
        yield _no_answer(context, facts)
        return
    leap, stratum = facts.get("leap"), facts.get("stratum")
    if facts.get("packet_count") == 0 or str(leap).lower().startswith("not sync"):
        rest = {"measured": leap or "no answer yet", "expected": "Normal"}
        yield context.fail(NOT_SYNCHRONISED, "the clock is not synchronised", **rest)
    elif stratum is not None and not 0 < stratum <= MAX_STRATUM:
        message = f"the clock has no source: stratum {stratum}"
        yield context.fail(UNSYNCHRONISED_STRATUM, message, measured=stratum, expected=f"1 to {MAX_STRATUM}")
    elif leap is None:
        yield context.unknown(NO_LEAP, "the time daemon prints no leap status")
    elif facts.get("offset_s") is None:
        yield _without_offset(context)
    else:
        yield _offset(context, facts["offset_s"], facts)


def _no_answer(context: Context, facts: Facts) -> Finding:
    text = facts["error"]
    if facts.get("tool") == "chronyc":
        rest = {"measured": text, "expected": "an answer", "evidence": [text]}
        return context.fail(DAEMON_SILENT, f"the time daemon does not answer: {text}", **rest)
    return context.unknown(STATE_UNREAD, f"the clock's state could not be read: {text}", evidence=[text])


def _without_offset(context: Context) -> Finding:
    """The kernel's flag stays "synchronised" for hours after a daemon stopped: it is no proof alone."""
    units = (context.optional("services") or {}).get("units", {})
    states = [units.get(f"{name}.service", {}).get("active") for name in _DAEMONS]
    if units and "active" not in states:
        return context.fail(NO_DAEMON, "no time daemon runs on this node", measured=0, expected="1 or more")
    return context.warn(
        OFFSET_NOT_PRINTED, "the kernel says synchronised; by how much the clock is off was not printed"
    )


def _offset(context: Context, offset_s: float, facts: Facts) -> Finding:
    context.measure("clock_offset_s", offset_s, "s")
    warn_s, fail_s = context.threshold("warn_s"), context.threshold("fail_s")
    away, way = abs(offset_s), "fast" if offset_s > 0 else "slow"
    rest = {"measured": offset_s, "unit": "s"}
    if away >= fail_s:
        message = f"the clock is {away:.6g} s {way}, wanted under {fail_s:g} s"
        return context.fail(OFF, message, expected=fail_s, **rest)
    if away >= warn_s:
        message = f"the clock is {away:.6g} s {way}, wanted under {warn_s:g} s"
        return context.warn(OFF, message, remedy=Remedy.INVESTIGATE, expected=warn_s, **rest)
    if str(facts.get("reference", "")).startswith(LOCAL_REFERENCE):
        return context.warn(LOCAL_MODE, "the clock follows itself (chrony's local mode), no time server", **rest)
    spread = facts.get("root_dispersion_s") or 0.0
    if spread >= MAX_DISPERSION_S:
        message = f"the clock may be off by {spread:.3g} s, wanted under {MAX_DISPERSION_S:g} s: its source is silent"
        return context.warn(DISPERSION, message, **{**rest, "measured": spread, "expected": MAX_DISPERSION_S})
    return context.ok(f"synchronised, {away:.6g} s {way}, stratum {facts.get('stratum', '?')}", expected=warn_s, **rest)


CHECK = Check(
    id="clock_sync",
    order=630,
    title="Clock synchronisation",
    what="That the time daemon has a source, and how far the clock is from it.",
    why="Signed AWS calls, tokens and munge fail on a wrong clock, and logs of ranks cannot be put in order.",
    remedy="Point chrony at 169.254.169.123, restart it, and step the clock once (chronyc makestep).",
    out_of_service="Yes: with a clock that is off, signed requests are refused and no two logs can be compared.",
    source="chronyc(1) tracking; Amazon Time Sync Service documentation (well under 1 ms is normal)",
    needs=("chrony",),
    wants=("services",),
    tags=("host", "clock"),
    thresholds=(
        Threshold(
            "warn_s",
            0.05,
            "s",
            "offset that is worth a warning",
            "Prometheus node-exporter mixin, NodeClockSkewDetected",
            0,
        ),
        Threshold(
            "fail_s",
            0.128,
            "s",
            "offset that blocks the node",
            "RFC 5905 step threshold (STEPT): beyond it a clock is wrong, not drifting",
            0,
        ),
    ),
    evaluate=evaluate,
)
