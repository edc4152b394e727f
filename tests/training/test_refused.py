"""What the job does not do, and what it says then."""

import pytest

from .launch import Running


def said(run):
    found = [event for rank in range(4) for event in run.named("exception", rank)]
    assert run.ended() != 0 and found, run.text()
    return found[0]


def test_a_loss_that_is_no_number_names_its_step_and_saves_nothing_of_it(place):
    with Running(place, "--rate", "1e30", "--warm-up", "1") as run:
        run.ended()
        event = said(run)
        saved = [one["step"] for one in run.named("checkpoint")]
    assert event["type"] == "LossError" and f"step {event['step']}: the " in event["text"]
    assert all(step <= event["step"] for step in saved)


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (("--batch", "15"), "wanted a divisor of the batch of 15"),
        (
            ("--data", "/nowhere/data.bin"),
            "/nowhere/data.bin: No such file or directory; wanted a file of the data set",
        ),
        (("--checkpoints", "/nowhere/ck"), "/nowhere/ck: saw no directory, wanted the place of the checkpoints"),
    ],
)
def test_what_cannot_work_is_said_at_the_start(place, more, wanted):
    with Running(place, *more) as run:
        run.ended()
        assert wanted in said(run)["text"]


def test_two_runs_of_one_name(place):
    with Running(place, "--steps", "100000") as run:
        run.until_step(1)
        with Running(place, attempt=1) as other:
            other.ended()
            assert "another run holds it" in said(other)["text"]
        assert run.process.poll() is None


def test_changed_data_is_refused(killed):
    with (killed / "data.bin").open("ab") as file:
        file.write(b"more")
    with Running(killed, attempt=1) as run:
        run.ended()
        assert "saved with data" in said(run)["text"]
