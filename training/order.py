"""Which sample a rank reads at which step. Pure: the position in the data follows from the step alone."""

from __future__ import annotations

import math
import random
from typing import NamedTuple


class BatchPlan(NamedTuple):
    """Sizes in samples. samples: of the whole data set; batch: of all ranks in one step; micro: of one forward."""

    samples: int
    batch: int
    micro: int
    seed: int

    def accumulation(self, world: int) -> int:
        """Forwards of each rank in one step. Raises ValueError when the ranks cannot share a batch evenly."""
        if self.batch % (world * self.micro):
            raise ValueError(
                f"saw {world} ranks with {self.micro} samples each, wanted a divisor of the batch of {self.batch} "
                "samples; do: change --batch or --micro-batch, or start another number of ranks"
            )
        return self.batch // (world * self.micro)

    def at(self, step: int, rank: int, world: int) -> list[int]:
        """Samples of a rank in a step, counted from 0. All ranks together read the same whatever their number."""
        each = self.batch // world
        start = step * self.batch + rank * each
        return [self._sample(position) for position in range(start, start + each)]

    def _sample(self, position: int) -> int:
        epoch, index = divmod(position, self.samples)
        factor, offset = _shuffle(self.samples, self.seed, epoch)
        return (factor * index + offset) % self.samples


def _shuffle(samples: int, seed: int, epoch: int) -> tuple[int, int]:
    """An affine permutation of an epoch: no table of a billion samples, at the price of less mixing than a shuffle."""
    chance = random.Random(f"{seed}/{epoch}")  # noqa: S311  (reproducible on purpose)
    while True:
        factor = chance.randrange(1, samples + 1)
        if math.gcd(factor, samples) == 1:
            return factor, chance.randrange(samples)
