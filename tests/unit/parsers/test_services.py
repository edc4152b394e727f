"""systemctl: JSON, table and show blocks; a plain mapping."""

import pytest

from tests.unit.parsers.hosttools import parse, read

FABRIC = "nvidia-fabricmanager.service"


def test_json():
    units = read("services", "systemctl/p5.json")["units"]
    assert units[FABRIC] == {"load": "loaded", "active": "active", "sub": "running"}
    assert units["apport.service"]["load"] == "not-found"


def test_table_with_marks():
    units = read("services", "systemctl/table.txt")["units"]
    assert sorted(units) == ["apport.service", "chronyd.service", FABRIC, "xrdp.service"]
    assert units[FABRIC]["active"] == "failed"


def test_show_blocks():
    units = read("services", "systemctl/show.txt")["units"]
    assert units[FABRIC] == {"load": "loaded", "active": "activating", "sub": "auto-restart"}
    assert units["chronyd.service"]["sub"] == "running"
    text = "Description=of no unit\n\nId=chronyd.service\nDescription=NTP\nActiveState=active\n"
    assert parse("services", text)["units"] == {"chronyd.service": {"active": "active"}}


def test_plain_mapping():
    text = '{"nvidia-fabricmanager": "active", "slurmd.service": {"active": "failed", "sub": "failed"}}'
    units = parse("services", text)["units"]
    assert units == {FABRIC: {"active": "active"}, "slurmd.service": {"active": "failed", "sub": "failed"}}


@pytest.mark.parametrize("head", ["sudo: unable to resolve host gpu-7\n", "[root@gpu-7 ~]# systemctl list-units\n"])
def test_lines_above_the_units(head):
    state = {"load": "loaded", "active": "failed", "sub": "failed"}
    row = ", ".join(f'"{key}": "{value}"' for key, value in {"unit": FABRIC, **state}.items())
    assert parse("services", head + "[{" + row + "}]\n")["units"] == {FABRIC: state}
    assert parse("services", head + FABRIC + " loaded failed failed Fabric manager\n")["units"] == {FABRIC: state}
