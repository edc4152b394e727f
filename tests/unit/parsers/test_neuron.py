"""The parsers of Neuron's tools: documented formats, old and new, and what their failures look like."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.harness import sample
from tests.unit.checks.neurons import busy


def parse(name, data, file=""):
    data = data.encode() if isinstance(data, str) else data
    return PARSERS[name].parse({file or PARSERS[name].files[0]: data})


def fixture(name, file):
    return parse(name, sample(f"{name}/{file}"))


class TestNeuronLs:
    def test_a_device(self):
        device = fixture("neuron_ls", "trn2-48xlarge.json")["devices"][5]
        assert device["index"] == 5
        assert (device["cores"], device["lnc"], device["memory_bytes"]) == (4, 2, 96 << 30)
        assert sorted(device["connected"]) == [1, 4, 6, 9]

    def test_processes(self):
        device = PARSERS["neuron_ls"].parse({"neuron-ls.json": busy()})["devices"][0]
        assert device["processes"] == [
            {"pid": 4711, "command": "python3 pretrain.py --steps 5000", "runtime": "2.28.23.0"}
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "neuron-ls: no neuron device found\n",
            "No neuron device available",
            "Neuron DKMS Driver is not running! Read the guide\n",
            '{"error": "no neuron device found"}',
        ],
    )
    def test_no_device(self, text):
        facts = parse("neuron_ls", text)
        assert facts["devices"] == []
        assert facts["error"]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "empty"),
            ("sh: 1: exec: neuron-ls: not found\n", "not installed"),
            ('[{"neuron_device": 0, "bdf": "00:1e.0", "connec', "not the JSON"),
            ("Segmentation fault\n", "Segmentation fault"),
            ('[{"uuid": 3}]', "without neuron_device"),
            ("[1, 2]", "no object"),
        ],
    )
    def test_not_readable(self, text, said):
        with pytest.raises(ParseError, match=said):
            parse("neuron_ls", text)

    def test_notes_before_the_json_and_an_object_around_it(self):
        rows = sample("neuron_ls/inf2-xlarge.json").decode()
        assert len(parse("neuron_ls", "WARN something\n" + rows)["devices"]) == 1
        assert len(parse("neuron_ls", json.dumps({"neuron_devices": json.loads(rows)}))["devices"]) == 1
        assert parse("neuron_ls", "[]")["devices"] == []

    def test_the_table(self):
        facts, same = fixture("neuron_ls", "trn2-48xlarge.txt"), fixture("neuron_ls", "trn2-48xlarge.json")
        for row, twin in zip(facts["devices"], same["devices"], strict=True):
            keys = ("index", "cores", "lnc", "memory_bytes", "connected")
            assert [row[key] for key in keys] == [twin[key] for key in keys]
        assert facts["devices"][15]["numa_node"] == 1

    def test_the_table_with_processes(self):
        (device,) = fixture("neuron_ls", "inf2-xlarge-busy.txt")["devices"]
        assert (device["cores"], device["connected"], device["bdf"]) == (2, [], "0000:00:1f.0")
        assert [process["pid"] for process in device["processes"]] == [4711, 4712]

    def test_a_table_without_a_head_is_none(self):
        with pytest.raises(ParseError):
            parse("neuron_ls", "| 0 | 2 | 32 GB |\n")


class TestNeuronMonitor:
    def test_counts(self):
        facts = fixture("neuron_monitor", "trn1-idle.json")
        assert len(facts["devices"]) == 16
        assert facts["hardware"]["count"] == 16
        assert facts["instance_type"] == "trn1.32xlarge"

    def test_a_stream_keeps_the_largest_and_adds_up_a_programs_counts(self):
        facts = fixture("neuron_monitor", "trn1-busy-stream.jsonl")
        assert facts["reports"] == 3
        assert facts["runtimes"][0]["executions"]["completed"] == 111
        lines = sample("neuron_monitor/trn1-busy-stream.jsonl").decode().splitlines()
        lines[1] = lines[1].replace('"mem_ecc_uncorrected": 0', '"mem_ecc_uncorrected": 5', 1)
        assert parse("neuron_monitor", "\n".join(lines))["devices"][0]["mem_ecc_uncorrected"] == 5

    def test_a_last_line_cut_off(self):
        text = sample("neuron_monitor/trn1-busy-stream.jsonl").decode()
        assert parse("neuron_monitor", text[:-400])["reports"] == 2
        with pytest.raises(ParseError):
            parse("neuron_monitor", text.splitlines()[0][:-400])

    def test_pretty_printed(self):
        assert len(fixture("neuron_monitor", "inf2-pretty.json")["devices"]) == 1

    def test_errors_of_its_own(self):
        errors = fixture("neuron_monitor", "no-driver.json")["errors"]
        assert {error["where"] for error in errors} == {"neuron_hw_counters", "neuron_hardware_info"}

    @pytest.mark.parametrize("text", ["", "{}", "[]", "neuron-monitor: command not found", '{"a": 1}'])
    def test_not_a_report(self, text):
        with pytest.raises(ParseError):
            parse("neuron_monitor", text)

    def test_text_in_the_place_of_a_count_stays(self):
        report = {
            "system_data": {
                "neuron_hw_counters": {"neuron_devices": [{"neuron_device_index": 0, "mem_ecc_uncorrected": "n/a"}]}
            }
        }
        assert parse("neuron_monitor", json.dumps(report))["devices"][0]["mem_ecc_uncorrected"] == "n/a"


class TestNeuronSysfs:
    def test_healthy(self):
        facts = fixture("neuron_sysfs", "trn1-32xlarge.json")
        assert facts["driver"] == "2.24.7.0"
        assert [row["index"] for row in facts["devices"]] == list(range(16))
        assert sorted(facts["devices"][0]["connected"]) == [1, 3, 4, 12]

    def test_a_read_that_failed_is_no_empty_list(self):
        device = fixture("neuron_sysfs", "not-root.json")["devices"][0]
        assert "connected" not in device
        assert device["ecc"]["mem_ecc_uncorrected"] == "error: Permission denied"

    def test_none(self):
        assert fixture("neuron_sysfs", "none.json") == {"driver": None, "devices": []}
        with pytest.raises(ParseError):
            parse("neuron_sysfs", "{}")


class TestNeuronPackages:
    def test_dpkg_and_rpm(self):
        assert fixture("neuron_packages", "dpkg.txt")["packages"]["aws-neuronx-dkms"] == "2.24.7.0"
        assert len(fixture("neuron_packages", "rpm.txt")["packages"]) == 3

    def test_removed_packages_do_not_count(self):
        assert list(fixture("neuron_packages", "removed.txt")["packages"]) == ["aws-neuronx-tools"]

    def test_none_and_garbage(self):
        text = "dpkg-query: no packages found matching aws-neuronx-*\n"
        assert parse("neuron_packages", text) == {"packages": {}}
        with pytest.raises(ParseError):
            parse("neuron_packages", "hello\n")


class TestNccomTest:
    def test_runs(self):
        reduce, gather = fixture("nccom_test", "trn1-32-ranks.txt")["runs"]
        assert (reduce["operation"], reduce["ranks"], reduce["rc"], reduce["rows"]) == ("all_reduce", 32, 0, 6)
        assert reduce["largest"] == {"bytes": 1 << 30, "busbw_gb_s": 123.5}
        assert gather["operation"] == "all_gather"

    def test_columns_by_name(self):
        text = "size(B) count(elems) type time:avg(us) time:p99(us) algbw(GB/s) busbw(GB/s) algorithm\n"
        text += "536870912 134217728 fp32 9689.51 9700 55.41 103.89 kangaring\nAvg bus bandwidth:\t103.8900GB/s\n"
        (run,) = parse("nccom_test", text)["runs"]
        assert (run["largest"]["busbw_gb_s"], run["complete"], run["operation"]) == (103.89, True, None)

    def test_two_tables_one_command(self):
        text = (
            "nccom-test allg -r 64 -c --streams-json x.json\n"
            + (
                "size(B) count(elems) type time(us) algbw(GB/s) busbw(GB/s)\n1024 512 bf16 1 0.01 0.02\nAvg bus bandwidth: 0.02GB/s\n"
            )
            * 2
        )
        assert [run["rows"] for run in parse("nccom_test", text)["runs"]] == [1, 1]

    @pytest.mark.parametrize("text", ["", "hello\nworld\n", "nccom-test -r 2 allr\n"])
    def test_nothing(self, text):
        with pytest.raises(ParseError):
            parse("nccom_test", text)


def test_the_log_parser_finds_lines_at_the_edges():
    text = b"\0" * 3 + b"neuron: nd4: reset request 1 failed"
    (event,) = parse("neuron_log", text)["events"]
    assert event["device"] == 4
    long = b"x" * 5000 + b"neuron: nd4: reset request 1 failed" + b"y" * 5000 + b"\nneuron: nd5: reset request 1 failed"
    assert [event["device"] for event in parse("neuron_log", long)["events"]] == [4, 5]
    with pytest.raises(ParseError):
        parse("neuron_log", b"")
