"""nvidia_smi: every driver generation in both forms, faults, messages, hostile and broken input."""

import re
import time
from pathlib import Path

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import nvidia_smi
from tests.harness import sample, samples

BOTH_FORMS = ("v100-450", "a100-535-mig", "h100-550-faulty", "b200-580", "h200-610")
FULL_XML = [Path(path).name for path in samples("nvidia_smi/*.xml*") if len(sample(path)) > 2000]


def raw(name):
    return sample(f"nvidia_smi/{name}")


def parse(data):
    return nvidia_smi.parse({"nvidia-smi.xml": data if isinstance(data, bytes) else data.encode()})


def facts(name):
    return parse(raw(name))


def gpu(body, attributes='id="00000000:53:00.0"'):
    document = f"<nvidia_smi_log><driver_version>580.1</driver_version><gpu {attributes}>{body}</gpu></nvidia_smi_log>"
    return parse(document)["gpus"][0]


@pytest.mark.parametrize("stem", BOTH_FORMS)
def test_xml_and_text_of_one_machine_give_the_same_facts(stem):
    assert facts(f"{stem}.xml") == nvidia_smi.parse({"nvidia-smi.txt": raw(f"{stem}.txt")})


@pytest.mark.parametrize(
    ("name", "driver", "cuda", "gpus"),
    [
        ("v100-450.xml", "450.191.01", "11.0", 2),
        ("t4-515.xml", "515.105.01", "11.7", 1),
        ("a100-535-mig.xml", "535.161.08", "12.2", 1),
        ("h100-550-faulty.xml", "550.127.05", "12.4", 2),
        ("h200-570-recovery.xml", "570.124.06", "12.8", 1),
        ("b200-580.xml", "580.105.08", "13.0", 2),
        ("rtxpro6000-590.xml", "590.44.01", "13.1", 1),
        ("h200-610.xml", "610.43.02", "13.3", 1),
        ("h200-610.txt", "610.43.02", "13.3", 1),
    ],
)
def test_every_generation(name, driver, cuda, gpus):
    found = facts(name)
    assert (found["driver_version"], found["cuda_version"], found["attached_gpus"]) == (driver, cuda, gpus)
    assert [item["index"] for item in found["gpus"]] == list(range(gpus))
    assert found["errors"] == [] and found["warnings"] == []
    for item in found["gpus"]:
        assert item["uuid"].startswith("GPU-") and isinstance(item["memory_total_mib"], int)
        assert isinstance(item["temperature_c"], int) and isinstance(item["power"]["limit_w"], float)
        assert isinstance(item["pcie"]["width"], int) and isinstance(item["throttle_active"], list)


def test_old_layout():
    bad = facts("v100-450.xml")["gpus"][1]
    # A printed total is not added to its parts: 2 + 1 on two locations, total 3.
    assert (bad["ecc_uncorrected_volatile"], bad["ecc_uncorrected_aggregate"]) == (3, 5)
    assert (bad["ecc_corrected_volatile"], bad["ecc_corrected_aggregate"]) == (0, 6)
    assert bad["ecc"]["volatile"] == {
        "dram_uncorrectable": 2,
        "dram_correctable": 0,
        "double_bit_total": 3,
        "single_bit_total": 0,
    }
    assert bad["retired_pages"] == {"single_bit": 2, "double_bit": 4, "pending": True}
    assert bad["remap"] is None
    assert bad["throttle_active"] == ["applications_clocks_setting", "sync_boost"]
    assert (bad["ecc_mode"], bad["ecc_mode_pending"]) == ("Enabled", "Disabled")
    assert bad["temperature_shutdown_c"] == 90 and "temperature_tlimit_c" not in bad
    assert bad["power"] == {
        "draw_w": 43.1,
        "limit_w": 300.0,
        "default_limit_w": 300.0,
        "min_limit_w": 150.0,
        "max_limit_w": 300.0,
    }
    for absent in ("recovery_action", "reset_required", "gsp_firmware_version", "fabric_state", "memory_reserved_mib"):
        assert absent not in bad


