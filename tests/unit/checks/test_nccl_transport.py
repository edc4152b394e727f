"""nccl_transport: EFA or not, told by what NCCL itself printed."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import nccl_debug
from tests.harness import judge_facts, only, sample, status

EFA = {"info_lines": 9, "network": "AWS Libfabric", "provider": "efa", "gdrdma": True, "warnings": []}


def judge(facts, instance_type="p5.48xlarge"):
    return judge_facts("nccl_transport", {"nccl_debug": facts}, instance_type)


def fixture(name):
    return nccl_debug.parse({"nccl-debug.log": sample(f"nccl_debug/{name}")})


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, Status.PASS),
        ({"network": "Libfabric", "gdrdma": None}, Status.PASS),
        ({"network": "Socket"}, Status.FAIL),
        ({"network": "IB"}, Status.FAIL),
        ({"transports": {"NET/Socket": 2}}, Status.FAIL),
        ({"provider": "tcp;ofi_rxm"}, Status.FAIL),
        ({"provider": None, "gdrdma": None}, Status.UNKNOWN),
        ({"provider": None}, Status.PASS),
        ({"network": None, "provider": None, "gdrdma": None}, Status.SKIP),
        ({"info_lines": 0}, Status.SKIP),
        ({"gdrdma": False}, Status.WARN),
        ({"warnings": ["socketProgress: Connection closed"]}, Status.INFO),
        (
            {"warnings": ["NET/OFI Request 0x7f completed with error. RC: 21. Error: 4104 (unreachable remote)"]},
            Status.UNKNOWN,
        ),
        ({"warnings": ["NET/OFI Request 0x7f completed with error. Unresponsive receiver"]}, Status.UNKNOWN),
    ],
)
def test_facts(change, wanted):
    assert status(judge({**EFA, **change})) is wanted


@pytest.mark.parametrize(
    ("name", "instance_type", "wanted"),
    [
        ("p4d-2node-efa.log", "p4d.24xlarge", Status.PASS),
        ("p5-socket-fallback.log", "p5.48xlarge", Status.FAIL),
        ("p5en-direct-warning.log", "p5en.48xlarge", Status.WARN),
        ("p5-socket-fallback.log", "p6e-gb200.36xlarge", Status.FAIL),
        ("p5-socket-fallback.log", "g4dn.xlarge", Status.SKIP),
        ("p5-socket-fallback.log", "none", Status.SKIP),
    ],
)
def test_whole_logs(name, instance_type, wanted):
    assert status(judge(fixture(name), instance_type)) is wanted


def test_fallback_shows_why():
    finding = only(judge(fixture("p5-socket-fallback.log")), Status.FAIL)
    assert finding.remedy is Remedy.FIX_CONFIG
    assert any("No plugin found" in line for line in finding.evidence)


def test_host_memory_is_normal_without_nvswitch():
    assert status(judge({**EFA, "gdrdma": False}, "g6e.48xlarge")) is Status.PASS


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Cuda failure 214 'uncorrectable ECC error encountered'", Remedy.RESET_GPU),
        ("Cuda failure 'uncorrectable NVLink error detected during the execution'", Remedy.RESET_GPU),
        ("Cuda failure 802 'system not yet initialized'", Remedy.FIX_CONFIG),
    ],
)
def test_a_hardware_error_in_a_warning_fails(text, remedy):
    facts = {"info_lines": 3, "network": "AWS Libfabric", "provider": "efa", "gdrdma": True, "warnings": [text]}
    finding = only(judge_facts("nccl_transport", {"nccl_debug": facts}), Status.FAIL)
    assert (finding.remedy, finding.evidence) == (remedy, (text,))
    facts["warnings"] = ["Cuda failure 'an illegal memory access was encountered'"]
    assert not [f for f in judge_facts("nccl_transport", {"nccl_debug": facts}) if f.status is Status.FAIL]


@pytest.mark.parametrize(
    ("change", "wanted", "remedy"),
    [
        ({"warnings": ["NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI Couldn't enable endpoint. RC: -12"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI aws-ofi-nccl initialization failed"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI Unable to register memory (type = 1) for device 0"]}, Status.WARN, Remedy.FIX_CONFIG),
        ({"warnings": ["Error: failed to extend /dev/shm/nccl-a to 9 bytes"]}, Status.WARN, Remedy.FIX_CONFIG),
        (
            {"warnings": ["NET/OFI Unable to insert remote address into address vector"]},
            Status.UNKNOWN,
            Remedy.INVESTIGATE,
        ),
        ({"warnings": ["nvmlDeviceGetHandleByIndex(5) failed: GPU is lost"]}, Status.FAIL, Remedy.REBOOT),
        ({"failures": ["Test CUDA failure 'uncorrectable ECC error encountered'"]}, Status.FAIL, Remedy.RESET_GPU),
    ],
)
def test_what_goes_wrong_beside_the_efa_provider(change, wanted, remedy):
    finding = only(judge({**EFA, **change}), wanted)
    assert (finding.remedy, finding.evidence) == (remedy, tuple(next(iter(change.values()))))


@pytest.mark.parametrize("text", ["Error: network AWS Libfabric not found.", "Failed to initialize any NET plugin"])
def test_no_network_at_all_fails_unless_one_is_used(text):
    none = {"info_lines": 9, "gdrdma": None, "warnings": [text]}
    assert only(judge(none), Status.FAIL).remedy is Remedy.FIX_CONFIG
    assert only(judge({"info_lines": 0, "warnings": [], "failures": [text]}), Status.FAIL)
    assert status(judge({**EFA, "warnings": [text]})) is Status.INFO
    assert only(judge(none, "none"), Status.FAIL).remedy is Remedy.FIX_CONFIG
    assert status(judge(none, "g4dn.xlarge")) is Status.SKIP
    assert "uses Socket" in only(judge({**none, "network": "Socket"}), Status.FAIL).message


def test_one_protocol_without_a_provider_where_the_other_has_one():
    assert status(judge({**EFA, "warnings": ["NET/OFI No eligible providers were found"]})) is Status.INFO


def test_a_failed_request_names_the_peer():
    line = "efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address "
    line += "My host id: i-0aaaaaaaaaaaaaaaa Peer host id: i-0bbbbbbbbbbbbbbbb (7)"
    finding = only(judge({**EFA, "failures": [line]}), Status.FAIL)
    assert ("i-0bbbbbbbbbbbbbbbb" in finding.message, "i-0aaaaaaaaaaaaaaaa" in finding.message) == (True, False)
    assert list(finding.evidence) == [line]


@pytest.mark.parametrize("without", ["network", "provider"])
def test_a_network_or_a_provider_that_is_named_was_found(without):
    facts = {**EFA, without: None, "warnings": ["NET/OFI No eligible providers were found"]}
    assert status(judge(facts)) is Status.INFO


def test_sockets_beside_the_efa_plugin_are_named():
    finding = only(judge({**EFA, "transports": {"NET/AWS Libfabric": 6, "NET/Socket": 2}}), Status.FAIL)
    assert (finding.measured, finding.message) == ("NET/Socket", "NCCL uses NET/Socket instead of EFA")


@pytest.mark.parametrize(
    ("change", "instance_type", "wanted"),
    [
        ({"transports": {"P2P/CUMEM/read": 8}}, "p5.48xlarge", Status.PASS),
        ({"transports": {"SHM/direct/direct": 4, "P2P/CUMEM/read": 4}}, "p5.48xlarge", Status.FAIL),
        ({"transports": {"SHM/direct/direct": 8}, "gdrdma": False}, "g5.48xlarge", Status.PASS),
        ({"nics": 32}, "p5.48xlarge", Status.PASS),
        ({"nics": 15}, "p5en.48xlarge", Status.WARN),
        ({"nics": 1}, "g5.48xlarge", Status.PASS),
        ({"ofi_plugin_version": "1.13.2-aws"}, "p6-b200.48xlarge", Status.FAIL),
        ({"ofi_plugin_version": "1.15.0"}, "p6-b200.48xlarge", Status.PASS),
        ({"ofi_plugin_version": "git-6e504db"}, "p6-b200.48xlarge", Status.PASS),
        ({"ofi_plugin_version": "1.4.0aws"}, "p4d.24xlarge", Status.PASS),
        ({"warnings": ["Mismatched NCCL version detected : rank 0 version 22707 rank 8 version 22606"]}, "p5.48xlarge",
         Status.FAIL),
    ],
)  # fmt: skip
def test_what_the_efa_provider_alone_does_not_tell(change, instance_type, wanted):
    finding = next(f for f in judge({**EFA, **change}, instance_type) if f.status is wanted)
    assert status(judge({**EFA, **change}, instance_type)) is wanted
    if wanted is not Status.PASS:
        assert finding.measured is not None and finding.expected is not None


def test_an_operation_that_hung_is_told_once():
    """PyTorch's watchdog, by hand after ProcessGroupNCCL.cpp: every rank prints it."""
    text = "ip-10-1-0-11:7:8 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)\n"
    for rank in range(3):
        text += (
            f"[rank{rank}]:[E121 18:38:3{rank}.69 ProcessGroupNCCL.cpp:744] [Rank {rank}] Watchdog caught collective "
        )
        text += (
            "operation timeout: WorkNCCL(SeqNum=4720, OpType=ALLREDUCE, NumelIn=4, Timeout(ms)=600000) ran for 1 ms\n"
        )
    finding = only(judge(nccl_debug.parse({"nccl-debug.log": text.encode()})), Status.UNKNOWN)
    assert finding.remedy is Remedy.INVESTIGATE
    assert finding.evidence == ("collective operation timeout: WorkNCCL(SeqNum=4720, OpType=ALLREDUCE",)


