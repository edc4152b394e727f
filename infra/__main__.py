"""The Pulumi program of a stack: plan, policies, cluster, outputs."""

import os
import sys
from pathlib import Path

# Pulumi runs this file with its own folder on the path; the packages lie beside it in the repository.
_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(_ROOT), str(_ROOT / "module_utils")) if path not in sys.path]

import pulumi  # noqa: E402

from flightline import contract  # noqa: E402
from flightline_pulumi import GpuCluster, GpuClusterArgs, plan  # noqa: E402
from infra.guard import PolicyGuard  # noqa: E402
from infra.outputs import outputs  # noqa: E402
from infra.policies import PolicyContext  # noqa: E402

TRACEBACK = "FLIGHTLINE_TRACEBACK"


def main() -> None:
    """Read, guard, build, export."""
    planned = plan()
    guard = PolicyGuard(PolicyContext(planned.keep_data, frozenset(contract.COMMON_TAGS)))
    guard.install()
    # Stacks were made before their parts lay in a cluster: these keep their names.
    cluster = GpuCluster("cluster", planned, GpuClusterArgs(at_top=True))
    guard.finish(outputs(cluster), cluster.foundation, cluster.compute)


def plainly() -> None:
    """Run main(); an error that is none of its own sentences becomes one, for the language host prints tracebacks."""
    try:
        main()
    except pulumi.RunError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise pulumi.RunError(
            f"the program ended before it had described the stack: saw {type(error).__name__}: {error}; "
            f"wanted none; do: what it says, or report it with the traceback that {TRACEBACK}=1 shows"
        ) from None


plainly()
