"""lspci: the same counts from every form, names or numbers; devices fallen off the bus; links."""

import pytest

from tests.unit.parsers.hosttools import parse, read


def counts(facts):
    return tuple(facts.get(name, 0) for name in ("nvidia_gpus", "nvidia_bridges", "efa", "ena"))


@pytest.mark.parametrize("form", ["D-nn", "plain", "n", "vvv"])
def test_recorded_machine_has_none_of_them(form):
    facts = read("lspci", f"lspci/debian12-{form}.txt")
    assert counts(facts) == (0, 0, 0, 0)
    assert facts["devices"] == 6


def test_p5_by_ids():
    facts = read("lspci", "lspci/p5-D-nn.txt")
    assert counts(facts) == (8, 4, 32, 1)
    assert facts["gpu_addresses"][0] == "0000:4d:00.0"
    assert len(facts["efa_addresses"]) == 32
    assert facts["rev_ff"] == []


def test_p4d_by_an_old_database():
    facts = read("lspci", "lspci/p4d-plain.txt")
    assert counts(facts) == (8, 6, 4, 4)
    assert facts["gpu_addresses"][:2] == ["0000:10:1c.0", "0000:10:1d.0"]


def test_numbers_only():
    facts = read("lspci", "lspci/g5-n.txt")
    assert counts(facts) == (2, 0, 1, 1)
    assert facts["rev_ff"] == ["0000:00:1c.0"]


def test_verbose():
    facts = read("lspci", "lspci/g5-vvv.txt")
    assert counts(facts) == (2, 0, 1, 0)
    assert facts["links"] == {"0000:00:1b.0": {"speed_gt_s": 2.5, "width": 8, "width_max": 16}}
    assert facts["drivers"]["0000:00:1d.0"] == "efa"
    assert facts["rev_ff"] == ["0000:00:1c.0"]


def test_unknown_header_alone_counts_once():
    text = "53:00.0 3D controller: NVIDIA Corporation GH100 (rev a1)\n\t!!! Unknown header type 7f\n\tLatency: 0\n"
    assert parse("lspci", text)["rev_ff"] == ["0000:53:00.0"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("0008:01:00.0 3D controller [0302]: NVIDIA Corporation GB100 [GB200] [10de:2941] (rev a1)", (1, 0, 0, 0)),
        ("53:00.0 VGA compatible controller: NVIDIA Corporation GA102GL [A10G] (rev a1)", (1, 0, 0, 0)),
        ("53:00.0 Audio device [0403]: NVIDIA Corporation GA102 High Definition Audio [10de:1aef]", (0, 0, 0, 0)),
        ("53:00.0 PCI bridge [0604]: NVIDIA Corporation Device [10de:22b2]", (0, 0, 0, 0)),
        ("00:06.0 Ethernet controller [0200]: Amazon.com, Inc. Device [1d0f:efa3]", (0, 0, 1, 0)),
        ("00:06.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]", (0, 0, 0, 0)),
        ('00:06.0 "3D controller [0302]" "NVIDIA Corporation [10de]" "GH100 [10de:2330]" -ra1', (1, 0, 0, 0)),
        ("00:06.0 Ethernet controller [0200]: Amazon.com, Inc. ENA [1d0f:0ec2]", (0, 0, 0, 1)),
    ],
)
def test_one_device(line, wanted):
    assert counts(parse("lspci", line + "\n")) == wanted