def test_faulty_h100():
    good, bad = facts("h100-550-faulty.xml")["gpus"]
    assert good["remap"] == {
        "corrected": 0,
        "uncorrected": 0,
        "pending": False,
        "failure": False,
        "histogram": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
    }
    assert good["retired_pages"] == {"single_bit": None, "double_bit": None, "pending": None}
    assert bad["remap"]["pending"] is True and bad["remap"]["failure"] is True
    assert (bad["remap"]["uncorrected"], bad["remap"]["histogram"]["none"]) == (5, 1)
    # SRAM parity 1 + SEC-DED 2 + DRAM 3; SRAM 4 + DRAM 7.
    assert (bad["ecc_uncorrected_volatile"], bad["ecc_corrected_volatile"]) == (6, 11)
    assert (bad["ecc_uncorrected_aggregate"], bad["ecc_corrected_aggregate"]) == (11, 94)
    assert bad["sram_threshold_exceeded"] is True
    assert bad["throttle_active"] == ["sw_power_cap", "hw_slowdown", "hw_thermal_slowdown"]
    assert (bad["temperature_c"], bad["temperature_tlimit_c"], bad["temperature_shutdown_tlimit_c"]) == (86, -1, -8)
    assert (bad["reset_required"], bad["drain_and_reset_recommended"]) == (True, True)
    assert bad["pcie"] == {
        "gen": 3,
        "gen_max": 5,
        "gen_device_max": 5,
        "gen_host_max": None,
        "width": 8,
        "width_max": 16,
        "replays": 12,
        "replay_rollovers": 0,
    }
    assert (bad["fabric_state"], bad["fabric_status"], bad["fabric_clique_id"]) == ("Completed", "Success", 0)
    assert bad["persistence_mode"] == "Disabled" and bad["gsp_firmware_version"] == "550.127.05"


def test_recovery_action_beside_deprecated_reset_status():
    found = facts("h200-570-recovery.xml")["gpus"][0]
    assert found["recovery_action"] == "Drain and Reset"
    assert found["reset_required"] is None and found["drain_and_reset_recommended"] is None
    assert (found["index"], found["minor_number"]) == (0, 3)
    assert found["fabric_state"] == "In Progress"


def test_blackwell():
    found = facts("b200-580.xml")["gpus"][0]
    assert found["recovery_action"] == "None"
    assert found["channel_repair_pending"] is False and found["tpc_repair_pending"] is False
    assert found["fabric_health"]["summary"] == "Healthy"
    assert found["fabric_health"]["bandwidth"] is None
    # Not the module's 1111 W and 2222 W.
    assert (found["power"]["draw_w"], found["power"]["limit_w"]) == (195.68, 1000.0)
    assert found["clocks"] == {"graphics_mhz": 120, "sm_mhz": 120, "memory_mhz": 3996}
    assert found["clocks_max"]["memory_mhz"] == 3996


def test_driver_610_nests_power_limits_and_adds_fields():
    found = facts("h200-610.xml")["gpus"][0]
    assert (found["power"]["limit_w"], found["power"]["default_limit_w"]) == (700.0, 700.0)
    assert found["remap"]["corrected_inactive"] == 0 and found["remap"]["uncorrected_inactive"] == 0
    assert found["unrepairable_memory"] is False
    text = facts("h200-610.txt")["gpus"][0]
    assert text["temperature_memory_max_operating_tlimit_c"] == 0  # the name that reaches its colon


def test_only_the_new_version_names():
    found = parse(
        "<nvidia_smi_log><kmd_version>620.1</kmd_version><cuda_umd_version>14.0</cuda_umd_version></nvidia_smi_log>"
    )
    assert (found["driver_version"], found["cuda_version"]) == ("620.1", "14.0")


