"""Lines of other logs than the kernel's that nobody understands: UNKNOWN in an error's shape, else counted. Made by hand."""

import pytest
from click.testing import CliRunner

from flightline.commands.judge import command
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import BLOCKING, Status
from flightline_node.read.parsers import nccl_debug
from flightline_node.settings import build
from tests.harness import NOW, InMemory, only, sample

INFO = "ip-10-1-0-11:7000:7100 [0] NCCL INFO "
GOOD = f"{INFO}NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)\n{INFO}Using network Libfabric\n"
LOGS = {
    "nccl-debug.log": ("nccl_transport", "p5.48xlarge", GOOD),
    "nccl-all_reduce.log": ("nccl_transport", "p5.48xlarge", sample("nccl_tests/h100-8gpu-all_reduce.log").decode()),
    "fabric-log.txt": ("fabric_manager", "p6-b200.48xlarge", sample("fabric_log/b200-configured.txt").decode()),
    "fi-info.txt": ("efa_provider", "p5.48xlarge", sample("fi_info/p5-32-devices.txt").decode()),
    "imex.txt": ("imex", "p6e-gb200.36xlarge", "READY\nNode #0 - 10.0.0.1 - READY - Version: 580\nDomain State: UP\n"),
    "dcgm-diag.json": ("dcgm_diag", "p5.48xlarge", sample("dcgm_diag/3x-pass.json").decode()),
    "lnetctl.txt": ("lnet", "p5.48xlarge", sample("lnet/efa.txt").decode()),
}
STRANGE = "NVLink lane 3 of the flux capacitor failed"


def findings(file, text):
    check, kind, _ = LOGS[file]
    judged = judge(InMemory({file: text.encode()}), resolve(kind), build(level="deep"), NOW, required=False)
    return [one for one in judged.findings if one.check == check]


@pytest.mark.parametrize("file", LOGS)
def test_a_strange_error_is_unknown_once_with_its_count_and_a_healthy_log_is_quiet(file):
    text = LOGS[file][2]
    assert not {one.status for one in findings(file, text)} & BLOCKING
    found = only(findings(file, f"{text}\n{STRANGE}\n{STRANGE.replace('3', '5')}\n"), Status.UNKNOWN)
    assert (found.reason, found.measured, found.evidence) == ("not_understood", 2, (f"2 times: {STRANGE}",))


def test_what_speaks_of_no_failure_is_counted_in_the_pass():
    (found,) = findings("nccl-debug.log", GOOD + "step 7, loss 2.1\neval error 0.3\n")
    assert found.message.endswith("; 2 lines were not understood")


def test_unread_lists_them(tmp_path):
    (tmp_path / "nccl-debug.log").write_text(GOOD + STRANGE)
    shown = CliRunner().invoke(command, [str(tmp_path), "--instance-type", "p5.48xlarge", "--unread"])
    assert shown.exit_code == 1 and f"nccl_debug  {STRANGE}" in shown.output


@pytest.mark.parametrize(
    "text",
    [
        "NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.", "TUNER/Plugin: Failed to find ncclTunerPlugin_v3 symbol.",
        "Failed to open libibverbs.so[.1]", "comm 0x7f9c rank 0 nranks 16 cudaDev 0 busId 101c0 - Abort COMPLETE", "NCCL_IB_TIMEOUT set by environment to 22.",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING set by environment to 1.", "RAS connInit hash mismatch (my peersHash 0x1, deadPeersHash 0x0); sending my (dead) peers",
        "NET/OFI Failed to initialize rdma protocol", "Failed to register memory with DMA-BUF, error=2. Trying a different method.",
        "rank 3 failed to NVLS register sendbuff 0x1 sendbuffSize 2 recvbuff 0x3 recvbuffSize 4", "socketProgressOpt: abort called",
    ],
)  # fmt: skip
def test_what_nccl_tries_and_does_without_is_harmless(text):
    assert "not_understood" not in nccl_debug.parse({"nccl-debug.log": (GOOD + INFO + text).encode()})
