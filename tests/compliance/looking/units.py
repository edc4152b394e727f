"""Units as systemd runs them: the file it took, its drop-ins, whether it is masked, and whether it read the file's last version."""

from . import say
from .ask import Asked
from .strangers import Strangers

VENDOR = ("/lib/systemd/system/", "/usr/lib/systemd/system/")
OWN = ("/etc/systemd/system/",)


def effective(ask: Asked, strangers: Strangers, name: str, places: tuple[str, ...] = VENDOR) -> dict[str, str]:
    """The unit's properties; a finding when it is masked, shadowed, changed by somebody, or not read again after a change."""
    unit = ask.unit(name)
    state, path = unit.get("LoadState", ""), unit.get("FragmentPath", "")
    do = f"systemctl unmask {name}; {say.CONFIGURE}"
    say.holds(state == "loaded", f"{name} is {state or 'unknown'}", "a unit that systemd has loaded", do)
    do = f"remove {path} and systemctl daemon-reload"
    say.holds(path.startswith(places), f"{name} comes from {path}", f"a file in {places[0]}", do)
    strangers.none(f"drop-ins change {name}", unit.get("DropInPaths", "").split(), "only those of packages")
    do = "systemctl daemon-reload, and look what changed"
    say.same(f"{name} needs daemon-reload:", unit.get("NeedDaemonReload"), "no", do)
    return unit


def runs(ask: Asked, strangers: Strangers, name: str, places: tuple[str, ...] = VENDOR) -> dict[str, str]:
    """An effective unit that is active and will be at the next boot."""
    unit = effective(ask, strangers, name, places)
    say.same(f"{name} is", unit.get("ActiveState"), "active", f"journalctl -u {name} -b; {say.CONFIGURE}")
    moves(ask, unit, name)
    enabled(unit, name)
    return unit


def moves(ask: Asked, unit: dict[str, str], name: str) -> None:
    """A finding when the process of an active unit stands still, or runs a program whose file is another one by now."""
    say.holds(unit.get("FreezerState", "running") in ("running", ""), f"{name} is frozen", "running", say.CONFIGURE)
    pid = unit.get("MainPID", "0")
    state = ask(f"sed -n 's/^State:[[:space:]]*//p' /proc/{pid}/status 2>/dev/null || true")
    say.holds(
        state[:1] not in ("T", "t"), f"{name} is active and its process {state}", "a process that runs", say.CONFIGURE
    )
    program = ask(f"readlink /proc/{pid}/exe 2>/dev/null || true")
    say.holds(not program.endswith(" (deleted)"), f"{name} runs {program}", "the file that is there", say.CONFIGURE)


def enabled(unit: dict[str, str], name: str) -> None:
    """A finding unless systemd starts the unit at boot."""
    state = unit.get("UnitFileState")
    do = f"systemctl enable {name}"
    say.holds(state in ("enabled", "static", "alias", "generated", "indirect"), f"{name} is {state}", "enabled", do)


def starts(unit: dict[str, str], program: str, wanted: str = "") -> None:
    """A finding unless systemd would run the program: a drop-in may put another in its place."""
    seen = unit.get("ExecStart", "")
    say.holds(program in seen, f"systemd would run {seen or 'nothing'}", wanted or program)


def since_s(ask: Asked, unit: dict[str, str]) -> float:
    """When the unit's state last changed, in seconds since 1970."""
    now, up = ask("echo $(date +%s.%N) $(cut -d' ' -f1 /proc/uptime)").split()
    return float(now) - float(up) + int(unit.get("StateChangeTimestampMonotonic") or 0) / 1_000_000


def fresh(ask: Asked, name: str, *patterns: str) -> None:
    """A finding when the unit was last started or reloaded before one of its files was written."""
    since = since_s(ask, ask.unit(name))
    paths = ask.lines(f"ls -d {' '.join(patterns)} 2>/dev/null || true")
    late = [path for path, file in ask.files(*paths).items() if file["written_s"] > since + 1] if paths else []
    do = f"systemctl reload-or-restart {name}"
    say.none(f"{name} still runs with what it read before these were written", late, "a unit as young as its files", do)
