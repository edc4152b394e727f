"""What people are told of a run: the roots, as its report shows them."""

from flightline.cloud.alerts import alerts_of
from flightline.fleet.causes import annotate
from flightline.fleet.result import NodeRow, Report, RunInfo
from flightline_node.model import Status, Verdict


def finding(check, message, index=3, **rest):
    device = {"index": index}
    return {"check": check, "status": "FAIL", "message": message, "remedy": "REBOOT", "device": device, **rest}


def test_what_a_lost_gpu_explains_is_told_with_it_and_not_one_by_one():
    row = NodeRow("gpu-07", Verdict.NO_GO, Status.FAIL, "i-7")
    row.findings = [
        finding("gpu_lost", "nvidia-smi: a GPU is lost", reason="lost"),
        finding("gpu_count", "7 of 8 GPUs: 1 missing", reason="too_few", measured=7, expected=8) | {"device": {}},
        finding("disk_space", "/ is full"),
    ]
    annotate(row.troubles)
    report = Report(RunInfo("R1", "", "", "quick", ""), Verdict.NO_GO, [], [row], [], [], [])
    told = {alert.check: alert.message for alert in alerts_of(report)}
    assert told == {"gpu_lost": "nvidia-smi: a GPU is lost (+1 finding)", "disk_space": "/ is full"}
