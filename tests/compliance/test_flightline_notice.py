"""Role flightline_notice."""

from .looking import say, units

UNIT = "flightline-notice.service"
PROGRAM = "/usr/local/bin/flightline-notice"


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Another signal or another unit, and training ends without a checkpoint."""
    as_the_role_writes_it()


def test_training_is_told(ask, strangers, wanted):
    """systemd is asked: a drop-in may run /bin/true instead, and nobody misses a signal before it is due."""
    say.needs(wanted["flightline_notice_enabled"], "the inventory wants no signal")
    unit = units.runs(ask, strangers, UNIT, units.OWN)
    options = [f"--{name}={wanted[f'flightline_notice_{name}']}" for name in ("unit", "signal")]
    for word in (PROGRAM, *options):
        units.starts(unit, word)
