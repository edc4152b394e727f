"""How long training stands still for a checkpoint: measured with the job's default model, on two ranks."""

from statistics import median

from . import table
from .launch import Running

DEFAULT_INTERVAL = 100
"""Steps: --checkpoint-every of training/job.py."""
SIZES = ("--layers=4", "--width=128", "--heads=4", "--length=128", "--batch=32", "--micro-batch=4")
EVERY = 3


def test_a_checkpoint_costs_less_than_5_percent_of_the_steps_between_two(place):
    with Running(place, *SIZES, f"--checkpoint-every={EVERY}", "--steps=16") as run:
        run.good()
        # The first of each begins what later ones have.
        stalls = [event["stall_s"] for event in run.named("saving")][1:]
        steps = [event["step_s"] for event in run.named("step")][1:]
    stall, step = median(stalls), median(steps)
    table.STALLS.append((stall, step, DEFAULT_INTERVAL))
    assert stall < 0.05 * step * DEFAULT_INTERVAL