def test_mig():
    found = facts("a100-535-mig.xml")["gpus"][0]
    assert (found["mig_mode"], found["mig_devices"]) == ("Enabled", 3)
    # The instances have memory and counters of their own, which are not the GPU's.
    assert found["memory_total_mib"] == 40960
    assert found["remap"] is None
    assert found["processes"] == [{"pid": 4711, "type": "C", "name": "/usr/bin/python3", "used_mib": 19456}]


@pytest.mark.parametrize("form", ["xml", "txt"])
def test_mig_errors_are_counted_per_instance_where_the_gpu_itself_prints_na(form):
    text = raw(f"a100-535-mig.{form}").decode()

    def volatile(changed):
        return nvidia_smi.parse({f"nvidia-smi.{form}": changed.encode()})["gpus"][0]["ecc_uncorrected_volatile"]

    count = "<sram_uncorrectable>{}<" if form == "xml" else "                SRAM Uncorrectable        : {}\n"
    assert volatile(text) == 0
    assert volatile(text.replace(count.format(0), count.format(2), 2)) == 4
    start = text.rindex("<volatile>" if form == "xml" else "        Volatile\n")
    end = text.index("ggregate", start)
    hidden = text[:start] + text[start:end].replace("0", "N/A") + text[end:]
    assert hidden != text and volatile(hidden) == 0
    assert volatile(hidden.replace(count.format(0), count.format("N/A"))) is None


def test_of_several_documents_the_worst_of_each_gpu_counts():
    good = raw("h200-610.xml")
    bad = good.replace(b"<remapped_row_pending>No", b"<remapped_row_pending>Yes", 1)
    lost = good.replace(b"<pending_ecc>Enabled", b"<pending_ecc>GPU is lost", 1)
    assert good not in (bad, lost)
    for document in (bad + good, good + bad, good + bad + good[:3000]):
        found = parse(document)
        assert found["gpus"][0]["remap"]["pending"] is True
        assert len(found["gpus"]) == len(parse(good)["gpus"])
    assert parse(good + lost + good)["gpus"][0]["ecc_mode_pending"] == "GPU is lost"
    assert parse(good + good) == parse(good)


def test_an_end_without_a_beginning_is_no_document():
    good = raw("h200-610.xml")
    for document in (good + b"</nvidia_smi_log>" + good, good + good + b"</nvidia_smi_log>"):
        assert parse(document)["gpus"] == parse(good)["gpus"]


def test_a_document_for_each_gpu_makes_a_whole_node():
    """nvidia-smi -q -x -i N prints all attached GPUs' number and one GPU."""
    text = raw("h200-610.xml").decode()
    other = re.sub(r"00000000:[0-9A-F]{2}:00.0", "00000000:99:00.0", text)
    other = re.sub(r"<uuid>[^<]*", "<uuid>GPU-9", other)
    one, two = (re.sub(r"<attached_gpus>\d+", "<attached_gpus>2", each) for each in (text, other))
    found = parse((one + two).encode())
    assert (len(found["gpus"]), found["attached_gpus"], found["errors"]) == (2, 2, [])
    assert [gpu["index"] for gpu in found["gpus"]] == [0, 1]
    fewer = re.sub(r"<attached_gpus>\d+", "<attached_gpus>1", one)
    assert "a GPU is lost" in parse((one + two + fewer).encode())["errors"][0]["text"]


def test_ecc_off():
    found = facts("rtxpro6000-590.xml")["gpus"][0]
    assert (found["ecc_mode"], found["ecc_mode_pending"]) == ("Disabled", "Enabled")
    assert found["ecc_uncorrected_volatile"] is None and found["ecc_uncorrected_aggregate"] is None
    assert found["sram_threshold_exceeded"] is None and found["unrepairable_memory"] is None
    assert found["remap"]["histogram"]["max"] == 512
    assert found["throttle_active"] == []


