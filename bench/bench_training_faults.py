"""Effective training time of 16,384 GPUs with Llama 3's faults, by checkpoints, detection, spares and replacement.

    python -m bench.bench_training_faults [--write]    # --write: the plot in docs/training-time.svg

Everything here is simulated; `flightline/training/effective.py` says from which published figures.
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

from flightline.training.effective import ClusterRates, interval_s, simulate, spares

DAYS, SEEDS = 54.0, 24
INTERVALS_S = [30.0 * 1.6**step for step in range(13)]
PLOT = Path(__file__).parents[1] / "docs" / "training-time.svg"
BASE = ClusterRates()
VARIANTS = {
    "hang seen in 600 s, 16 spares": BASE,
    "hang seen in 120 s": replace(BASE, hang_s=120.0),
    "restart in 600 s": replace(BASE, restart_s=600.0),
    "4 spares": replace(BASE, spares=4),
    "checkpoint stalls for 30 s": replace(BASE, stall_s=30.0),
}


def share(site: ClusterRates, interval: float) -> float:
    """Percent, mean of the seeds."""
    return 100.0 * sum(simulate(site, interval, DAYS, seed).share for seed in range(SEEDS)) / SEEDS


def main() -> None:
    """Print a line for each variant, then what Flightline derives by size."""
    curves = {name: [share(site, interval) for interval in INTERVALS_S] for name, site in VARIANTS.items()}
    print(f"16,384 GPUs, {DAYS:.0f} days, mean of {SEEDS} simulated runs, effective training time")
    for name, site in VARIANTS.items():
        best, at = max(zip(curves[name], INTERVALS_S))
        derived = interval_s(site)
        print(
            f"  {name:<44} best {best:5.2f} % at {at:5.0f} s; derived {derived:5.0f} s: {share(site, derived):5.2f} %"
        )
    for gpus in (1024, 4096, 9600, 16384, 32768):
        site = replace(BASE, gpus=gpus, hang_s=120.0, spares=spares(ClusterRates(gpus=gpus)))
        print(f"  {gpus:>6} GPUs: a fault each {site.between_s / 3600:5.1f} h, checkpoint each "
              f"{interval_s(site):4.0f} s, {site.spares:2} spares, {share(site, interval_s(site)):5.2f} %")  # fmt: skip
    if "--write" in sys.argv:
        PLOT.write_text(svg(curves), encoding="utf-8")


def svg(curves: dict[str, list[float]]) -> str:
    """Curves over the logarithm of the interval."""
    colours = ("#1b6ca8", "#2a9d8f", "#e76f51", "#8d5a97", "#b08900")
    low, high = 80.0, 100.0

    def place(interval: float, value: float) -> str:
        across = math.log(interval / INTERVALS_S[0]) / math.log(INTERVALS_S[-1] / INTERVALS_S[0])
        return f"{60 + 520 * across:.1f},{20 + 280 * (high - max(value, low)) / (high - low):.1f}"

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 450" font-family="sans-serif" font-size="12">',
             '<rect width="600" height="450" fill="white"/>']  # fmt: skip
    for value in range(int(low), int(high) + 1, 5):
        at = place(INTERVALS_S[0], value).split(",")[1]
        parts.append(
            f'<line x1="60" x2="580" y1="{at}" y2="{at}" stroke="#ddd"/><text x="25" y="{at}">{value} %</text>'
        )
    for interval in (30, 60, 120, 300, 600, 1800, 3600):
        at = place(interval, low).split(",")[0]
        parts.append(f'<text x="{at}" y="318" text-anchor="middle">{interval} s</text>')
    parts.append('<text x="320" y="336" text-anchor="middle">time between checkpoints</text>')
    for number, (name, values) in enumerate(curves.items()):
        line = " ".join(place(interval, value) for interval, value in zip(INTERVALS_S, values))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colours[number]}" stroke-width="2"/>')
        parts.append(f'<text x="70" y="{358 + 18 * number}" fill="{colours[number]}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
