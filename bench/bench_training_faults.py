"""Effective training time of 16,384 GPUs with Llama 3's faults, by checkpoints, detection, spares and replacement.

    python -m bench.bench_training_faults [--write]    # --write: the plot in docs/training-time.svg
    python -m bench.bench_training_faults --restart-s 300 --repair-h 72 --silent-s 7200    # your own figures

Everything here is simulated; `flightline/training/effective.py` says from which published figures.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

from flightline.training.effective import ClusterRates, interval_s, simulate, spares

DAYS, SEEDS = 54.0, 24
RESTARTS_S = (60.0, 180.0, 300.0, 600.0)
INTERVALS_S = [30.0 * 1.6**step for step in range(13)]
PLOT = Path(__file__).parents[1] / "docs" / "training-time.svg"
BASE = ClusterRates()
VARIANTS = {
    "hang seen in 600 s, 16 spares": BASE,
    "hang seen in 120 s": replace(BASE, hang_s=120.0),
    "restart in 600 s": replace(BASE, restart_s=600.0),
    "4 spares, and the run waits for one": replace(BASE, spares=4, fewer=False),
    "checkpoint stalls for 30 s": replace(BASE, stall_s=30.0),
}


def share(site: ClusterRates, interval: float) -> float:
    """Percent, mean of the seeds."""
    return 100.0 * sum(simulate(site, interval, DAYS, seed).share for seed in range(SEEDS)) / SEEDS


def main() -> None:
    """Print the assumptions, a line for each variant and restart, then what Flightline derives by size."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--write", action="store_true")
    for name in ("restart_s", "repair_h", "silent_s"):
        asked.add_argument(f"--{name.replace('_', '-')}", type=float, default=getattr(BASE, name), help="%(default)g")
    given = vars(asked.parse_args())
    write, site = given.pop("write"), replace(BASE, hang_s=120.0, **given)
    print(f"Assumed, not measured: {site.restart_s:g} s from a job's end to its first new step, a repaired node back "
          f"after {site.repair_h:g} h, silent corruption noticed after {site.silent_s:g} s")  # fmt: skip
    print(f"{BASE.gpus:,} GPUs, {DAYS:.0f} days, mean of {SEEDS} simulated runs, effective training time")
    for fewer in (True, False):
        how = "goes on with fewer nodes" if fewer else "waits for a repair"
        print(f"  {how:<44} {share(replace(site, fewer=fewer), interval_s(site)):5.2f} %")
    for restart_s in RESTARTS_S:
        one = replace(site, restart_s=restart_s)
        print(f"  restart in {restart_s:3.0f} s{'':<27} {share(one, interval_s(one)):5.2f} %")
    curves = {name: [share(site, interval) for interval in INTERVALS_S] for name, site in VARIANTS.items()}
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
    if write:
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