def test_lost_gpu_keeps_its_error_texts():
    found = facts("gb200-580-lost.xml")
    good, lost = found["gpus"]
    assert found["errors"] == [{"pci_bus_id": "00000009:01:00.0", "text": "GPU is lost"}]
    assert good["ecc_uncorrected_volatile"] == 0
    for key in ("temperature_c", "memory_total_mib", "ecc_uncorrected_volatile", "throttle_active", "fabric_state"):
        assert lost[key] == "GPU is lost"
    assert lost["remap"]["failure"] == "GPU is lost"  # not a missing block: a check must see the error
    assert lost["clocks_max"]["graphics_mhz"] == 1965


def test_gpu_of_error_texts_only_still_counts():
    found = facts("unknown-error-535.xml")
    assert len(found["gpus"]) == 2
    assert found["errors"] == [{"pci_bus_id": "00000000:64:00.0", "text": "Unknown Error"}]
    bad = found["gpus"][1]
    assert bad["pci_bus_id"] == "00000000:64:00.0"  # from the attribute, the element is an error
    assert bad["uuid"] == bad["temperature_c"] == bad["ecc_mode"] == bad["throttle_active"] == "Unknown Error"
    assert bad["memory_total_mib"] == bad["power"]["draw_w"] == "ERR!"


def test_one_error_value_is_not_a_broken_gpu():
    assert facts("b200-580.xml")["errors"] == []  # power_smoothing: Insufficient Permissions
    body = "<uuid>GPU-1</uuid><serial>1</serial><gpu_power_readings><power_draw>ERR!</power_draw></gpu_power_readings>"
    document = f'<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu id="a">{body}</gpu></nvidia_smi_log>'
    found = parse(document)
    assert found["errors"] == [] and found["gpus"][0]["power"]["draw_w"] == "ERR!"


def test_gpu_that_needs_a_reset_is_reported():
    document = (
        '<nvidia_smi_log><gpu id="00000000:53:00.0"><uuid>GPU-1</uuid><serial>1</serial><minor_number>0</minor_number>'
        "<fan_speed>[GPU requires reset]</fan_speed></gpu></nvidia_smi_log>"
    )
    assert parse(document)["errors"] == [{"pci_bus_id": "00000000:53:00.0", "text": "[GPU requires reset]"}]


@pytest.mark.parametrize("words", ["System is not in ready state", "Invalid State", "In use by another client"])
def test_gpu_of_any_of_nvmls_error_strings_counts_as_broken(words):
    """nvmlErrorString has more than "Unknown Error"; a GPU that hangs in its reset answers most queries with these."""
    document = (
        '<nvidia_smi_log><gpu id="00000000:53:00.0"><minor_number>0</minor_number>'
        f"<fan_speed>{words}</fan_speed><performance_state>{words}</performance_state></gpu></nvidia_smi_log>"
    )
    found = parse(document)
    assert found["errors"] == [{"pci_bus_id": "00000000:53:00.0", "text": words}]


def test_older_words_for_a_reset():
    body = "<uuid>GPU-1</uuid><serial>1</serial><fan_speed>GPU requires restart</fan_speed>"
    document = f'<nvidia_smi_log><gpu id="00000000:53:00.0">{body}</gpu></nvidia_smi_log>'
    assert parse(document)["errors"] == [{"pci_bus_id": "00000000:53:00.0", "text": "GPU requires restart"}]


def test_missing_library_is_a_message_of_the_tool():
    found = nvidia_smi.parse(
        {
            "nvidia-smi.txt": b"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
            b"it is installed.\nPlease also try adding its directory to your system PATH.\n"
        }
    )
    [error] = found["errors"]
    assert "libnvidia-ml.so" in error["text"] and error["text"].endswith("PATH.")


def test_bank_remapping_of_driver_615():
    """Written by hand after the elements of driver 615 and NVML's nvmlEccBankRemapperStatus."""
    banks = "<remapped_banks><bank_remapper_pending>{}</bank_remapper_pending></remapped_banks>"
    assert gpu(banks.format("Yes"))["bank_remap"] == {"pending": True}
    assert gpu(banks.format("No"))["bank_remap"] == {"pending": False}
    assert gpu("<remapped_banks>N/A</remapped_banks>")["bank_remap"] is None
    assert gpu("<remapped_banks>GPU is lost</remapped_banks>")["bank_remap"] == {"pending": "GPU is lost"}
    assert "bank_remap" not in gpu("<uuid>GPU-1</uuid>")


