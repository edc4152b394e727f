"""Role flightline_notice."""

import pytest

from .looking import installed, say, units

UNIT = "flightline-notice.service"
PROGRAM = "/usr/local/bin/flightline-notice"


@pytest.mark.parametrize("entry", installed.of("flightline_notice"), ids=str)
def test_file_is_as_the_role_writes_it(entry, as_the_role_writes_it):
    """Another signal or another unit, and training ends without a checkpoint."""
    as_the_role_writes_it(entry)


def test_training_is_told(ask, strangers, wanted):
    """systemd is asked: a drop-in may run /bin/true instead, and nobody misses a signal before it is due."""
    if not wanted["flightline_notice_enabled"]:
        pytest.skip("the inventory wants no signal")
    unit = units.runs(ask, strangers, UNIT, units.OWN)
    seen = unit.get("ExecStart", "")
    for word in (
        PROGRAM,
        f"--unit={wanted['flightline_notice_unit']}",
        f"--signal={wanted['flightline_notice_signal']}",
    ):
        say.holds(word in seen, f"systemd would run {seen or 'nothing'}", word)
