"""nvidia_smi_topo: every column layout, lost links, cut off and foreign input."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import nvidia_smi_topo
from tests.harness import sample

EIGHT = [f"GPU{index}" for index in range(8)]


def parse(data):
    return nvidia_smi_topo.parse({"nvidia-smi-topo.txt": data if isinstance(data, bytes) else data.encode()})


def facts(name):
    return parse(sample(f"nvidia_smi_topo/{name}"))


def test_eight_gpus_with_nics_and_legend():
    found = facts("p5-8gpu-nics.txt")
    assert found["gpus"] == EIGHT
    assert found["nics"] == [f"NIC{index}" for index in range(8)]
    assert found["nic_legend"]["NIC0"] == "rdmap79s0" and len(found["nic_legend"]) == 8
    assert found["gpu_pair_links"] == {"NV18": 28}
    assert found["cpu_affinity"]["GPU0"] == "0-47,96-143" and found["cpu_affinity"]["GPU7"] == "48-95,144-191"
    assert found["numa_affinity"] == {name: "0" if index < 4 else "1" for index, name in enumerate(EIGHT)}
    assert found["gpu_numa_id"] == dict.fromkeys(EIGHT)
    assert found["errors"] == [] and "asymmetric" not in found


def test_a_pair_without_nvlink():
    found = facts("p5-lost-nvlink.txt")
    assert found["gpu_pair_links"] == {"NV18": 27, "SYS": 1}
    assert [pair for pair in found["pairs"] if pair["link"] == "SYS"] == [{"a": "GPU2", "b": "GPU5", "link": "SYS"}]
    assert found["nics"] == [] and found["nic_legend"] == {}


def test_old_layout_names_the_nics_in_the_header():
    found = facts("p4d-450-mlx.txt")
    assert found["nics"] == ["mlx5_0", "mlx5_1"]
    assert found["gpu_pair_links"] == {"NV12": 28}
    assert found["cpu_affinity"]["GPU4"] == "24-47,72-95" and found["numa_affinity"]["GPU4"] == "1"
    assert "gpu_numa_id" not in found


def test_cube_mesh_of_v100():
    found = facts("v100-cube-mesh.txt")
    assert found["gpu_pair_links"] == {"NV1": 8, "NV2": 8, "SYS": 12}
    assert "numa_affinity" not in found and found["cpu_affinity"]["GPU0"] == "0-23,48-71"


def test_single_gpu():
    found = facts("single-gpu.txt")
    assert (found["gpus"], found["gpu_pair_links"], found["pairs"]) == (["GPU0"], {}, [])
    assert found["cpu_affinity"] == {"GPU0": "0-7"} and found["numa_affinity"] == {"GPU0": None}


def test_spaces_empty_cells_and_an_asymmetric_pair():
    found = facts("two-gpus-spaces.txt")
    assert found["gpu_pair_links"] == {"NODE": 1}  # the longer of PHB and NODE
    assert found["asymmetric"] == [{"a": "GPU0", "b": "GPU1", "link": "PHB", "reverse": "NODE"}]
    assert found["cpu_affinity"] == {"GPU0": "0-31", "GPU1": "0-31"}
    assert found["numa_affinity"] == {} and found["gpu_numa_id"] == {"GPU0": None, "GPU1": None}


def test_fewer_bonded_links_one_way_count():
    found = parse("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-3\nGPU1\tNV17\t X \t0-3\n")
    assert found["gpu_pair_links"] == {"NV17": 1}


def test_cells_run_together_in_a_pasted_copy():
    found = parse(
        "     GPU0  GPU1  NIC0  NIC1  NIC2  CPU Affinity  NUMA Affinity\n"
        "GPU0  X  NV18  PIX  NODENODE  0-55  0\nGPU1  NV18  X  SYS  SYSSYS  0-55  0\n"
    )
    assert found["cpu_affinity"] == {"GPU0": "0-55", "GPU1": "0-55"}
    assert found["numa_affinity"] == {"GPU0": "0", "GPU1": "0"}


@pytest.mark.parametrize("escape", ["\x1b", ""])
def test_underline_of_the_header_with_and_without_its_escape_character(escape):
    """A web page drops the escape character and keeps the rest of the code."""
    found = parse(f"\t{escape}[4mGPU0\tGPU1\tNUMA Affinity{escape}[0m\nGPU0\t X \tNV18\t0\nGPU1\tNV18\t X \t1\n")
    assert found["gpus"] == ["GPU0", "GPU1"] and found["gpu_pair_links"] == {"NV18": 1}
    assert found["numa_affinity"] == {"GPU0": "0", "GPU1": "1"}


def test_headings_run_together_in_a_pasted_copy():
    found = parse(
        "     GPU0  GPU1  NIC9  NIC10   NIC11NIC12    CPU Affinity  NUMA Affinity\n"
        "GPU0  X  NV18  SYS  NODE  PIX  NODE     0-15  0\nGPU1  NV18  X  SYS  PIX  NODE NODE   16-31  1\n"
    )
    assert found["nics"] == ["NIC9", "NIC10", "NIC11", "NIC12"]
    assert found["cpu_affinity"] == {"GPU0": "0-15", "GPU1": "16-31"}
    assert found["numa_affinity"] == {"GPU0": "0", "GPU1": "1"}


def test_message_in_place_of_the_matrix():
    found = parse("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n")
    assert found["gpus"] == [] and found["gpu_pair_links"] == {}
    assert found["errors"] == [
        "Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.161"
    ]


@pytest.mark.parametrize("name", ["p5-8gpu-nics.txt", "p5-lost-nvlink.txt", "p4d-450-mlx.txt", "v100-cube-mesh.txt"])
def test_cut_off(name):
    whole = sample(f"nvidia_smi_topo/{name}")
    last = whole.index(b"\nGPU7") + 4
    for cut in range(0, last, 37):
        with pytest.raises(ParseError):
            parse(whole[:cut])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "\x00\x01",
        "GPU0\n",
        "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\n",
        "\tGPU0\tGPU1\nGPU0\tNV18\tX\nGPU1\tX\tNV18\n",
        "\tGPU0\tGPU0\nGPU0\tX\tX\n",
        "\t" + "\t".join(f"GPU{index}" for index in range(300)) + "\n",
    ],
)
def test_not_a_matrix(text):
    with pytest.raises(ParseError):
        parse(text)


def test_a_digit_that_is_no_number_is_a_word_like_any_other():
    found = parse("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\u00b2\t0-3\nGPU1\tNV18\t X \t0-3\n")
    assert found["gpu_pair_links"] == {"NV1\u00b2": 1}


def test_the_pcie_matrix_leaves_nvlink_out_of_its_legend():
    text = sample("nvidia_smi_topo/p5-8gpu-nics.txt").decode()
    legend = next(line for line in text.splitlines(True) if line.strip().startswith("NV#"))
    assert "pcie_only" not in parse(text.encode())
    assert "pcie_only" not in parse(text.replace(legend, "").encode())  # a copy without its last line
    assert parse(text.replace(legend, "").replace("NV18", "NODE").encode())["pcie_only"] is True
