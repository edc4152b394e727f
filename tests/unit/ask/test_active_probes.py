"""The probes that load the GPUs: what they run, in which level, and what becomes of their exit status.

The tools are stand-ins that print their own arguments: this proves the plumbing, not detection.
"""

import pytest

from flightline_node.ask.probes import BY_ID, plan
from flightline_node.ask.runner import Node, run_probes
from flightline_node.read.bundle import load, write_manifest
from flightline_node.read.facts import READ, UNREADABLE, FactBook
from tests.unit.made import program

SMI = "echo 'GPU 0: NVIDIA H100 (UUID: GPU-a)'; echo '  MIG 1g.10gb Device 0: (UUID: MIG-b)'; echo 'GPU 1: NVIDIA H100'"


@pytest.fixture
def node(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()

    def tool(name, script):
        program(tools / name, script)

    node = Node(root=str(tmp_path / "root"), tool_path=(str(tools),))
    return node, tool, tmp_path


def run(node, probe_id, out_dir):
    (result,) = run_probes([BY_ID[probe_id]], node, out_dir, {})
    return result, (out_dir / BY_ID[probe_id].file).read_text()


def facts_of(out_dir, result, parser):
    write_manifest(out_dir, host="h", instance_id="", instance_type="", collected_at="", probes=[result])
    return FactBook(load(out_dir)).get(parser)


def test_levels():
    quick, standard, deep = ({probe.id for probe in plan(level)} for level in ("quick", "standard", "deep"))
    active = {"dcgm-diag", "nccl-all_reduce", "nccl-all_gather", "nccl-reduce_scatter", "nccl-alltoall"}
    assert active <= standard
    assert not active & quick
    assert "dcgm-diag" not in deep
    assert "dcgm-diag-deep" in deep


@pytest.mark.parametrize("level", ["quick", "standard", "deep"])
def test_no_two_probes_of_a_level_write_the_same_file(level):
    files = [probe.file for probe in plan(level)]
    assert len(files) == len(set(files))


def test_what_loads_the_gpus_runs_alone():
    loading = [probe for probe in plan("deep") if probe.id.startswith(("dcgm-diag", "nccl-"))]
    assert len(loading) == 5
    assert all(probe.exclusive and probe.deadline_s > 60 for probe in loading)


@pytest.mark.parametrize(("probe_id", "most"), [("nccl-all_reduce", "8G"), ("nccl-all_reduce-deep", "16G")])
def test_nccl_uses_every_gpu(node, probe_id, most):
    where, tool, out = node
    tool("nvidia-smi", SMI)
    tool("all_reduce_perf", 'echo "$@"')
    result, text = run(where, probe_id, out)
    assert result.rc == 0
    assert f"-e {most} " in text
    assert " -g 2 " in text


def test_nccl_tests_beside_cuda_are_found(node):
    where, tool, out = node
    tool("nvidia-smi", SMI)
    beside = out / "root/usr/local/cuda-12.9/efa/test-cuda-12.9"
    program(beside / "alltoall_perf", "echo found")
    assert run(where, "nccl-alltoall", out)[1] == "found\n"


def test_nccl_without_a_gpu_says_so(node):
    where, tool, out = node
    tool("nvidia-smi", "exit 9")
    tool("all_reduce_perf", "echo no")
    result, text = run(where, "nccl-all_reduce", out)
    assert (result.rc, text) == (1, "")
    assert "lists no GPU" in result.stderr
    parsed = facts_of(out, result, "nccl_tests")
    assert parsed.state == UNREADABLE
    assert "nccl-all_reduce: exit status 1 (nvidia-smi -L lists no GPU)" in parsed.reason


@pytest.mark.parametrize(("rc", "trusted"), [(0, True), (226, True), (205, True), (217, False), (137, False)])
def test_dcgm_exit_status(node, rc, trusted):
    where, tool, out = node
    test = '{"name":"memory","results":[{"entity_group":"GPU","entity_id":0,"status":"Pass"}]}'
    document = '{"DCGM Diagnostic":{"test_categories":[{"category":"Hardware","tests":[' + test + "]}]}}"
    tool("dcgmi", f"echo '{document}'; exit {rc}")
    parsed = facts_of(out, run(where, "dcgm-diag", out)[0], "dcgm_diag")
    assert parsed.state == READ
    assert (parsed.caveat == "") is trusted


FOUND = "provider: efa\\n    fabric: efa\\n    domain: %s-rdm\\n    type: FI_EP_RDM\\n"
TABLE = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec"
ROW = "1m      100     =100     200m        0.08s   2560.94     409.45       0.00"


def two_devices(tool):
    """fi_info lists each device twice, as libfabric 2 does for its two fabrics."""
    domains = "".join(FOUND % name for name in ("rdmap1s0", "rdmap1s0", "rdmap2s0"))
    tool("fi_info", f"printf '{domains}'")


def test_efa_loopback_tests_each_device_against_itself(node):
    where, tool, out = node
    two_devices(tool)
    tool("fi_pingpong", f'echo "$FI_EFA_ENABLE_SHM_TRANSFER $*" >> {out}/calls; echo "{TABLE}"; echo "{ROW}"')
    result, _ = run(where, "efa-loopback", out)
    runs = facts_of(out, result, "efa_loopback").facts["runs"]
    assert [(run["domain"], run["rc"], run["largest"]["usec"]) for run in runs] == [
        ("rdmap1s0-rdm", 0, 409.45),
        ("rdmap2s0-rdm", 0, 409.45),
    ]
    calls = (out / "calls").read_text().splitlines()
    clients = sorted(call for call in calls if call.endswith("localhost"))
    assert len(calls) == 4
    assert [call.split("-d ")[1] for call in clients] == [
        f"rdmap{number}s0-rdm -I 100 -S all -c -P4760{number - 1} localhost" for number in (1, 2)
    ]
    assert all(call.startswith("0 -p efa -e rdm ") for call in calls)


def test_efa_loopback_keeps_what_a_broken_device_says(node):
    where, tool, out = node
    two_devices(tool)
    tool(
        "fi_pingpong",
        f'case "$*" in *rdmap2*) echo "fi_cq_readerr: 4113" >&2; exit 5;; esac; echo "{TABLE}"; echo "{ROW}"',
    )
    result, _ = run(where, "efa-loopback", out)
    good, bad = facts_of(out, result, "efa_loopback").facts["runs"]
    assert (good["rc"], bad["rc"], bad["said"]) == (0, 5, ["fi_cq_readerr: 4113"])


def test_efa_loopback_waits_for_the_server_and_stops_it(node):
    where, tool, out = node
    tool("fi_info", f"printf '{FOUND % 'rdmap1s0'}'")
    (out / "root/proc/net").mkdir(parents=True)
    # The server "listens" when its port is in the kernel's list.
    listening = f"   0: 00000000:{47600:04X} 00000000:0000 0A"
    server = f"sleep 0.2; echo '{listening}' > {out}/root/proc/net/tcp; exec sleep 60"
    client = f'[ -e {out}/root/proc/net/tcp ] || exit 9; echo "{TABLE}"; echo "{ROW}"'
    tool("fi_pingpong", f'case "$*" in *localhost) {client};; *) {server};; esac')
    result, text = run(where, "efa-loopback", out)
    assert (result.rc, result.timed_out) == (0, False)
    assert "# exit 0" in text
    assert result.seconds < 30


def test_efa_loopback_uses_fabtests_where_it_is_installed(node):
    where, tool, out = node
    two_devices(tool)
    tool("fi_pingpong", f'echo "{TABLE}"; echo "{ROW}"')
    tool("fi_rdm_bw", 'echo "$*"')
    result, text = run(where, "efa-loopback-deep", out)
    runs = facts_of(out, result, "efa_loopback").facts["runs"]
    assert [run["tool"] for run in runs] == ["fi_pingpong", "fi_rdm_bw"] * 2
    assert "-p efa -d rdmap1s0-rdm -S 1048576 -I 1000 -E=47601 localhost" in text


def test_efa_loopback_without_a_device_says_why(node):
    where, tool, out = node
    tool("fi_info", "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61")
    result, text = run(where, "efa-loopback", out)
    assert (result.rc, text) == (1, "")
    assert "fi_getinfo: -61" in result.stderr


def test_an_old_nvbandwidth_is_asked_for_text(node):
    where, tool, out = node
    tool("nvbandwidth", 'case "$*" in *-j*) echo "unrecognised option -j"; exit 1;; esac; echo "$@"')
    result, text = run(where, "nvbandwidth", out)
    assert result.rc == 0
    assert text.split()[:3] == ["-t", "host_to_device_memcpy_ce", "device_to_host_memcpy_ce"]
    tool("nvbandwidth", 'echo "$@"')
    assert run(where, "nvbandwidth-deep", out)[1].split()[:5] == ["-j", "-b", "1024", "-i", "5"]


def test_nvbandwidth_of_dcgm_is_found(node):
    where, _, out = node
    beside = out / "root/usr/libexec/datacenter-gpu-manager-4/plugins/cuda12"
    program(beside / "nvbandwidth", "echo found")
    assert run(where, "nvbandwidth", out)[1] == "found\n"


def test_all_four_collectives_run_at_both_levels():
    wanted = {f"nccl-{name}.log" for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall")}
    for level in ("standard", "deep"):
        assert {probe.file for probe in plan(level) if probe.id.startswith("nccl-")} == wanted


def test_every_active_test_is_short_at_standard_and_long_at_deep():
    short, long = (
        {probe.file: probe.deadline_s for probe in plan(level) if probe.exclusive} for level in ("standard", "deep")
    )
    assert set(short) < set(long)
    assert all(long[file] > short[file] for file in short)


def test_fi_info_error_reaches_its_parser(node):
    where, tool, out = node
    tool("fi_info", "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61")
    result, _ = run(where, "fi-info", out)
    assert result.rc == 61
    assert facts_of(out, result, "fi_info").facts["error"] == "fi_getinfo: -61 (No data available)"
