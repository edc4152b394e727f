"""NCCL_DEBUG=INFO: network, provider, GPUDirect RDMA, warnings, over versions of NCCL and the plugin."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import nccl_debug
from tests.harness import sample


def read(name, file="nccl-debug.log", folder="nccl_debug"):
    return nccl_debug.parse({file: sample(f"{folder}/{name}")})


def test_efa_old_wording():
    facts = read("p4d-2node-efa.log")
    assert {key: facts[key] for key in ("nccl_version", "ofi_plugin_version", "network", "provider", "gdrdma")} == {
        "nccl_version": "2.14.3",
        "ofi_plugin_version": "1.5.0aws",
        "network": "AWS Libfabric",
        "provider": "efa",
        "gdrdma": True,
    }
    assert (facts["nccl_cuda_version"], facts["nics"], facts["ranks"], facts["hosts"]) == ("11.7", 4, 16, 2)
    assert facts["transports"] == {"NET/AWS Libfabric": 1, "P2P/IPC/read": 1}
    assert facts["warnings"] == []


def test_new_wording_channel_beats_capability_and_warnings():
    facts = read("p5en-direct-warning.log")
    assert (facts["nccl_version"], facts["ofi_plugin_version"]) == ("2.29.2", "1.18.0")
    assert (facts["network"], facts["provider"], facts["fabrics"], facts["nics"]) == (
        "Libfabric",
        "efa",
        ["efa-direct"],
        16,
    )
    assert facts["gdrdma"] is False
    assert facts["warnings"] == ["socketProgress: Connection closed by remote peer ip-10-1-0-42<51422>"]


def test_socket_fallback():
    facts = read("p5-socket-fallback.log")
    assert (facts["network"], facts["gdrdma"]) == ("Socket", False)
    assert "provider" not in facts
    assert facts["plugin_trouble"] == ["NET/Plugin: No plugin found (libnccl-net.so)", "NET/IB : No device found."]
    assert facts["transports"] == {"NET/Socket": 1}


def test_lines_inside_a_test_log():
    facts = read("h100-2node-all_reduce-debug.log", "nccl-all_reduce.log", "nccl_tests")
    assert (facts["network"], facts["provider"], facts["gdrdma"], facts["nvls"]) == ("Libfabric", "efa", True, True)
    assert (facts["nccl_version"], facts["hosts"]) == ("2.27.7", 2)


def test_test_log_without_debug_lines_is_no_error():
    facts = read("h100-8gpu-all_reduce.log", "nccl-all_reduce.log", "nccl_tests")
    assert (facts["info_lines"], facts["nccl_version"], facts["gdrdma"]) == (0, "2.27.5", None)
    assert "network" not in facts


def test_one_rank_on_sockets_is_seen_among_good_ones():
    good = b"a:1:1 [0] NCCL INFO Using network AWS Libfabric\n"
    facts = nccl_debug.parse({"nccl-debug.log": good + b"b:1:1 [0] NCCL INFO Using network Socket\n" + good})
    assert (facts["network"], facts["networks"]) == ("Socket", ["AWS Libfabric", "Socket"])


def test_provider_with_a_star_and_another_provider():
    line = b"a:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa*\n"
    assert nccl_debug.parse({"nccl-debug.log": line})["provider"] == "efa"
    line += b"a:1:1 [0] NCCL INFO NET/OFI Selected provider is tcp;ofi_rxm, fabric is 10.0.0.0/24 (found 1 nics)\n"
    assert nccl_debug.parse({"nccl-debug.log": line})["provider"] == "tcp;ofi_rxm"


def test_no_network_channel_is_none():
    facts = nccl_debug.parse({"nccl-debug.log": b"a:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/CUMEM\n"})
    assert facts["gdrdma"] is None


def test_warnings_are_kept_once_and_bounded():
    lines = "".join(f"a:1:1 [0] x.cc:1 NCCL WARN error {number % 300}\n" for number in range(900))
    warnings = nccl_debug.parse({"nccl-debug.log": lines.encode()})["warnings"]
    assert len(warnings) == nccl_debug.MAX_TEXTS
    assert warnings[:2] == ["error 0", "error 1"]


@pytest.mark.parametrize("data", [b"", b"\x00", b"a,b\n1,2\n"])
def test_a_job_log_without_nccl(data):
    with pytest.raises(ParseError):
        nccl_debug.parse({"nccl-debug.log": data})


@pytest.mark.parametrize(
    "line",
    [
        "ip-10-1-0-11: Test CUDA failure common.cu:941 'system not yet initialized'",
        "[rank0]: Cuda failure 802 'system not yet initialized'",
        "ncclInvalidUsage: last error: Failed to initialize any NET plugin",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4096 : CUDA error 401 'the operation'",
    ],
)
def test_what_the_program_says_of_its_failure(line):
    facts = nccl_debug.parse({"nccl-debug.log": f"step 1\n{line}\n{line}\n".encode()})
    assert (facts["failures"], facts["info_lines"], facts["warnings"]) == ([line], 0, [])


def test_hosts_behind_a_label():
    line = "ip-10-1-0-{0}: ip-10-1-0-{0}:9:9 [0] NCCL INFO Using network AWS Libfabric\n"
    assert nccl_debug.parse({"nccl-debug.log": (line.format(1) + line.format(2)).encode()})["hosts"] == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address Peer host id: i-0a1 (7)", True),
        ("efa:cq:rxr_cq_handle_error():99<warn> err: 113, message: Unresponsive receiver (13)", True),
        ("efa:cq:efa_rdm_rxe_handle_error():610<info> err: 5, message: Flushed during queue pair destroy (1)", False),
        ("efa:core:efa_device_construct():120<warn> no message", False),
    ],
)
def test_a_request_that_libfabric_gave_up(text, kept):
    """ofiwg/libfabric, prov/efa/src/rdm/efa_rdm_ope.c: "err: %d, message: %s (%d)"."""
    log = f"a:1:2 [0] NCCL INFO Using network Libfabric\nlibfabric:7:1708520807::{text}\n"
    facts = nccl_debug.parse({"nccl-debug.log": (log * 2).encode()})
    assert facts.get("failures", []) == ([text] if kept else [])


def test_where_in_nccl_a_cuda_failure_came_from():
    """NVIDIA/nccl 976, 1488: in transport/nvls.cc it is the Fabric Manager's."""
    text = "Cuda failure 1 'invalid argument'"
    log = f"a:1:2 [0] transport/nvls.cc:254 NCCL WARN {text}\na:1:2 [1] transport/p2p.cc:9 NCCL WARN {text}\n"
    facts = nccl_debug.parse({"nccl-debug.log": log.encode()})
    assert (facts["warnings"], facts["failures"]) == ([text], [f"transport/nvls.cc: {text}"])
    other = nccl_debug.parse({"nccl-debug.log": log.replace("nvls", "net").encode()})
    assert "failures" not in other
