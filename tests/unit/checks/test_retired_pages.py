"""retired_pages: counts and pending retirement of Turing, nothing on later GPUs."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(**pages):
    facts = gpus.node(gpus.T4, 4)
    for name, value in pages.items():
        gpus.put(facts, 3, f"retired_pages.{name}", value)
    return judge_facts("retired_pages", facts, "g4dn.12xlarge")


def test_none_retired():
    assert only(judge(), Status.PASS)


@pytest.mark.parametrize(
    ("pages", "remedy"),
    [
        ({"pending": True}, Remedy.RESET_GPU),
        ({"single_bit": 58, "double_bit": 2}, Remedy.REPLACE),
        ({"pending": True, "double_bit": 60}, Remedy.REPLACE),
    ],
)
def test_faults(pages, remedy):
    finding = only(judge(**pages), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (3, remedy)


def test_some_retired_is_information():
    assert only(judge(double_bit=4), Status.INFO).measured == 4


@pytest.mark.parametrize(
    "pages", [{"pending": "ERR!"}, {"pending": None}, {"single_bit": None}, {"double_bit": "ERR!"}]
)
def test_unreadable_is_unknown(pages):
    assert only(judge(**pages), Status.UNKNOWN).device["index"] == 3


def test_ampere_and_later_have_none():
    na = {"single_bit": None, "double_bit": None, "pending": None}
    for facts in (
        gpus.node(),
        gpus.put_all(gpus.node(), "retired_pages", na),
        gpus.drop_all(gpus.node(), "retired_pages"),
    ):
        assert status(judge_facts("retired_pages", facts)) is Status.SKIP
