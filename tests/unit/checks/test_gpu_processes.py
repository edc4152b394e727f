"""gpu_processes: a job beside a quick run, strays later, memory without a process."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus

PYTHON = {"pid": 4211, "type": "C", "name": "python3", "used_mib": 71000}


def judge(level, processes, used=4):
    facts = gpus.put(gpus.node(), 2, "processes", processes)
    return judge_facts("gpu_processes", gpus.put(facts, 2, "memory_used_mib", used), level=level)


@pytest.mark.parametrize("level", ["quick", "standard", "deep"])
def test_idle_node(level):
    assert only(judge(level, []), Status.PASS)


def test_quick_beside_a_job_only_reports():
    findings = judge("quick", [PYTHON], 71000)
    assert status(findings) is Status.INFO
    assert "python3" in only(findings, Status.INFO).message


@pytest.mark.parametrize("level", ["standard", "deep"])
def test_stray_process_fails_before_tests_that_need_the_gpus(level):
    finding = only(judge(level, [PYTHON], 71000), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (2, Remedy.RESTART_APP)
    assert "4211" in finding.evidence[0]


def test_type_not_printed_counts_as_compute():
    assert status(judge("standard", [{"pid": 1, "type": None, "name": "x", "used_mib": None}])) is Status.FAIL


def test_graphics_and_mps_server_do_not_count():
    services = [
        {"pid": 1, "type": "G", "name": "/usr/lib/xorg/Xorg", "used_mib": 4},
        {"pid": 2, "type": "M+C", "name": "/usr/bin/nvidia-cuda-mps-server", "used_mib": 30},
    ]
    assert status(judge("standard", services)) is Status.PASS


def test_memory_without_a_process():
    finding = only(judge("standard", [], 40000), Status.WARN)
    assert (finding.measured, finding.remedy) == (40000, Remedy.RESET_GPU)
    assert status(judge("quick", [], 40000)) is Status.INFO
    assert status(judge("standard", [], 1024)) is Status.PASS
    assert only(judge("standard", [], 1025), Status.WARN).expected == 1024


@pytest.mark.parametrize(("processes", "used"), [("ERR!", 4), (None, 4), ([], "GPU is lost")])
def test_unreadable_is_unknown(processes, used):
    assert only(judge("standard", processes, used), Status.UNKNOWN).device["index"] == 2
