"""conf_compute: off, on and ready, on and not ready, and drivers that do not say."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import conf_compute
from tests.harness import BROKEN, status

from .table import FAIL, FIX_CONFIG, NONE, PASS, SKIP, UNKNOWN, WARN, judging, row, table

HEADER = "\n==============NVSMI CONF-COMPUTE LOG==============\n\n"


def judge(text):
    """Texts by hand after the nvidia-smi manual, conf-compute -q, -f and -grs."""
    return judging("conf_compute", {"conf_compute": conf_compute.parse({"conf-compute.txt": text.encode()})})


test_conf_compute = table(
    *(row("states", judge(text), wanted, remedy=remedy)
        for text, wanted, remedy in [
            (HEADER + "    CC State                   : OFF\n    Multi-GPU Mode : None\n", PASS, NONE),
            ("CC status: OFF\n", PASS, NONE),
            ("CC status: ON\n", WARN, FIX_CONFIG),
            (HEADER + "    CC State : ON\n    CC GPUs Ready State : Not Ready\n", FAIL, FIX_CONFIG),
            (HEADER + "    CC State : ON\n    CC GPUs Ready State : Ready\n", WARN, FIX_CONFIG),
            (HEADER + "    CC State : OFF\n    CC GPUs Ready State : Not Ready\n", PASS, NONE),
            ("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n", SKIP, NONE),
            ("CC State : Sideways\n", SKIP, NONE),
        ]),
)  # fmt: skip


def test_unreadable_and_missing():
    for data in (b"", b"total 8\n"):
        with pytest.raises(ParseError):
            conf_compute.parse({"conf-compute.txt": data})
    assert status(judging("conf_compute", {"conf_compute": BROKEN})) is UNKNOWN
    assert status(judging("conf_compute", {}, "trn1.32xlarge")) is SKIP