@pytest.mark.parametrize("margin", ["    ", "\t", "        "])
def test_text_that_is_indented_as_a_whole(margin):
    """As a notebook or a report quotes it, with other text around."""
    lines = raw("h100-550-faulty.txt").decode().splitlines()
    text = "Output:\n\n" + "\n".join(margin + line if line else line for line in lines) + "\n\nThanks\n"
    assert nvidia_smi.parse({"nvidia-smi.txt": text.encode()}) == facts("h100-550-faulty.txt")


def test_text_around_the_document():
    before = (
        "Fri Nov 20 22:00:00 UTC 2026\nUnable to determine the device handle for GPU0000:64:00.0: Unknown Error\n\n"
    )
    found = parse(
        before + raw("h200-610.xml").decode() + "WARNING: infoROM is corrupted at gpu 0000:53:00.0\n",
    )
    assert len(found["gpus"]) == 1
    assert found["errors"] == [
        {
            "pci_bus_id": "0000:64:00.0",
            "text": "Unable to determine the device handle for GPU0000:64:00.0: Unknown Error",
        }
    ]
    assert found["warnings"] == [
        {"pci_bus_id": "0000:53:00.0", "text": "WARNING: infoROM is corrupted at gpu 0000:53:00.0"}
    ]


@pytest.mark.parametrize(
    ("name", "pci", "words"),
    [
        ("gpu-lost.xml", "0000:53:00.0", "GPU is lost"),
        ("no-driver.xml", None, "NVIDIA-SMI has failed"),
        ("no-devices.txt", None, "No devices were found"),
        ("driver-mismatch.txt", None, "NVML library version: 535.161"),
    ],
)
def test_a_message_in_place_of_the_output(name, pci, words):
    found = facts(name)
    assert found["gpus"] == []
    [error] = found["errors"]
    assert error["pci_bus_id"] == pci and words in error["text"]


def test_lost_gpu_in_the_text_form():
    whole = raw("h100-550-faulty.txt").decode()
    lost = "Unable to determine the device handle for GPU 0000:64:00.0: GPU is lost.  Reboot the system to recover this GPU"
    text = whole[: whole.index("GPU 00000000:64:00.0")] + lost + "\n"
    found = nvidia_smi.parse({"nvidia-smi.txt": text.encode()})
    assert (found["attached_gpus"], len(found["gpus"])) == (2, 1)
    [error] = found["errors"]
    assert error["pci_bus_id"] == "0000:64:00.0"


def test_message_in_the_middle_of_a_document_that_ends_there():
    whole = raw("h100-550-faulty.xml").decode()
    cut = whole.index("</gpu>") + len("</gpu>")
    found = parse(whole[:cut] + "\nUnable to determine the device handle for GPU 0000:64:00.0: GPU is lost.\n")
    assert len(found["gpus"]) == 1 and found["errors"][0]["pci_bus_id"] == "0000:64:00.0"


def test_fewer_gpus_than_attached_is_said():
    document = "<nvidia_smi_log><attached_gpus>8</attached_gpus><gpu id='a'><uuid>GPU-1</uuid></gpu></nvidia_smi_log>"
    assert parse(document)["errors"] == [{"pci_bus_id": None, "text": "1 of 8 attached GPUs are listed"}]


