"""nccl-tests logs: versions, torn rows, several tests in a log, cut logs."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import nccl_tests
from tests.harness import sample

GIB = 1 << 30
HEADER = (
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
)
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n#\n"


def runs(text, file="nccl-all_reduce.log"):
    return nccl_tests.parse({file: text.encode()})["runs"]


def fixture(name, file="nccl-all_reduce.log"):
    (run,) = nccl_tests.parse({file: sample(f"nccl_tests/{name}")})["runs"]
    return run


def test_one_node():
    run = fixture("h100-8gpu-all_reduce.log")
    assert {
        key: run[key] for key in ("collective", "ranks", "rows", "min_bytes", "max_bytes", "wrong", "complete")
    } == {
        "collective": "all_reduce",
        "ranks": 8,
        "rows": 14,
        "min_bytes": 1 << 20,
        "max_bytes": 8 * GIB,
        "wrong": 0,
        "complete": True,
    }
    assert run["out_of_bounds"] == 0
    assert run["peak_busbw_gb_s"] == run["largest"]["busbw_gb_s"] > 480
    assert run["largest"]["bytes"] == 8 * GIB
    assert 0 < run["avg_busbw_gb_s"] < run["peak_busbw_gb_s"]


def test_rows_torn_by_nccl_lines_under_mpirun():
    run = fixture("h100-2node-all_reduce-debug.log")
    assert (run["ranks"], run["hosts"], run["rows"], run["min_bytes"], run["complete"]) == (16, 2, 31, 8, True)
    assert "damaged_rows" not in run


def test_cut_log_is_not_complete():
    run = fixture("truncated-all_reduce.log")
    assert (run["complete"], run["rows"], run["wrong"]) == (False, 9, 0)
    assert run["errors"] == [
        "ip-10-1-0-11: Test NCCL failure all_reduce.cu:44 'unhandled cuda error (run with NCCL_DEBUG=INFO for details)'"
    ]
    assert "avg_busbw_gb_s" not in run
    assert "out_of_bounds" not in run


def test_wrong_values_are_counted():
    run = fixture("wrong-values-all_reduce.log")
    assert (run["wrong"], run["out_of_bounds"]) == (16384, 16384)


def test_alltoall_in_place_is_not_checked():
    run = fixture("h100-8gpu-alltoall.log", "nccl-alltoall.log")
    assert (run["collective"], run["wrong"], run["rows"]) == ("alltoall", 0, 14)


def test_old_version_prints_an_error_not_a_count():
    run = fixture("a100-old-all_reduce.log")
    assert run["wrong"] is None
    assert run["max_error"] == 5e-07
    assert (run["ranks"], run["hosts"], run["complete"], run["avg_busbw_gb_s"]) == (8, 1, True, 121.4)
    assert run["largest"]["busbw_gb_s"] > 230


def test_unchecked_run():
    run = fixture("a100-old-unchecked-all_gather.log", "nccl-all_gather.log")
    assert run["wrong"] is None
    assert "max_error" not in run
    assert (run["collective"], run["validation"], run["rows"]) == ("all_gather", 0, 13)


def test_several_files_and_several_tests_in_one():
    one, two = sample("nccl_tests/h100-8gpu-all_reduce.log"), sample("nccl_tests/h100-8gpu-alltoall.log")
    facts = nccl_tests.parse({"nccl-all_reduce.log": one + two + one, "nccl-alltoall.log": two})
    assert [run["collective"] for run in facts["runs"]] == ["all_reduce", "alltoall", "all_reduce", "alltoall"]
    assert [run["rows"] for run in facts["runs"]] == [14] * 4


def test_a_failed_test_before_a_good_one_is_its_own_run():
    failed = "# Collective test starting: alltoall_perf\n# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor)\n"
    found = runs(failed + sample("nccl_tests/h100-8gpu-all_reduce.log").decode())
    assert [(run["collective"], run["rows"], run["complete"]) for run in found] == [
        ("alltoall", 0, False),
        ("all_reduce", 14, True),
    ]


def test_version_line():
    text = "# nccl-tests version 2.17.6 nccl-headers=22907 nccl-library=22907\n# Collective test starting: all_gather_perf\n"
    facts = nccl_tests.parse({"nccl-all_reduce.log": (text + HEADER + FOOTER).encode()})
    assert facts["version"] == "2.17.6"
    assert facts["runs"][0]["collective"] == "all_gather"


def test_root_column_and_zero_size():
    row = "           0             0     float    none       0     6.28    0.00    0.00      0     6.35    0.00    0.00    N/A\n"
    (run,) = runs(HEADER + row + FOOTER, "nccl-broadcast.log")
    assert (run["min_bytes"], run["max_bytes"], run["rows"], run["wrong"], run["ranks"]) == (0, 0, 1, 0, 8)


def test_blank_redop_under_its_heading():
    row = "     1024   32  float               -1    11.38    0.09    0.08      0    11.40    0.09    0.08      3\n"
    (run,) = runs(HEADER + row + FOOTER, "nccl-all_gather.log")
    assert (run["rows"], run["wrong"], run["peak_busbw_gb_s"], run["largest"]["time_us"]) == (1, 3, 0.08, 11.38)


def test_peak_is_out_of_place():
    row = "  1048576  262144  float  sum  -1  100.0  10.49  18.35  0  90.0  11.65  20.39  0\n"
    (run,) = runs(HEADER + row + FOOTER)
    assert run["peak_busbw_gb_s"] == 18.35


def test_per_iteration_and_timestamp_columns():
    header = HEADER.splitlines()[0] + (
        "\n# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%"
        " time algbw busbw #wrong i_min i_max i_p99 i_cv% timestamp\n"
    )
    row = "1024 256 float sum -1 20.1 0.05 0.09 0 19.0 25.0 24.9 3.10 20.0 0.05 0.09 2 19.0 25.0 24.9 3.10 2026-05-05 10:00:00\n"
    (run,) = runs(header + row + FOOTER)
    assert (run["rows"], run["wrong"], run["peak_busbw_gb_s"]) == (1, 2, 0.09)


@pytest.mark.parametrize("host", ["ip-10-1-2-3", "8h200-2"])
def test_a_number_glued_to_a_host_name_is_no_wrong_value(host):
    text = HEADER.replace("# size", f"#  Rank  0 Group  0 Pid 1 on {host} device  0 [0x53] H200\n# size")
    text += f"{host}:1:1 [0] NCCL INFO x\n"
    text += f"     8   2  float  sum  -1{host}:1:1 [0] NCCL INFO y\n    64.80    0.00    0.00      0{host}:1:1 [0] NCCL INFO z\n"
    text += "    61.20    0.00    0.00      0\n"
    (run,) = runs(text + FOOTER)
    assert (run["rows"], run["wrong"], run["complete"]) == (1, 0, True)


def test_a_row_that_stays_torn_makes_the_run_incomplete():
    (run,) = runs(HEADER + "     8   2  float  sum  -1   64.80\n" + FOOTER)
    assert (run["complete"], run["damaged_rows"], run["rows"]) == (False, 1, 0)


def test_not_a_number_is_no_bandwidth():
    (run,) = runs(HEADER + "8 2 float sum -1 64.80 nan nan 0 64.80 0.00 0.00 0\n" + FOOTER)
    assert (run["rows"], run["damaged_rows"]) == (0, 1)


@pytest.mark.parametrize("label", ["0: ", "10.3.35.83: ", "[1,0]<stdout>:", "[prterun-ip-1@1,0]<stdout>: "])
def test_launchers_labels(label):
    text = sample("nccl_tests/h100-8gpu-all_reduce.log").decode()
    (run,) = runs("".join(label + line + "\n" for line in text.splitlines()))
    assert (run["rows"], run["ranks"], run["complete"]) == (14, 8, True)


@pytest.mark.parametrize("file", ["nccl-all-reduce.log", "nccl-allreduce.log", "nccl-all_reduce_perf.log"])
def test_other_spellings_of_the_file(file):
    assert runs(HEADER + FOOTER, file)[0]["collective"] == "all_reduce"


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x00", b"bash: all_reduce_perf: command not found\n", b"Test CUDA failure common.cu:900\n"]
)
def test_no_test_in_it(data):
    with pytest.raises(ParseError):
        nccl_tests.parse({"nccl-all_reduce.log": data})


def test_failure_without_a_header_is_named():
    with pytest.raises(ParseError, match="Test CUDA failure"):
        nccl_tests.parse({"nccl-all_reduce.log": b"host: Test CUDA failure common.cu:900 'no device'\n"})


ROWS = (
    "  1073741824     268435456     float     sum      -1   4200.1  255.65  447.38      0   4190.2  256.25  448.44      0\n"
    "  8589934592    2147483648     float     sum      -1    31500  272.70  477.22      0    31480  272.87  477.52      0\n"
)
INFO = "ip-10-1-0-11:4242:4301 [3] NCCL INFO Channel 00/24 :    0   1   2   3\n"
STAMPED = "[2026-11-21 12:00:01] ip-10-1-0-11:4242:4301 [3] NCCL INFO NET/OFI Selected provider is efa\n"
DEVICES = "#  Rank  0 Group  0 Pid   4242 on ip-10-1-0-11 device  0 [0000:53:00] NVIDIA H100 80GB HBM3\n"
WHOLE = DEVICES + HEADER + ROWS + FOOTER


@pytest.mark.parametrize("noise", [INFO, INFO + INFO, STAMPED])
def test_a_row_torn_at_any_place_is_put_together(noise):
    start = len(DEVICES + HEADER)
    for at in range(start, start + len(ROWS)):
        assert runs(WHOLE[:at] + noise + WHOLE[at:]) == runs(WHOLE), WHOLE[at - 20 : at]


def test_a_row_torn_within_its_first_numbers_by_a_warning_is_put_together():
    at = WHOLE.index("2147483648") + 4
    (run,) = runs(WHOLE[:at] + "\nip-10-1-0-11:4242:4301 [3] NCCL WARN odd\n" + WHOLE[at:])
    assert (run["rows"], run["largest"]["bytes"], run["complete"]) == (2, 8 * GIB, True)


@pytest.mark.parametrize("words", ["Out of bou", "Avg bus bandwidth    : 1."])
def test_a_comment_torn_by_an_nccl_line_is_put_together(words):
    at = WHOLE.index(words) + len(words)
    (run,) = runs(WHOLE[:at] + INFO + WHOLE[at:])
    assert (run["avg_busbw_gb_s"], run["out_of_bounds"], run["complete"]) == (1.5, 0, True)


def test_the_form_of_2018_without_comment_marks():
    text = (
        "nThread 1 nGpus 8 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 \n"
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "  1073741824     268435456   float     sum    4.200  255.6  447.38    2e-07    4.190  256.2  448.44    2e-07\n"
        " Out of bounds values : 0 OK\n Avg bus bandwidth    : 447.9\n"
    )
    (run,) = runs(text)
    assert (run["rows"], run["ranks"], run["out_of_bounds"], run["avg_busbw_gb_s"]) == (1, 8, 0, 447.9)
    assert run["complete"]


@pytest.mark.parametrize(
    "label",
    [
        "[1,0]<stdout>:",
        "[prterun-ip-10-0-0-1-1234@1,0]<stdout>: ",
        "Sat Nov 21 12:00:01 2026[1,0]<stdout>:",
        "Sat Nov  1 12:00:01 2026<stdout>:",
        "0: ",
        "nccl-worker-0: ",
        "2026-11-21T12:00:01.123456789Z ",
        "2026-11-21T12:00:01+00:00 ",
        " 0: ",
        "[default0]:",
        "[pod/nccl-launcher-x7kd2/mpi] ",
        "nccl-launcher-x7kd2 mpi ",
        "  | 2026-11-21T12:00:01.528Z | ",
        "        [1,0]<stdout>:",
        "    ",
    ],
)
def test_labels_of_launchers_and_log_collectors(label):
    def labelled(text):
        return "".join(label + line for line in text.splitlines(keepends=True))

    torn = WHOLE.replace("    1.5 \n", "    1.5\n").replace("float     sum      -1", "float     sum      -1" + INFO)
    assert torn.count(INFO) == 2
    assert runs(labelled(WHOLE)) == runs(labelled(torn)) == runs(WHOLE)


def test_what_stands_before_another_text_is_not_taken_for_a_label():
    assert runs("3 NCCL tests # nThread\n" + WHOLE) == runs(WHOLE)
    assert runs("".join(f"label-{n} # Using devices\n" for n in range(99)) + WHOLE) == runs(WHOLE)


def ranks(groups):
    lines = (f"#  Rank {n:2} Group {group:2} Pid 70{n} on ip-10-1-0-{n // 4} device {n % 4:2} [0x0{n}] NVIDIA H100\n"
             for n, group in enumerate(groups))  # fmt: skip
    return HEADER.replace("\n#", "\n" + "".join(lines) + "#", 1) + WHOLE[len(HEADER) :]


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([0] * 8, {}),
        ([n // 4 for n in range(8)], {"groups": 2, "group_ranks": 4, "group_hosts": 1}),
        ([n % 4 for n in range(8)], {"groups": 4, "group_ranks": 2, "group_hosts": 2}),
        ([0] + [1] * 7, {"groups": 2, "group_ranks": 7, "group_hosts": 2}),
    ],
)
def test_several_communicators_of_one_test(groups, found):
    (run,) = runs(ranks(groups))
    assert {key: run[key] for key in run if key.startswith("group")} == found
    assert (run["ranks"], run["hosts"]) == (8, 2)


def test_a_web_page_that_lost_the_comment_marks():
    text = ranks([0] * 8).replace("#wrong", "+wrong").replace("#", "").replace("+", "#")
    assert runs(text) == runs(ranks([0] * 8))


def test_bitwise_and_per_iteration_columns():
    extra = "#wrong  #bitdiff   i_min   i_max   i_p99   i_cv%"
    text = WHOLE.replace("#wrong", extra).replace("      0", "      0      7    98.2   105.1   104.9     1.2")
    text = text.replace("# Avg", "# Bitwise mismatches    : 3 FAILED\n# Avg")
    (run,) = runs(text)
    assert (run["wrong"], run["largest"], run["complete"]) == (0, runs(WHOLE)[0]["largest"], True)
    assert run["bitwise_mismatches"] == 3


@pytest.mark.parametrize(
    "line", ["NCCL failure all_reduce.cu:95 'unhandled cuda error'", "Cuda failure common.cu:9 'x'"]
)
def test_the_failures_of_2018(line):
    (run,) = runs(HEADER + line + "\n")
    assert (run["errors"], run["complete"]) == ([line], False)


GATHER = WHOLE.replace("sum ", "none")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (WHOLE + GATHER, ["all_reduce", ""]),
        (WHOLE + "+ mpirun -np 8 ./build/all_gather_perf -b 1G -e 8G\n" + GATHER, ["all_reduce", "all_gather"]),
        ("$ /opt/nccl-tests/build/alltoall_perf \\\n    -b 1G\n" + GATHER, ["alltoall"]),
        ("$ ls build\nall_gather_perf all_reduce_perf broadcast_perf \n" + WHOLE, ["all_reduce"]),
        ("$ ./build/all_gather_perf -b 1G\n" + WHOLE, [""]),
        ("$ ./build/all_gather_perf -b 1G\n# Collective test starting: all_reduce_perf\n" + WHOLE, ["all_reduce"]),
    ],
)
def test_the_collective_where_no_line_of_the_test_names_it(text, names):
    assert [run["collective"] for run in runs(text)] == names


def test_columns_that_no_header_explains_are_not_taken_for_wrong_values():
    """Per-iteration columns (nccl-tests 2.18, by hand), and what an older version without a header is read as."""
    group = "  36059  476.47  833.82       0"
    row = "  1073741824     268435456     float     sum      -1"
    run = runs(f"{row}{group}{group}\n")[0]
    assert (run["wrong"], run["peak_busbw_gb_s"]) == (0, 833.82)
    more = runs(row + 2 * (group + "   123.4   155.3   150.0     2.11") + "\n")[0]
    assert (more["rows"], more["damaged_rows"], more.get("wrong")) == (0, 1, None)


def test_label_of_docker_compose():
    text = sample("nccl_tests/h100-8gpu-all_reduce.log").decode()
    labelled = "".join(f"nccl-launcher-1  | {line}\n" for line in text.splitlines())
    assert runs(labelled) == runs(text)


def test_closing_lines_that_are_indented_close_the_test():
    row = "  1073741824     268435456     float     sum      -1  4027.3  266.61  466.57      0  4029.1  266.50  466.37      0\n"
    (run,) = runs(HEADER + row + "".join(f"    {line}\n" for line in FOOTER.splitlines()))
    assert (run["complete"], run["avg_busbw_gb_s"], run["out_of_bounds"]) == (True, 1.5, 0)


def test_ranks_whose_lines_are_missing_are_counted():
    last = "#  Rank 15 Group  0 Pid 9 on ip-10-1-0-12 device  7 [0xdf] NVIDIA H100 80GB HBM3\n"
    (run,) = runs(HEADER.replace("nGpus 8", "nGpus 1") + last + FOOTER)
    assert run["ranks"] == 16
