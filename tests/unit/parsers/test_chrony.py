"""Clock synchronisation from five tools' outputs; signs, units and daemons that do not answer."""

import pytest

from tests.unit.parsers.hosttools import parse, read


def test_text_and_csv_agree():
    text, csv = read("chrony", "chrony/debian12-synchronised.txt"), read("chrony", "chrony/debian12-synchronised.csv")
    assert (text["leap"], text["stratum"], text["offset_s"]) == ("Normal", 11, 1.399e-06)
    assert {**csv, "root_dispersion_s": None} == {**text, "root_dispersion_s": None}  # read a moment apart


@pytest.mark.parametrize("form", ["txt", "csv"])
def test_unsynchronised(form):
    facts = read("chrony", f"chrony/debian12-unsynchronised.{form}")
    assert (facts["leap"], facts["stratum"]) == ("Not synchronised", 0)


def test_slow_is_negative():
    assert read("chrony", "chrony/ec2.txt")["offset_s"] == -0.000002317
    adrift = read("chrony", "chrony/ec2-adrift.txt")
    assert adrift["offset_s"] == -12.481902313
    assert (adrift["reference"], adrift["rms_offset_s"], adrift["root_delay_s"]) == (
        "A9FEA97B (169.254.169.123)",
        0.00000471,
        0.000412331,
    )


def test_no_daemon_keeps_the_text():
    assert read("chrony", "chrony/debian12-no-daemon.txt") == {"tool": "chronyc", "error": "506 Cannot talk to daemon"}
    bus = parse("chrony", "Failed to connect to bus: Host is down\n")
    assert bus == {"tool": "timedatectl", "error": "Failed to connect to bus: Host is down"}


def test_timesyncd():
    facts = read("chrony", "chrony/timesync.txt")
    assert (facts["leap"], facts["stratum"], facts["packet_count"]) == ("Normal", 3, 25)
    assert facts["offset_s"] == pytest.approx(-0.001234)  # the server is ahead: this clock is slow
    assert facts["root_delay_s"] == pytest.approx(0.000512)


def test_timesyncd_before_its_first_answer():
    facts = read("chrony", "chrony/timesync-waiting.txt")
    assert facts["packet_count"] == 0
    assert not {"leap", "stratum", "offset_s"} & set(facts)


@pytest.mark.parametrize(("span", "seconds"), [("-27us", 27e-6), ("+1min 2.5s", -62.5), ("0", 0.0), ("-1h 2min", 3720)])
def test_time_spans(span, seconds):
    assert parse("chrony", f"Leap: normal\nOffset: {span}\nPacket count: 3\n")["offset_s"] == pytest.approx(seconds)


def test_timedatectl():
    show = read("chrony", "chrony/timedatectl-show.txt")
    assert show == {"tool": "timedatectl", "leap": "Normal", "ntp_enabled": True}
    status = read("chrony", "chrony/timedatectl-status.txt")
    assert (status["leap"], status["ntp_enabled"]) == ("Not synchronised", False)
    bare = parse("chrony", "System clock synchronized: yes\n")
    assert bare == {"tool": "timedatectl", "leap": "Normal"}


SOURCES = """MS Name/IP address         Stratum Poll Reach LastRx Last sample
===============================================================================
^- 2600:1f18::1                  4  10   377   321   +221us[ +221us] +/-   19ms
"""


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("^* 169.254.169.123               3   4   377    11  -1234ns[-2345ns] +/-  301us", ("Normal", 4, -1.234e-6)),
        ("#* PHC0                          0   3   377     6  +3.2s[ +3.2s] +/-  301us", ("Normal", 1, 3.2)),
        ("^? 169.254.169.123               0   6     0     -     +0ns[   +0ns] +/-    0ns", ("Not synchronised",)),
        ("^+ 169.254.169.123               3   4   377    11  -1234ns[-2345ns] +/-  301us", ("Not synchronised",)),
    ],
)
def test_sources(row, wanted):
    facts = parse("chrony", f"{SOURCES}{row}\n")
    assert [facts[key] for key in ("leap", "stratum", "offset_s") if key in facts] == [
        pytest.approx(value) if isinstance(value, float) else value for value in wanted
    ]
    tracking = parse("chrony", f"Stratum : 5\nLeap status : Normal\n{SOURCES}{row}\n")
    assert tracking == {"tool": "chronyc", "leap": "Normal", "stratum": 5}