@pytest.mark.parametrize("name", FULL_XML)
def test_cut_off_xml(name):
    whole = raw(name)
    end = whole.rindex(b"</nvidia_smi_log>")
    start = whole.index(b"<gpu ")
    for cut in range(start, end, max((end - start) // 23, 1)):
        if b"Unable" not in whole[:cut]:
            with pytest.raises(ParseError, match="cut off"):
                parse(whole[:cut])


def test_cut_off_text():
    whole = raw("b200-580.txt")
    last = whole.rindex(b"    Processes")
    for cut in range(whole.index(b"GPU 0000"), last, 500):
        if not whole[:cut].rstrip().endswith(b"disabled"):  # a cut between two GPUs shows in the count
            try:
                found = parse(whole[:cut])
            except ParseError:
                continue
            assert found["errors"][0]["text"] == "1 of 2 attached GPUs are printed"
    with pytest.raises(ParseError, match="cut off"):
        parse(whole[:last])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   \n\n",
        b"garbage",
        b"\x00\x01\x02\xff" * 100,
        b"<html><body>502 Bad Gateway</body></html>",
        b"<nvidia_smi_log></nvidia_smi_log>",
        b"<?xml version='1.0'?><other/>",
        b"<nvidia_smi_log><gpu>",
        b"==============NVSMI LOG==============\n",
        b"==============NVSMI LOG==============\n\nAttached GPUs   : 8\n",
        b"| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4 |\n",
        b"\xff\xfe<\x00n\x00",
    ],
)
def test_garbage(data):
    with pytest.raises(ParseError):
        parse(data)


BOMB = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "doctype",
    [
        BOMB,
        '<!DOCTYPE nvidia_smi_log SYSTEM "file:///etc/passwd>" [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE nvidia_smi_log [<!ATTLIST nvidia_smi_log version CDATA "1">]>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY % p SYSTEM "http://192.0.2.1/x.dtd"> %p;]>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(doctype, encoding):
    document = f"<?xml version='1.0'?>{doctype}<nvidia_smi_log><driver_version>&b;</driver_version></nvidia_smi_log>"
    with pytest.raises(ParseError, match="refused"):
        parse(document.encode(encoding))


def test_the_ordinary_doctype_is_allowed_and_not_fetched(tmp_path):
    dtd = tmp_path / "x.dtd"
    dtd.write_text("<!ELEMENT nvidia_smi_log EMPTY> <!ENTITY v 'fetched'>")
    body = "<nvidia_smi_log><driver_version>1&v;</driver_version></nvidia_smi_log>"
    assert parse(f'<!DOCTYPE nvidia_smi_log SYSTEM "{dtd}">{body}')["driver_version"] == "1"


def test_the_dtd_may_be_in_the_document():
    # nvidia-smi -q -x --dtd, after the declarations in nvidia-smi 555.
    dtd = """<!DOCTYPE nvidia_smi_log [
<!ELEMENT nvidia_smi_log        (timestamp, driver_version, cuda_version,
                                 attached_gpus, error_string?, gpu*)>
<!ELEMENT driver_version        (#PCDATA)>
<!ELEMENT gpu                   (product_name, supported_clocks,
                                 accounted_processes)>
<!ATTLIST gpu id                CDATA #REQUIRED>
]>"""
    body = '<nvidia_smi_log><driver_version>1</driver_version><gpu id="00000000:53:00.0"><uuid>GPU-1</uuid></gpu></nvidia_smi_log>'
    found = parse(f'<?xml version="1.0" ?>\n{dtd}\n{body}')
    assert (found["driver_version"], len(found["gpus"]), found["errors"]) == ("1", 1, [])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Unable to determine the device handle for gpu 0000:97:00.0: Unknown Error", "0000:97:00.0"),
        ("Unable to determine the device handle for gpu 0000:97:00.0: GPU is lost.\nReboot the system", "0000:97:00.0"),
        ("Something that no version said so far", None),
    ],
)
def test_an_error_string_is_an_error(text, address):
    """After nvidia-smi's DTD: attached_gpus, error_string?, gpu*."""
    gpu = '<gpu id="00000000:53:00.0"><uuid>GPU-1</uuid></gpu>'
    head = f"<attached_gpus>1</attached_gpus><error_string>{text}</error_string>"
    found = parse(f"<?xml version='1.0'?><nvidia_smi_log>{head}{gpu}</nvidia_smi_log>")
    assert [gpu["uuid"] for gpu in found["gpus"]] == ["GPU-1"]
    assert found["errors"] == [{"pci_bus_id": address, "text": " ".join(text.splitlines())}]
    head = "<attached_gpus>1</attached_gpus><error_string></error_string>"
    assert parse(f"<?xml version='1.0'?><nvidia_smi_log>{head}{gpu}</nvidia_smi_log>")["errors"] == []


