"""fi_info: devices once each, endpoints, errors, short and verbose form."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import fi_info
from tests.harness import sample


def read(name):
    return fi_info.parse({"fi-info.txt": sample(f"fi_info/{name}")})


def test_two_fabrics_are_one_device():
    facts = read("p5-32-devices.txt")
    assert (len(facts["devices"]), facts["rdm_endpoints"], facts["error"]) == (32, 32, None)
    assert facts["devices"][0] == "rdmap79s27"
    assert facts["fabrics"] == ["efa-direct", "efa"]
    assert facts["provider_versions"] == ["201.0"]


def test_one_device_gone():
    blocks = sample("fi_info/p5-32-devices.txt").decode().split("provider: ")
    rest = "provider: ".join(block for block in blocks if "rdmap127s28" not in block)
    facts = fi_info.parse({"fi-info.txt": rest.encode()})
    assert (len(facts["devices"]), facts["rdm_endpoints"]) == (31, 31)
    assert "rdmap127s28" not in facts["devices"]


def test_layered_provider_is_not_an_efa_endpoint():
    facts = read("p3dn-old-all-types.txt")
    assert (facts["devices"], facts["rdm_endpoints"]) == (["efa_0"], 1)
    assert facts["other_providers"] == ["efa;ofi_rxd"]


def test_verbose():
    facts = read("verbose-2-devices.txt")
    assert (facts["devices"], facts["rdm_endpoints"]) == (["rdmap70s0", "rdmap71s0"], 2)
    assert (facts["fabrics"], facts["provider_versions"]) == (["efa", "efa-direct"], ["201.0"])


def test_no_endpoint():
    facts = read("none.txt")
    assert facts["error"] == "fi_getinfo: -61 (No data available)"
    assert (facts["devices"], facts["rdm_endpoints"]) == ([], 0)


def test_other_providers_only():
    facts = fi_info.parse(
        {"f": b"provider: tcp\n    fabric: 10.0.0.0/24\n    domain: eth0\n    version: 1.0\n    type: FI_EP_MSG\n"}
    )
    assert (facts["devices"], facts["rdm_endpoints"], facts["other_providers"]) == ([], 0, ["tcp"])


def test_labels_and_indentation_do_not_matter():
    text = sample("fi_info/p5-32-devices.txt").decode()
    bare = "".join("[1,1]<stdout>:" + line.strip() + "\n" for line in text.splitlines())
    assert fi_info.parse({"f": bare.encode()}) == read("p5-32-devices.txt")


def test_not_installed():
    with pytest.raises(ParseError, match="not installed"):
        fi_info.parse({"f": b"sh: 1: exec: fi_info: not found\n"})


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"\x00", b"hello\n", b"provider: efa\n    fabric: efa\n    domain: rdmap0s1-rdm\n"]
)
def test_nothing_or_cut_short(data):
    with pytest.raises(ParseError):
        fi_info.parse({"f": data})


def test_the_layered_name_of_libfabric_1_8_is_efa_and_the_datagram_layer_is_not():
    entry = (
        "provider: efa;ofi_{0}\n    fabric: EFA-fe80::1\n    domain: efa_0-{1}\n    version: 2.0\n    type: FI_EP_RDM\n"
    )
    assert fi_info.parse({"fi-info.txt": entry.format("rxr", "rdm").encode()})["rdm_endpoints"] == 1
    facts = fi_info.parse({"fi-info.txt": entry.format("rxd", "dgrm").encode()})
    assert (facts["rdm_endpoints"], facts["other_providers"]) == (0, ["efa;ofi_rxd"])


@pytest.mark.parametrize("label", ["0: ", " 3: ", "    [1,0]<stdout>:", "[default0]:", "    "])
def test_labels_of_launchers(label):
    text = sample("fi_info/p5-32-devices.txt").decode()
    labelled = "".join(label + line for line in text.splitlines(keepends=True))
    assert fi_info.parse({"fi-info.txt": labelled.encode()}) == fi_info.parse({"fi-info.txt": text.encode()})


def test_warnings_say_why_there_is_none():
    line = (
        "libfabric:77:1755745200::efa:ep_data:efa_device_construct_gid():47<warn> ibv_open_device failed! errno: {}\n"
    )
    text = "".join(line.format(number % 20) for number in range(200)) + "fi_getinfo: -61 (No data available)\n"
    facts = fi_info.parse({"fi-info.txt": text.encode()})
    assert facts["warnings"][:2] == ["ibv_open_device failed! errno: 0", "ibv_open_device failed! errno: 1"]
    assert len(facts["warnings"]) == fi_info.MOST_WARNINGS
    assert "warnings" not in fi_info.parse({"fi-info.txt": b"fi_getinfo: -61\n"})
