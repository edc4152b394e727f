"""How long training stands still for a checkpoint: measured with the job's default model, on two ranks."""

from statistics import median

from . import table
from .launch import Running

DEFAULT_INTERVAL = 100
"""Steps: --checkpoint-every of training/job.py."""
SIZES = ("--layers=4", "--width=128", "--heads=4", "--length=128", "--batch=32", "--micro-batch=4")
EVERY = 4


def test_a_checkpoint_stalls_training_for_less_than_5_percent_of_a_step(place):
    with Running(place, *SIZES, f"--checkpoint-every={EVERY}", "--steps=41") as run:
        run.good()
        # The first of each makes what later ones use.
        stalls = [event["stall_s"] for event in run.named("saving")][1:]
        steps = {event["step"]: event["step_s"] for event in run.named("step") if event["step"] > EVERY}
    beside = median(steps[number] for number in steps if number % EVERY == 1)
    step = median(steps[number] for number in steps if number % EVERY != 1)
    stall = median(stalls)
    table.STALLS.append((stall, step, beside, DEFAULT_INTERVAL))
    assert stall < 0.05 * step