def test_names_of_processes_that_are_not_escaped():
    process = "<process_info><pid>7</pid><process_name>a && b <x> \x01</process_name></process_info>"
    found = gpu(f"<uuid>GPU-1</uuid><processes>{process}</processes>")
    assert found["processes"] == [{"pid": 7, "name": "a && b <x> \N{REPLACEMENT CHARACTER}"}]
    escaped = gpu("<processes><process_info><process_name>a &amp;&amp; b</process_name></process_info></processes>")
    assert escaped["processes"] == [{"name": "a && b"}]


@pytest.mark.parametrize("block", ["clocks_throttle_reasons", "clocks_event_reasons"])
def test_throttle_states(block):
    reason = block[:-1]
    assert gpu(f"<{block}>N/A</{block}>")["throttle_active"] is None
    assert gpu(f"<{block}><{reason}_hw_slowdown>N/A</{reason}_hw_slowdown></{block}>")["throttle_active"] is None
    active = gpu(f"<{block}><{reason}_board_limit>Active</{reason}_board_limit></{block}>")
    assert active["throttle_active"] == ["board_limit"]
    assert "throttle_active" not in gpu("<uuid>GPU-1</uuid>")
    counters = gpu(
        f"<{block}_counters><{block}_counters_sync_boost>Active</{block}_counters_sync_boost></{block}_counters>"
    )
    assert "throttle_active" not in counters


@pytest.mark.parametrize(
    "na", ["N/A", "[N/A]", "Not Supported", "[Not Supported]", "Requested functionality has been deprecated", ""]
)
def test_not_available(na):
    found = gpu(
        f"<serial>{na}</serial><temperature><gpu_temp>{na}</gpu_temp></temperature><retired_pages>{na}</retired_pages>"
    )
    assert found["serial"] is None and found["temperature_c"] is None and found["retired_pages"] is None
    assert "uuid" not in found


def test_totals_that_are_not_printed_or_not_available():
    printed = gpu(
        "<ecc_errors><volatile><sram_uncorrectable>5</sram_uncorrectable>"
        "<sram_uncorrectable_parity>2</sram_uncorrectable_parity><sram_uncorrectable_secded>3</sram_uncorrectable_secded>"
        "<dram_uncorrectable>1</dram_uncorrectable></volatile></ecc_errors>"
    )
    assert printed["ecc_uncorrected_volatile"] == 6
    parts = gpu(
        "<ecc_errors><volatile><double_bit><device_memory>2</device_memory><l2_cache>1</l2_cache>"
        "<total>N/A</total></double_bit></volatile></ecc_errors>"
    )
    assert parts["ecc_uncorrected_volatile"] == 3
    assert "ecc_corrected_volatile" not in parts and "ecc_uncorrected_aggregate" not in parts
    error = gpu(
        "<ecc_errors><volatile><dram_uncorrectable>0</dram_uncorrectable>"
        "<sram_uncorrectable>Unknown Error</sram_uncorrectable></volatile></ecc_errors>"
    )
    assert error["ecc_uncorrected_volatile"] == "Unknown Error"


def test_numbers_that_are_none():
    found = gpu(f"<minor_number>{'9' * 5000}</minor_number><temperature><gpu_temp>1e999 C</gpu_temp></temperature>")
    assert found["minor_number"] == "9" * 5000 and found["temperature_c"] == "1e999 C"


def test_the_text_counts_only_when_the_xml_cannot_be_read():
    xml, text = raw("h200-610.xml"), raw("b200-580.txt")
    assert nvidia_smi.parse({"nvidia-smi.xml": xml, "nvidia-smi.txt": text})["driver_version"] == "610.43.02"
    assert nvidia_smi.parse({"nvidia-smi.xml": xml[:4000], "nvidia-smi.txt": text})["driver_version"] == "580.105.08"
    with pytest.raises(ParseError, match=r"cut off.*empty output"):
        nvidia_smi.parse({"nvidia-smi.xml": xml[:4000], "nvidia-smi.txt": b""})


