"""The image of a stack stays until somebody asks for another, and a newer one is said."""

import pulumi
import pytest

from infra import images
from tests.infra import engine, program, stacks

NEWEST, PINNED = "ami-0123456789abcdef0", "ami-0aaaaaaaaaaaaaaaa"
ASKED = "aws:ec2/getAmi:getAmi"


@pytest.fixture
def warnings(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    return said


def asked_of(asked):
    """An EC2 that keeps what it is asked about."""

    def ami(args):
        asked.extend(args["filters"][0]["values"])
        return program.image()

    return {ASKED: ami}


def image_of(**changes):
    """The image that is taken, and the images that EC2 was asked about."""
    asked, found = [], []
    calls = {**program.answers(stacks.region("dev")), **asked_of(asked)}
    run = engine.run(lambda: found.append(images.find(stacks.settings("dev", **changes)).image_id), calls=calls)
    assert run.error is None
    return found, asked


def test_without_a_pin_the_newest_is_taken(warnings):
    assert image_of() == ([NEWEST], [NEWEST])
    assert warnings == []


def test_a_pin_stays_and_is_named_for_the_next_time_and_a_newer_image_is_said(warnings):
    asked = []
    run = program.run("dev", changes={"amiPin": PINNED}, said=asked_of(asked))
    assert run.error is None and asked == [PINNED]
    assert run.one("nodes-template").props["imageId"] == run.outputs["image_id"] == PINNED
    (said,) = warnings
    assert NEWEST in said and PINNED in said and "config rm flightline:amiPin" in said


def test_a_pin_that_is_the_newest_says_nothing(warnings):
    assert image_of(amiPin=NEWEST)[0] == [NEWEST]
    assert warnings == []


def test_an_image_id_of_the_stack_itself_wins(warnings):
    chosen = "ami-0bbbbbbbbbbbbbbbb"
    assert image_of(ami=chosen, amiPin=PINNED)[0] == [chosen]
