"""When a loss ends the run: not a number, or far above what it was. Pure."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

WINDOW = 64
"""Steps that say what is usual."""
FEWEST = 16
"""Before so many steps the loss still falls fast and nothing is usual."""
FACTOR = 10.0
"""Median absolute deviations above the median; own choice: of 20,000 normal values none in tests/unit/training."""
LEAST_RISE = 1.0
"""Nats. A calm curve has a deviation near zero, and a rise below this is no spike at any scale."""


class LossError(RuntimeError):
    """The loss says that going on is waste. step: where."""

    def __init__(self, step: int, why: str) -> None:
        super().__init__(f"step {step}: {why}")
        self.step = step


class LossGuard:
    """Sees every loss once, before the optimizer uses its gradients."""

    def __init__(self, before: list[float] | None = None) -> None:
        self._seen = deque(before or [], WINDOW)

    def look(self, step: int, loss: float, gradient_norm: float) -> None:
        """Raises LossError."""
        for name, value in (("loss", loss), ("gradient norm", gradient_norm)):
            if not math.isfinite(value):
                raise LossError(step, f"the {name} is {value}; nothing of this step was applied or saved")
        most = self.most()
        if loss > most:
            raise LossError(step, f"the loss is {loss:.4f}, wanted at most {most:.4f} after the last {len(self._seen)}")
        self._seen.append(loss)

    def most(self) -> float:
        """The highest loss that is no spike."""
        if len(self._seen) < FEWEST:
            return math.inf
        middle = median(self._seen)
        spread = median(abs(value - middle) for value in self._seen)
        return middle + max(LEAST_RISE, FACTOR * spread)

    @property
    def seen(self) -> list[float]:
        """What a checkpoint keeps, so that a resumed run judges as the uninterrupted one."""
        return list(self._seen)