def test_carriage_returns_and_byte_order_mark():
    text = raw("h200-610.txt")
    assert parse(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")) == parse(text)
    xml = raw("h200-610.xml")
    assert parse(xml.decode().encode("utf-16")) == parse(xml)


def test_deep_nesting_and_floods_are_refused():
    with pytest.raises(ParseError, match="nested too deep"):
        parse("<nvidia_smi_log><gpu>" + "<a>" * 100_000 + "</a>" * 100_000 + "</gpu></nvidia_smi_log>")
    with pytest.raises(ParseError, match="more than 1024 GPUs"):
        parse("<nvidia_smi_log>" + "<gpu></gpu>" * 2000 + "</nvidia_smi_log>")
    with pytest.raises(ParseError, match="values"):
        parse("<nvidia_smi_log><gpu>" + "".join(f"<a{i}/>" for i in range(200_001)) + "</gpu></nvidia_smi_log>")
    with pytest.raises(ParseError, match="lines"):
        parse("Attached GPUs : 8\n" + "x\n" * 200_000)
    with pytest.raises(ParseError, match="larger than"):
        parse(b"<nvidia_smi_log>" + b" " * (17 << 20))


def test_eight_gpus_are_read_quickly():
    one = raw("b200-580.xml").decode()
    start, end = one.index("\t<gpu "), one.index("</gpu>") + len("</gpu>\n")
    clocks = "<supported_graphics_clock>1965 MHz</supported_graphics_clock>\n" * 120
    body = one[start:end].replace("</supported_mem_clock>", clocks + "</supported_mem_clock>")
    document = (one[:start] + body * 8 + "</nvidia_smi_log>\n").encode()
    assert 120_000 < len(document) < 180_000
    best = min(_seconds(document) for _ in range(5))
    assert best < 0.04  # processor time: about 0.008 s on Python 3.11, 0.012 s on 3.8


def _seconds(document):
    started = time.process_time()
    assert len(parse(document)["gpus"]) == 8
    return time.process_time() - started


def test_a_page_retirement_pending_under_either_name():
    # Hand-written: the two elements a driver prints for one fact.
    for blacklist, retirement, wanted in (
        ("Yes", "No", True),
        ("No", "Yes", True),
        ("No", "No", False),
        ("N/A", "No", False),
    ):
        found = gpu(
            f"<retired_pages><pending_blacklist>{blacklist}</pending_blacklist>"
            f"<pending_retirement>{retirement}</pending_retirement></retired_pages>"
        )
        assert found["retired_pages"]["pending"] is wanted


@pytest.mark.parametrize("name", ["h100-550-faulty.xml", "h100-550-faulty.txt"])
def test_zero_bytes_at_the_end_are_padding_and_within_are_damage(name):
    data = raw(name)
    key = "nvidia-smi" + name[-4:]
    assert nvidia_smi.parse({key: data + bytes(4096)}) == nvidia_smi.parse({key: data})
    with pytest.raises(ParseError, match="binary"):
        nvidia_smi.parse({key: data[:500] + b"\x00" + data[500:]})


def test_rows_without_the_names_of_their_columns_say_so() -> None:
    """Which number counts errors nobody can tell; a single name of a GPU is no row."""
    with pytest.raises(ParseError, match="without the names of their columns"):
        nvidia_smi.parse({"nvidia-smi.txt": b"0, NVIDIA H200, 25, 30.39 W, 0, 0\n1, NVIDIA H200, 25, 28.54 W, 0, 0\n"})
    with pytest.raises(ParseError, match="neither the XML"):
        nvidia_smi.parse({"nvidia-smi.txt": b"NVIDIA H200\nNVIDIA H200\n"})
