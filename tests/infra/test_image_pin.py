"""The image of a stack stays until somebody asks for another, and a newer one is said."""

from __future__ import annotations

import pulumi
import pytest

from tests.infra import program

NEWEST, PINNED = "ami-0123456789abcdef0", "ami-0aaaaaaaaaaaaaaaa"
ASKED = "aws:ec2/getAmi:getAmi"


@pytest.fixture
def warnings(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    return said


def image_of(**changes):
    """The launch template's image, and the images that EC2 was asked about."""
    asked: list[str] = []

    def ami(args):
        asked.extend(args["filters"][0]["values"])
        return program.image()

    run = program.run("dev", changes=changes, said={ASKED: ami})
    assert run.error is None
    return run.one("nodes-template").props["imageId"], asked, run.outputs["image_id"]


def test_without_a_pin_the_newest_is_taken_and_named_for_the_next_time(warnings):
    assert image_of() == (NEWEST, [NEWEST], NEWEST)
    assert warnings == []


def test_a_pin_stays_and_a_newer_image_is_said(warnings):
    assert image_of(amiPin=PINNED) == (PINNED, [PINNED], PINNED)
    (said,) = warnings
    assert NEWEST in said and PINNED in said and "config rm flightline:amiPin" in said


def test_a_pin_that_is_the_newest_says_nothing(warnings):
    assert image_of(amiPin=NEWEST)[0] == NEWEST
    assert warnings == []


def test_an_image_id_of_the_stack_itself_wins(warnings):
    chosen = "ami-0bbbbbbbbbbbbbbbb"
    assert image_of(ami=chosen, amiPin=PINNED)[0] == chosen
