"""nccl_transport: EFA or not, told by what NCCL itself printed."""

import pytest

from flightline_node.model import Remedy
from flightline_node.read.parsers import nccl_debug
from tests.harness import only, sample, status

from .table import FAIL, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

EFA = {"info_lines": 9, "network": "AWS Libfabric", "provider": "efa", "gdrdma": True, "warnings": []}


def judge(facts, instance_type="p5.48xlarge"):
    return judging("nccl_transport", {"nccl_debug": facts}, instance_type)


def fixture(name):
    return nccl_debug.parse({"nccl-debug.log": sample(f"nccl_debug/{name}")})


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
PEER = "My EFA addr: fi_addr_efa://[fe80::1]:1:7 My host id: i-0aaaaaaaaaaaaaaaa Peer EFA addr: "
PEER += "fi_addr_efa://[fe80::2]:1:7 Peer host id: "
RC_103 = (
    "NET/OFI Request 0x7f completed with error. RC: 103. Error: 4126 (Unresponsive receiver (reachable by EFA device "
)
RC_103 += "but handshake failed)) "


test_nccl_transport = table(
    *(row("facts", judge({**EFA, **change}), wanted)
        for change, wanted in (
            ({}, PASS),
            ({"network": "Libfabric", "gdrdma": None}, PASS),
            ({"network": "Socket"}, FAIL),
            ({"network": "IB"}, FAIL),
            ({"transports": {"NET/Socket": 2}}, FAIL),
            ({"provider": "tcp;ofi_rxm"}, FAIL),
            ({"provider": None, "gdrdma": None}, UNKNOWN),
            ({"provider": None}, PASS),
            ({"network": None, "provider": None, "gdrdma": None}, SKIP),
            ({"info_lines": 0}, SKIP),
            ({"gdrdma": False}, WARN),
            ({"warnings": ["socketProgress: Connection closed"]}, INFO),
            ({"warnings": ["NET/OFI Request 0x7f completed with error. RC: 21. Error: 4104 (unreachable remote)"]},
                FAIL),
            ({"warnings": ["NET/OFI Request 0x7f completed with error. Unresponsive receiver"]}, FAIL),
        )),
    *(row("whole logs", judge(fixture(name), instance_type), wanted)
        for name, instance_type, wanted in [
            ("p4d-2node-efa.log", "p4d.24xlarge", PASS),
            ("p5-socket-fallback.log", "p5.48xlarge", FAIL),
            ("p5en-direct-warning.log", "p5en.48xlarge", WARN),
            ("p5-socket-fallback.log", "p6e-gb200.36xlarge", FAIL),
            ("p5-socket-fallback.log", "g4dn.xlarge", SKIP),
            ("p5-socket-fallback.log", "none", FAIL),
        ]),
    row("host memory is normal without NVSwitch", judge({**EFA, "gdrdma": False}, "g6e.48xlarge"), PASS),
    *(row("what goes wrong beside the EFA provider", judge({**EFA, **change}), wanted, remedy=remedy,
        evidence=tuple(next(iter(change.values()))))
        for change, wanted, remedy in [
            ({"warnings": ["NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument"]}, FAIL, Remedy.FIX_CONFIG),
            ({"warnings": ["NET/OFI Couldn't enable endpoint. RC: -12"]}, FAIL, Remedy.FIX_CONFIG),
            ({"warnings": ["NET/OFI aws-ofi-nccl initialization failed"]}, FAIL, Remedy.FIX_CONFIG),
            ({"warnings": ["NET/OFI Unable to register memory (type = 1) for device 0"]}, WARN, Remedy.FIX_CONFIG),
            ({"warnings": ["Error: failed to extend /dev/shm/nccl-a to 9 bytes"]}, WARN, Remedy.FIX_CONFIG),
            ({"warnings": ["NET/OFI Unable to insert remote address into address vector"]}, FAIL,
                Remedy.INVESTIGATE),
            ({"warnings": ["nvmlDeviceGetHandleByIndex(5) failed: GPU is lost"]}, FAIL, Remedy.REBOOT),
            ({"failures": ["Test CUDA failure 'uncorrectable ECC error encountered'"]}, FAIL, Remedy.RESET_GPU),
        ]),
    *(each
        for text in ["Error: network AWS Libfabric not found.", "Failed to initialize any NET plugin"]
        for none in [{"info_lines": 9, "gdrdma": None, "warnings": [text]}]
        for each in (
        row("no network at all fails unless one is used", judge(none), FAIL, remedy=Remedy.FIX_CONFIG),
        row("no network at all fails unless one is used", judge({"info_lines": 0, "warnings": [], "failures": [text]}),
            FAIL, count=1),
        row("no network at all fails unless one is used", judge({**EFA, "warnings": [text]}), INFO),
        row("no network at all fails unless one is used", judge(none, "none"), FAIL, remedy=Remedy.FIX_CONFIG),
        row("no network at all fails unless one is used", judge(none, "g4dn.xlarge"), SKIP),
        row("no network at all fails unless one is used", judge({**none, "network": "Socket"}), FAIL,
            says="uses Socket"),
    )),
    row("one protocol without a provider where the other has one",
        judge({**EFA, "warnings": ["NET/OFI No eligible providers were found"]}), INFO),
    *(row("a network or a provider that is named was found",
        judge({**EFA, without: None, "warnings": ["NET/OFI No eligible providers were found"]}), INFO)
        for without in ["network", "provider"]),
    row("sockets beside the EFA plugin are named",
        judge({**EFA, "transports": {"NET/AWS Libfabric": 6, "NET/Socket": 2}}), FAIL, measured="NET/Socket",
        message="NCCL uses NET/Socket instead of EFA"),
    *(row("a job that died shows no node to be good", judge_log(before + text + "\n", instance_type), UNKNOWN,
        remedy=Remedy.INVESTIGATE)
        for instance_type in ["p5.48xlarge", "g4dn.xlarge", "none"]
        for before in ["", STARTED + COMPLETE]
        for text in DIED),
    row("requests that a program left open are no failure",
        judge_log(STARTED + COMPLETE + (HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 5. Error: 1 (Flushed during queue pair destroy)\n")),
        INFO),
    row("an init that aborts with an unknown warning is not go",
        judge_log(STARTED + HEAD + "WARN Something that no list knows\n" + HEAD + "INFO src/init.cc:1358 -> 3\n"),
        UNKNOWN, says="Something that no list knows"),
    row("an init that aborts with an unknown warning is not go",
        judge_log(STARTED + HEAD + "INFO src/init.cc:1358 -> 3\n"), UNKNOWN),
    row("an init that aborts with an unknown warning is not go",
        judge_log(STARTED + HEAD + "INFO src/init.cc:1358 -> 7\n"), PASS),
    *(each for text in [STARTED + HEAD + "WARN Something that no list knows\n"] for each in (
        row("a warning after which the same process goes on is told and does not block", judge_log(text + COMPLETE),
            INFO),
        row("a warning after which the same process goes on is told and does not block",
            judge_log(text + COMPLETE.replace(":71:", ":72:")), UNKNOWN),
        row("a warning after which the same process goes on is told and does not block",
            judge_log(text + "# Avg bus bandwidth    : 480.1\n"), INFO),
    )),
    *(row("a plugin that finds no provider fails whatever the type", judge_log(line + "\n", kind), FAIL,
        remedy=Remedy.FIX_CONFIG)
        for line in [
            "ip-10-1-0-11:71:90 [0] find_ofi_provider:543 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available",
            "ip-10-1-0-11:71:90 [0] NCCL INFO Function: find_ofi_provider Line: 9: NET/OFI Couldn't find any optimal provider",
        ]
        for kind in ("p5.48xlarge", "none")),
    row("P2P off between GPUs that NVLink connects",
        judge_log((STARTED + HEAD + "WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case\n") + COMPLETE),
        FAIL, remedy=Remedy.FIX_CONFIG),
    row("a dead job is told with the last error that PyTorch quotes",
        judge_log("[rank3]: ncclUnhandledCudaError: a call failed.\n[rank3]: Last error:\n[rank3]: could not map 2 MiB\n",
        "none"), UNKNOWN, says="could not map 2 MiB"),
)  # fmt: skip


def test_fallback_shows_why():
    finding = only(judge(fixture("p5-socket-fallback.log")), FAIL)
    assert finding.remedy is Remedy.FIX_CONFIG
    assert any("No plugin found" in line for line in finding.evidence)


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
    finding = only(judging("nccl_transport", {"nccl_debug": facts}), FAIL)
    assert (finding.remedy, finding.evidence) == (remedy, (text,))
    facts["warnings"] = ["Cuda failure 'an illegal memory access was encountered'"]
    assert not [f for f in judging("nccl_transport", {"nccl_debug": facts}) if f.status is FAIL]


def test_a_failed_request_names_the_peer():
    line = "efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address "
    line += "My host id: i-0aaaaaaaaaaaaaaaa Peer host id: i-0bbbbbbbbbbbbbbbb (7)"
    finding = only(judge({**EFA, "failures": [line]}), FAIL)
    assert ("i-0bbbbbbbbbbbbbbbb" in finding.message, "i-0aaaaaaaaaaaaaaaa" in finding.message) == (True, False)
    assert list(finding.evidence) == [line]


@pytest.mark.parametrize(
    ("change", "instance_type", "wanted"),
    [
        ({"transports": {"P2P/CUMEM/read": 8}}, "p5.48xlarge", PASS),
        ({"transports": {"SHM/direct/direct": 4, "P2P/CUMEM/read": 4}}, "p5.48xlarge", FAIL),
        ({"transports": {"SHM/direct/direct": 8}, "gdrdma": False}, "g5.48xlarge", PASS),
        ({"nics": 32}, "p5.48xlarge", PASS),
        ({"nics": 15}, "p5en.48xlarge", WARN),
        ({"nics": 1}, "g5.48xlarge", PASS),
        ({"ofi_plugin_version": "1.13.2-aws"}, "p6-b200.48xlarge", FAIL),
        ({"ofi_plugin_version": "1.15.0"}, "p6-b200.48xlarge", PASS),
        ({"ofi_plugin_version": "git-6e504db"}, "p6-b200.48xlarge", PASS),
        ({"ofi_plugin_version": "1.4.0aws"}, "p4d.24xlarge", PASS),
        ({"warnings": ["Mismatched NCCL version detected : rank 0 version 22707 rank 8 version 22606"]}, "p5.48xlarge",
         FAIL),
    ],
)  # fmt: skip
def test_what_the_efa_provider_alone_does_not_tell(change, instance_type, wanted):
    finding = next(f for f in judge({**EFA, **change}, instance_type) if f.status is wanted)
    assert status(judge({**EFA, **change}, instance_type)) is wanted
    if wanted is not PASS:
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
    finding = only(judge(nccl_debug.parse({"nccl-debug.log": text.encode()})), UNKNOWN)
    assert finding.remedy is Remedy.INVESTIGATE
    assert finding.evidence == ("collective operation timeout: WorkNCCL(SeqNum=4720, OpType=ALLREDUCE",)


@pytest.mark.parametrize(
    ("line", "wanted", "who"),
    [
        (HEAD + "WARN " + RC_103 + PEER + "i-0bbbbbbbbbbbbbbbb", FAIL, "i-0bbbbbbbbbbbbbbbb"),
        (HEAD + "WARN " + RC_103 + PEER + "N/A", FAIL, "fi_addr_efa://[fe80::2]"),
        (HEAD + "WARN " + RC_103, FAIL, "not named"),
        (HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 20. Error: 4100 (x)", FAIL, "not named"),
        ("libfabric:7:170::efa:cq:efa_rdm_cq_handle_error():1<warn> Invalid address", FAIL, "not named"),
        ("libfabric:7:170::efa:av:efa_av_insert_one():9<warn> no address handle", FAIL, "not named"),
        (HEAD + "WARN NET/OFI Request 0x7f completed with error. RC: 5. Error: 2 (Internal queue pair error (local))",
         FAIL, "device of this node"),
    ],
)  # fmt: skip
def test_a_request_that_failed_fails_and_blames_no_peer_but_the_one_that_is_named(line, wanted, who):
    findings = judge_log(STARTED + COMPLETE + line + "\n")
    assert status(findings) is wanted
    assert who in next(f for f in findings if f.status is wanted).message


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
    assert UNKNOWN not in {finding.status for finding in judge_log(text, "g5.12xlarge")}


def test_a_completion_error_of_verbs_names_the_peer():
    error = (
        "transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.1.0.12<41002> with error 12, opcode 0"
    )
    finding = only(judge_log(f"ip-10-1-0-11:71:90 [0] {error}, len 0, vendor err 129\n", "none"), FAIL)
    assert "10.1.0.12 or the path to it failed" in finding.message


def test_a_queue_that_cannot_be_made_is_no_error_of_a_peer():
    text = (
        "libfabric:71:1764000000::efa:cq:efa_rdm_cq_open():688<warn> Unable to create extended CQ: Invalid argument\n"
    )
    findings = judge_log(text + STARTED, "p5.48xlarge")
    assert not any("peer" in finding.message for finding in findings)