HEAD = "ip-10-1-0-11:71:90 [0] NCCL "
STARTED = HEAD + "INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)\n"
COMPLETE = HEAD + "INFO ncclCommInitRank comm 0x5 rank 0 nranks 16 cudaDev 0 busId 53000 commId 0x9 - Init COMPLETE\n"


def judge_log(text, instance_type="p5.48xlarge"):
    return judge(nccl_debug.parse({"nccl-debug.log": text.encode()}), instance_type)


# What jobs print when they die; written by hand after PyTorch's ProcessGroupNCCL.cpp and NCCLUtils, aws-ofi-nccl and
# libfabric's prov/efa. With NCCL's own lines before them, and alone, as from a job without NCCL_DEBUG.
DIED = [
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: /pytorch/ProcessGroupNCCL.cpp:77, ncclRemoteError",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    "[rank0]:[E1121 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0 Rank 0] Process group watchdog thread terminated with "
    "exception: CUDA error: unspecified launch failure",
    "Last error:\nsocketProgress: Connection closed by remote peer ip-10-1-0-12<41000>",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "srun: error: ip-10-1-0-12: task 9: Aborted (core dumped)",
    "mpirun noticed that process rank 3 with PID 0 on node a exited on signal 6 (Aborted).",
    "RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: time-out",
]


