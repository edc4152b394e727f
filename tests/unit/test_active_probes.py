"""The probes that load the GPUs: what they run, in which level, and what becomes of their exit status.

The tools are stand-ins that print their own arguments: this proves the plumbing, not detection.
"""

import pytest

from flightline_node.bundle import load, write_manifest
from flightline_node.facts import READ, UNREADABLE, FactBook
from flightline_node.probes import BY_ID, plan
from flightline_node.runner import Node, run_probes

SMI = "echo 'GPU 0: NVIDIA H100 (UUID: GPU-a)'; echo '  MIG 1g.10gb Device 0: (UUID: MIG-b)'; echo 'GPU 1: NVIDIA H100'"


@pytest.fixture
def node(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()

    def tool(name, script):
        path = tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

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
    loading = [probe for probe in plan("deep") if probe.id.startswith(("dcgm", "nccl-"))]
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
    beside.mkdir(parents=True)
    (beside / "alltoall_perf").write_text("#!/bin/sh\necho found\n")
    (beside / "alltoall_perf").chmod(0o755)
    assert run(where, "nccl-alltoall", out)[1] == "found\n"


def test_nccl_without_a_gpu_says_so(node):
    where, tool, out = node
    tool("nvidia-smi", "exit 9")
    tool("all_reduce_perf", "echo no")
    result, text = run(where, "nccl-all_reduce", out)
    assert (result.rc, text) == (1, "")
    assert "lists no GPU" in result.stderr
    assert facts_of(out, result, "nccl_tests").state == UNREADABLE


@pytest.mark.parametrize(("rc", "trusted"), [(0, True), (226, True), (205, True), (217, False), (137, False)])
def test_dcgm_exit_status(node, rc, trusted):
    where, tool, out = node
    test = '{"name":"memory","results":[{"entity_group":"GPU","entity_id":0,"status":"Pass"}]}'
    document = '{"DCGM Diagnostic":{"test_categories":[{"category":"Hardware","tests":[' + test + "]}]}}"
    tool("dcgmi", f"echo '{document}'; exit {rc}")
    parsed = facts_of(out, run(where, "dcgm-diag", out)[0], "dcgm_diag")
    assert parsed.state == READ
    assert (parsed.doubt == "") is trusted


def test_fi_info_error_reaches_its_parser(node):
    where, tool, out = node
    tool("fi_info", "echo 'fi_getinfo: -61 (No data available)' >&2; exit 61")
    result, _ = run(where, "fi-info", out)
    assert result.rc == 61
    assert facts_of(out, result, "fi_info").facts["error"] == "fi_getinfo: -61 (No data available)"
