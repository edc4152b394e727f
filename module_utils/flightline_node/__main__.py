"""The entry point of the node library, however it came to the node: flightline-node.pyz WORD.

check    judge this node by its settings file: at boot, before a job, as the job scheduler's health check
watch    watch this node, and take it out of service when its kernel says so
call     answer one call of the Ansible module, or with - and the node's name this node's part of a call to many
kubernetes  judge this node of a Kubernetes cluster at intervals, and tell its Node
repair   take one step of healing on this node
notice   tell training when EC2 says that this node will be taken away (flightline-notice)
preload  bring a data set's files from S3 before they are read (flightline-preload)
train    start a training run on this node, again after each fault (flightline-train)
adopt    put this package behind the Slurm or plain host that is there already, or take it out
install  unpack and compile this package for the calls of the Ansible module

Exit status of check: 0 go, 1 no-go, 2 the tool itself could not run.
"""

from __future__ import annotations

import sys
from typing import Callable, List, Optional

USAGE = """\
usage: flightline-node.pyz check | watch | kubernetes | repair | notice | preload | train | adopt [OPTIONS]
       flightline-node.pyz install DIRECTORY

Judge this node by /etc/flightline/node.json, watch or repair it, or help training on it.
With --help each lists its options.
Exit status: 0 go, 1 no-go, 2 no verdict.
example: python3 flightline-node.pyz check --instance-type p5.48xlarge --level quick
"""


def main(argv: Optional[List[str]] = None) -> int:
    """Do what the first word says; returns the exit status."""
    command, *given = (sys.argv[1:] if argv is None else argv) or [""]
    # Each takes only what it needs: a call pays for no parser of command lines.
    if command == "call" and len(given) == 1:
        from .answer import call

        return call(given[0])
    if command == "call" and len(given) == 2 and given[0] == "-":
        from .answer import call_of_many

        return call_of_many(given[1], sys.stdin.buffer.read())
    if command == "install" and len(given) == 1:
        from .keep import install

        return install(given[0])
    program = _program(command)
    if program:
        return program(given)
    wanted = command in ("-h", "--help")
    (sys.stdout if wanted else sys.stderr).write(USAGE)
    return 0 if wanted else 2


def _program(command: str) -> Optional[Callable[[List[str]], int]]:
    """What has a command line of its own."""
    if command == "check":
        from .selfcheck import check

        return check
    if command == "watch":
        from .watch.program import main as watch

        return watch
    if command == "kubernetes":
        from .kubernetes.program import main as kubernetes

        return kubernetes
    if command in ("repair", "notice", "preload"):
        from .act import notice, preload, repair

        return {"repair": repair.main, "notice": notice.main, "preload": preload.main}[command]
    if command == "train":
        from .train.program import main as train

        return train
    if command == "adopt":
        from .adopt.program import main as adopt

        return adopt
    return None


if __name__ == "__main__":
    sys.exit(main())