@pytest.mark.parametrize("text", DIED)
@pytest.mark.parametrize("before", ["", STARTED + COMPLETE])
@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "g4dn.xlarge", "none"])
def test_a_job_that_died_shows_no_node_to_be_good(text, before, instance_type):
    findings = judge_log(before + text + "\n", instance_type)
    assert only(findings, Status.UNKNOWN).remedy is Remedy.INVESTIGATE
    assert status(findings) is Status.UNKNOWN


PEER = "My EFA addr: fi_addr_efa://[fe80::1]:1:7 My host id: i-0aaaaaaaaaaaaaaaa Peer EFA addr: "
PEER += "fi_addr_efa://[fe80::2]:1:7 Peer host id: "
RC_103 = (
    "NET/OFI Request 0x7f completed with error. RC: 103. Error: 4126 (Unresponsive receiver (reachable by EFA device "
)
RC_103 += "but handshake failed)) "


@pytest.mark.parametrize(
    ("line", "wanted", "who"),
    [
        (HEAD + "WARN " + RC_103 + PEER + "i-0bbbbbbbbbbbbbbbb", Status.FAIL, "i-0bbbbbbbbbbbbbbbb"),
        (HEAD + "WARN " + RC_103 + PEER + "N/A", Status.FAIL, "fi_addr_efa://[fe80::2]"),
        (HEAD + "WARN " + RC_103, Status.UNKNOWN, "not named"),
        (HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 20. Error: 4100 (x)", Status.UNKNOWN, "not named"),
        ("libfabric:7:170::efa:cq:efa_rdm_cq_handle_error():1<warn> Invalid address", Status.UNKNOWN, "not named"),
        ("libfabric:7:170::efa:av:efa_av_insert_one():9<warn> no address handle", Status.UNKNOWN, "not named"),
        (HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 5. Error: 2 (Internal queue pair error (local))",
         Status.FAIL, "device of this node"),
    ],
)  # fmt: skip
def test_a_request_that_failed_blames_the_peer_that_is_named_and_nobody_else(line, wanted, who):
    findings = judge_log(STARTED + COMPLETE + line + "\n")
    assert status(findings) is wanted
    assert who in next(f for f in findings if f.status is wanted).message


def test_requests_that_a_program_left_open_are_no_failure():
    line = (
        HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 5. Error: 1 (Flushed during queue pair destroy)\n"
    )
    assert status(judge_log(STARTED + COMPLETE + line)) is Status.INFO


def test_an_init_that_aborts_with_an_unknown_warning_is_not_go():
    text = STARTED + HEAD + "WARN Something that no list knows\n" + HEAD + "INFO src/init.cc:1358 -> 3\n"
    findings = judge_log(text)
    assert "Something that no list knows" in only(findings, Status.UNKNOWN).message
    assert status(judge_log(STARTED + HEAD + "INFO src/init.cc:1358 -> 3\n")) is Status.UNKNOWN
    assert status(judge_log(STARTED + HEAD + "INFO src/init.cc:1358 -> 7\n")) is Status.PASS


def test_a_warning_after_which_the_same_process_goes_on_is_told_and_does_not_block():
    text = STARTED + HEAD + "WARN Something that no list knows\n"
    assert status(judge_log(text + COMPLETE)) is Status.INFO
    assert status(judge_log(text + COMPLETE.replace(":71:", ":72:"))) is Status.UNKNOWN
    assert status(judge_log(text + "# Avg bus bandwidth    : 480.1\n")) is Status.INFO


@pytest.mark.parametrize(
    "line",
    [
        "ip-10-1-0-11:71:90 [0] find_ofi_provider:543 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available",
        "ip-10-1-0-11:71:90 [0] NCCL INFO Function: find_ofi_provider Line: 9: NET/OFI Couldn't find any optimal provider",
    ],
)
def test_a_plugin_that_finds_no_provider_fails_whatever_the_type(line):
    for kind in ("p5.48xlarge", "none"):
        assert only(judge_log(line + "\n", kind), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_p2p_off_between_gpus_that_nvlink_connects():
    text = STARTED + HEAD + "WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case\n"
    assert only(judge_log(text + COMPLETE), Status.FAIL).remedy is Remedy.FIX_CONFIG


@pytest.mark.parametrize(
    "warning",
    [
        "configure_nvls_option:287 NCCL WARN NET/OFI Could not find ncclGetVersion symbol",
        "NCCL WARN NET/OFI Failed to initialize GDRCopy: Failed to open gdr handle",
        "misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
    ],
)
def test_what_the_network_does_without_is_no_error_of_a_job_that_logs_warnings_alone(warning):
    text = f"NCCL version 2.26.2+cuda12.8\nip-10-1-0-11:71:90 [0] {warning}\nepoch 3 loss 1.9\n"
    assert Status.UNKNOWN not in {finding.status for finding in judge_log(text, "g5.12xlarge")}


def test_a_completion_error_of_verbs_names_the_peer():
    error = (
        "transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.1.0.12<41002> with error 12, opcode 0"
    )
    finding = only(judge_log(f"ip-10-1-0-11:71:90 [0] {error}, len 0, vendor err 129\n", "none"), Status.FAIL)
    assert "10.1.0.12 or the path to it failed" in finding.message


def test_a_dead_job_is_told_with_the_last_error_that_pytorch_quotes():
    text = "[rank3]: ncclUnhandledCudaError: a call failed.\n[rank3]: Last error:\n[rank3]: could not map 2 MiB\n"
    assert "could not map 2 MiB" in only(judge_log(text, "none"), Status.UNKNOWN).message


def test_a_queue_that_cannot_be_made_is_no_error_of_a_peer():
    text = (
        "libfabric:71:1764000000::efa:cq:efa_rdm_cq_open():688<warn> Unable to create extended CQ: Invalid argument\n"
    )
    findings = judge_log(text + STARTED, "p5.48xlarge")
    assert not any("peer" in finding.message for finding in findings)
