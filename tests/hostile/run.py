"""`make hostile`: hostile answers in this process and from nodes of the real playbook; a table at the end."""

import argparse
import itertools
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import bed, inprocess, unmeasured
from .bed import HostileBed, answer, real
from .generator import by_field
from .wire import planned

MOST_MB = 500
EVERY_GOOD = 10


def in_process(many: int, seed: int) -> Iterator[str]:
    """What went wrong."""
    cases = inprocess.cases(many, seed)
    while batch := list(itertools.islice(cases, inprocess.FLEET)):
        answers = inprocess.judge(batch)
        for place, case in enumerate(batch):
            if answers[f"h{place:04}"] is not inprocess.expected(case):
                yield f"{case.name}: go is {answers[f'h{place:04}']}"
        lost = [host for host, go in answers.items() if host.startswith("good") and not go]
        yield from (f"a good neighbour lost its verdict: {host}" for host in lost)


def end_to_end(many: int, path: Path) -> tuple[list[str], bed.Result]:
    """The same through Ansible: generated answers, rogues, and good hosts between them."""
    place, wanted = HostileBed(path), dict[str, bool]()
    for host, plan in bed.rogues().items():
        place.add(host, plan, flightline_timeout_s=15)
        wanted[host] = False
    cases = list(by_field())
    for number, case in enumerate(cases[:: max(len(cases) // many, 1)][:many]):
        host = f"h{number:04}"
        plan = planned(case, host)
        place.add(host, plan)
        wanted[host] = plan["go"]
        if number % EVERY_GOOD == 0:
            place.add(f"good{number:04}", {"text": answer(real(), f"good{number:04}")})
            wanted[f"good{number:04}"] = True
    place.write()
    done = place.run(timeout_s=3600)
    wrong = [f"{host}: go should be {go}" for host, go in wanted.items() if (done.rows[host].verdict == "go") is not go]
    wrong += [f"exit status {done.status}, wanted 1"] * (done.status != 1)
    wrong += [f"{done.peak_mb:.0f} MB"] * (done.peak_mb >= MOST_MB)
    wrong += ["a raw escape on the terminal"] * bool(bed.RAW.search(done.out.replace("\r", "")))
    wrong += [f"left over: {line}" for line in place.left_over()]
    return wrong, done


def main() -> int:
    """Run both, print the table; 1 when anything came to what it should not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="answers in this process")
    parser.add_argument("--hosts", type=int, default=200, help="generated answers through Ansible")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    wrong_here = list(in_process(given.cases, given.seed))
    here_s, here_mb = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong_here += [f"{here_mb:.0f} MB"] * (here_mb >= MOST_MB)
    began = time.monotonic()
    holes = list(unmeasured.wrong(given.cases, given.seed))
    holes_s = time.monotonic() - began
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        wrong_wire, done = end_to_end(given.hosts, Path(place))
    print(f"{'':14}{'answers':>8}  {'wrong':>5}  {'seconds':>7}  {'peak MB':>7}  exit status")
    print(f"{'in process':14}{given.cases:8}  {len(wrong_here):5}  {here_s:7.0f}  {here_mb:7.0f}  -")
    print(f"{'not measured':14}{given.cases:8}  {len(holes):5}  {holes_s:7.0f}  {'-':>7}  -")
    print(
        f"{'ansible':14}{len(done.rows):8}  {len(wrong_wire):5}  {done.seconds:7.0f}  {done.peak_mb:7.0f}  {done.status}"
    )
    for line in (*wrong_here, *holes, *wrong_wire)[:50]:
        print(f"  {line}")
    return 1 if wrong_here or holes or wrong_wire else 0


if __name__ == "__main__":
    sys.exit(main())
