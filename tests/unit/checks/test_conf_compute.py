"""conf_compute: off, on and ready, on and not ready, and drivers that do not say."""

import pytest

from flightline_node.model import ParseError, Remedy, Status
from flightline_node.read.parsers import conf_compute
from tests.harness import BROKEN, judge_facts, only, status

HEADER = "\n==============NVSMI CONF-COMPUTE LOG==============\n\n"


def judge(text):
    """Texts by hand after the nvidia-smi manual, conf-compute -q, -f and -grs."""
    return judge_facts("conf_compute", {"conf_compute": conf_compute.parse({"conf-compute.txt": text.encode()})})


@pytest.mark.parametrize(
    ("text", "wanted", "remedy"),
    [
        (HEADER + "    CC State                   : OFF\n    Multi-GPU Mode : None\n", Status.PASS, Remedy.NONE),
        ("CC status: OFF\n", Status.PASS, Remedy.NONE),
        ("CC status: ON\n", Status.WARN, Remedy.FIX_CONFIG),
        (HEADER + "    CC State : ON\n    CC GPUs Ready State : Not Ready\n", Status.FAIL, Remedy.FIX_CONFIG),
        (HEADER + "    CC State : ON\n    CC GPUs Ready State : Ready\n", Status.WARN, Remedy.FIX_CONFIG),
        (HEADER + "    CC State : OFF\n    CC GPUs Ready State : Not Ready\n", Status.PASS, Remedy.NONE),
        ("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n", Status.SKIP, Remedy.NONE),
        ("CC State : Sideways\n", Status.SKIP, Remedy.NONE),
    ],
)
def test_states(text, wanted, remedy):
    assert only(judge(text), wanted).remedy is remedy


def test_unreadable_and_missing():
    for data in (b"", b"total 8\n"):
        with pytest.raises(ParseError):
            conf_compute.parse({"conf-compute.txt": data})
    assert status(judge_facts("conf_compute", {"conf_compute": BROKEN})) is Status.UNKNOWN
    assert status(judge_facts("conf_compute", {}, "trn1.32xlarge")) is Status.SKIP
