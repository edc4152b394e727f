"""A quick preflight of simulated nodes against Ansible's own floor.

1. 64 nodes, report included, over `ansible all -m ping` on the same inventory (wanted: at most 1.2). The first run, in
   which the simulated nodes are made and get the node library, is printed for itself.
2. 8 nodes over a playbook with one task per check (wanted: at most 1/8). Eight, because 64 nodes times one
   task per check would run for a quarter of an hour; the cost is per task and host, so the ratio does not
   depend on the count. The compared tasks only run `true`: a real one task per check would cost more.
"""

from __future__ import annotations

from pathlib import Path

from bench.common import BIN, demo_inventory, environment, given, place, seconds
from flightline_node.judge.checks import CHECKS


def _one_task_per_check(path: Path) -> Path:
    tasks = "".join(
        f"    - name: {check.id}\n      ansible.builtin.command: 'true'\n      changed_when: false\n"
        for check in CHECKS.values()
        if check.level == "quick"
    )
    path.write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}")
    return path


def measure(nodes: int, rounds: int) -> tuple[float, float, float]:
    """Wall time in seconds of (first preflight, best later preflight with report, best ping), interleaved."""
    with place() as directory:
        inventory = str(demo_inventory(directory / "fleet", nodes))
        env = environment(directory / "runs.sqlite")
        preflight = [str(BIN / "ansible-playbook"), "-i", inventory, "playbooks/preflight.yml"]
        ping = [str(BIN / "ansible"), "all", "-i", inventory, "-m", "ping"]
        first = seconds(preflight, env)
        pairs = [(seconds(preflight, env), seconds(ping, env)) for _ in range(rounds)]
    return first, min(ours for ours, _ in pairs), min(ping for _, ping in pairs)


def measure_tasks(nodes: int) -> tuple[float, float, int]:
    """Wall time in seconds of (preflight, one task per check) and the number of checks."""
    with place() as directory:
        inventory = str(demo_inventory(directory / "fleet", nodes))
        env = environment(directory / "runs.sqlite")
        playbook = str(BIN / "ansible-playbook")
        seconds([playbook, "-i", inventory, "playbooks/preflight.yml"], env)
        ours = seconds([playbook, "-i", inventory, "playbooks/preflight.yml"], env)
        theirs = seconds([playbook, "-i", inventory, str(_one_task_per_check(directory / "tasks.yml"))], env)
    return ours, theirs, sum(check.level == "quick" for check in CHECKS.values())


def main() -> None:
    """Print both ratios."""
    asked = given(__doc__, nodes=64, rounds=5)
    first, ours, ping = measure(asked.nodes, asked.rounds)
    print(
        f"quick preflight of {asked.nodes} nodes with report {ours:.1f} s, ansible ping {ping:.1f} s: "
        f"ratio {ours / ping:.2f}; the first run {first:.1f} s"
    )
    ours, tasks, checks = measure_tasks(8)
    print(
        f"quick preflight of 8 nodes {ours:.1f} s, {checks} tasks of `true` {tasks:.1f} s: ratio 1/{tasks / ours:.1f}"
    )


if __name__ == "__main__":
    main()
