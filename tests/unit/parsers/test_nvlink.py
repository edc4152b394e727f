"""nvlink: links and counters of every generation, messages, one file missing or broken."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import nvlink
from tests.harness import sample


def parse(status=None, errors=None):
    files = {"nvlink-status.txt": status, "nvlink-errors.txt": errors}
    return nvlink.parse({name: data.encode() for name, data in files.items() if data is not None})


def read(name):
    return sample(f"nvlink/{name}").decode()


def test_hopper():
    found = parse(read("h100-status.txt"), read("h100-errors.txt"))
    first, second = found["gpus"]
    assert found["errors"] == []
    assert (first["index"], first["name"]) == (0, "NVIDIA H100 80GB HBM3")
    assert first["uuid"] == "GPU-00000000-0000-4000-8000-000000000000"
    assert (first["links"], first["inactive"], first["speed_gb_s"]) == (18, 0, 26.562)
    assert first["link_speeds"] == [26.562] * 18
    assert first["errors"] == {"replay_errors": 0, "recovery_errors": 0, "crc_errors": 0}
    assert first["errors_by_link"] == {}
    assert second["errors"] == {"replay_errors": 7, "recovery_errors": 4, "crc_errors": 0}
    assert second["errors_by_link"] == {"3": {"replay_errors": 7, "recovery_errors": 2}, "4": {"recovery_errors": 2}}


def test_a_message_about_a_gpu_that_is_not_listed_is_not_of_the_one_before():
    lost = "Unable to determine the device handle for GPU1: 0000:64:00.0: GPU is lost.  Reboot the system"
    found = parse(f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n{lost}\n")
    assert found["errors"] == [lost] and "message" not in found["gpus"][0]


def test_the_files_that_were_there():
    both = ["nvlink-errors.txt", "nvlink-status.txt"]
    assert parse(read("h100-status.txt"), read("h100-errors.txt"))["files"] == both
    assert parse(read("h100-status.txt"))["files"] == both[1:]


def test_inactive_and_slow_links():
    first, second = parse(read("h100-status-degraded.txt"))["gpus"]
    assert (first["links"], first["speed_gb_s"], min(first["link_speeds"])) == (18, 26.562, 13.281)
    assert (second["links"], second["inactive"]) == (16, 2)
    assert "errors" not in first and "errors_by_link" not in first


def test_half_the_links_slow_is_not_hidden():
    found = parse("GPU 0: H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 13.281 GB/s\n")
    assert found["gpus"][0]["speed_gb_s"] == 13.281


def test_blackwell_counters():
    first, second = parse(read("b200-status.txt"), read("b200-errors.txt"))["gpus"]
    assert (first["links"], first["speed_gb_s"]) == (18, 53.125)
    assert "replay_errors" not in first["errors"]
    for name in ("malformed_packet_errors", "link_recovery_failed_events", "symbol_errors", "effective_errors"):
        assert first["errors"][name] == 0
    assert first["errors"]["fec_errors_0"] == 3 * 36140749276 and first["errors"]["fec_errors_15"] == 0
    assert first["errors"]["plr_xmit_blocks"] is None
    assert first["errors"]["effective_ber"] == 15e-255
    assert first["errors"]["raw_ber_lane_0"] == 2061  # a rate: the worst link, not the sum
    assert "effective_ber" not in first["errors_by_link"]["0"]
    assert second["errors"]["rx_errors"] == 5 and second["errors"]["link_recovery_failed_events"] == 2
    assert second["errors"]["effective_ber"] == 3e-9
    assert second["errors_by_link"]["2"]["link_recovery_failed_events"] == 2


def test_counters_of_driver_470_have_the_value_first():
    # After the format strings of nvidia-smi 470: "Link %u: %llu replay errors".
    words = ("replay errors", "recovery errors", "flit CRC errors", "data CRC errors")
    counts = {0: (0, 0, 0, 0), 1: (7, 2, 5, 0)}
    lines = [f"\t Link {link}: {count} {word}\n" for link in counts for count, word in zip(counts[link], words)]
    text = "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-1)\n" + "".join(lines)
    [gpu] = parse(errors=text)["gpus"]
    assert gpu["errors"] == {"replay_errors": 7, "recovery_errors": 2, "flit_crc_errors": 5, "data_crc_errors": 0}
    assert gpu["errors_by_link"] == {"1": {"replay_errors": 7, "recovery_errors": 2, "flit_crc_errors": 5}}
    with pytest.raises(ParseError, match="another option"):
        parse(text)


def test_a_link_that_is_down_among_the_counters():
    # After the format strings of nvidia-smi 535 to 555.
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n"
    [gpu] = parse(errors=text + "NVML: Unable to retrieve NVLink errors for link 1 - inActive\n")["gpus"]
    assert gpu["errors"] == {"replay_errors": 0}
    assert gpu["errors_inactive"] == ["NVML: Unable to retrieve NVLink errors for link 1 - inActive"]
    assert "errors_inactive" not in parse(errors=text)["gpus"][0]


def test_no_nvlink_devices_is_an_answer():
    found = parse("No NVLink devices found.\n", "No NVLink devices found.\n")
    assert (found["gpus"], found["errors"]) == ([], ["No NVLink devices found."])


def test_volta():
    [gpu] = parse(read("v100-status.txt"))["gpus"]
    assert (gpu["name"], gpu["links"], gpu["speed_gb_s"]) == ("Tesla V100-SXM2-32GB", 6, 25.781)


def test_all_links_inactive():
    found = parse(read("all-inactive-status.txt"))
    assert [(gpu["links"], gpu["inactive"]) for gpu in found["gpus"]] == [(0, 0), (0, 0)]
    for gpu in found["gpus"]:
        assert "all links are inActive" in gpu["message"]
        assert "speed_gb_s" not in gpu and "supported" not in gpu
    assert found["gpus"][1]["name"] == "NVIDIA H100 80GB HBM3"
    assert found["errors"] == ["NVML: Unable to retrieve NVLink information as all links are inActive"]


def test_no_nvlink_is_not_an_error():
    found = parse(read("unsupported-status.txt"))
    assert found["errors"] == []
    assert [gpu["links"] for gpu in found["gpus"]] == [0, 0]
    assert found["gpus"][1]["supported"] is False


@pytest.mark.parametrize("word", ["<inactive>", "inactive", "Inactive", "Down", "<disabled>"])
def test_words_for_inactive(word):
    [gpu] = parse(f"GPU 0: A100 (UUID: GPU-1)\n\t Link 0: {word}\n")["gpus"]
    assert (gpu["links"], gpu["inactive"]) == (0, 1)


def test_an_unknown_state_counts_as_neither():
    [gpu] = parse("GPU 0: A100 (UUID: GPU-1)\n\t Link 0: Active\n\t Link 1: 25 GB/s\n")["gpus"]
    assert (gpu["links"], gpu["inactive"], gpu["other_links"]) == (1, 0, {"0": "Active"})


def test_error_texts_and_not_available():
    found = parse(
        errors="GPU 0: H100 (UUID: GPU-1)\n"
        "\t Link 0: CRC Errors: 3\n\t Link 0: Replay Errors: N/A\n"
        "\t Link 1: CRC Errors: Unknown Error\n\t Link 1: Replay Errors: N/A\n"
    )
    assert found["gpus"][0]["errors"] == {"crc_errors": "Unknown Error", "replay_errors": None}
    assert "links" not in found["gpus"][0]


def test_message_in_place_of_the_output():
    found = parse(read("driver-mismatch.txt"), read("driver-mismatch.txt"))
    assert found["gpus"] == []
    assert found["errors"] == [
        "Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.161"
    ]


def test_one_file_broken_leaves_the_other():
    found = parse(read("h100-status.txt"), "garbage")
    assert found["gpus"][0]["links"] == 18 and "errors" not in found["gpus"][0]
    assert found["errors"] == ["nvlink-errors.txt: no GPU and no message of the tool"]


@pytest.mark.parametrize("text", ["", "\n", "garbage", "\x00", "GPU 0: H100 (UUID: GPU-1)\n" * 2 + "x\n" * 200_000])
def test_unreadable(text):
    with pytest.raises(ParseError):
        parse(text, text)


def test_cut_off_within_a_line():
    whole = read("h100-status.txt")
    for cut in (-2, -4, -9, -14, -18):
        with pytest.raises(ParseError, match="cut off"):
            parse(whole[:cut])
    assert parse(whole[:-1])["gpus"][1]["links"] == 18  # only the line end was lost


def test_a_number_that_is_none():
    found = parse(errors="GPU 0: x\n\t Link 0: CRC Errors: " + "9" * 5000 + "\n")
    assert found["gpus"][0]["errors"]["crc_errors"] == "9" * 80


@pytest.mark.parametrize(
    "line",
    ["Link 0: Remote Device 00000000:C4:00.0: Link 2", "Link 0, P2P is supported: true", "Link 0: CRC Errors: 0"],
)
def test_the_output_of_another_option_is_no_status(line):
    text = f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n\t {line}\n"
    with pytest.raises(ParseError, match="another option"):
        nvlink.parse({"nvlink-status.txt": text.encode()})
    found = nvlink.parse({"nvlink-status.txt": (text + "\t Link 1: 25 GB/s\n").encode()})
    assert found["gpus"][0]["links"] == 1
