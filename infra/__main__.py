"""The Pulumi program: settings, policies, components, outputs."""

import os
import sys
from pathlib import Path

# Pulumi runs this file with its own folder on the path; the packages lie beside it in the repository.
_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(_ROOT), str(_ROOT / "module_utils")) if path not in sys.path]

import pulumi  # noqa: E402

from flightline import contract  # noqa: E402
from infra import images, settings, zones  # noqa: E402
from infra.cluster import Cluster  # noqa: E402
from infra.components.base import ClusterPlan  # noqa: E402
from infra.config.errors import ConfigError  # noqa: E402
from infra.guard import PolicyGuard  # noqa: E402
from infra.outputs import outputs  # noqa: E402
from infra.planning.names import names  # noqa: E402
from infra.policies import PolicyContext  # noqa: E402

TRACEBACK = "FLIGHTLINE_TRACEBACK"


def main() -> None:
    """Read, guard, build, export."""
    try:
        chosen = settings.load(zones.ask)
        image = None if chosen.on_kubernetes else images.find(chosen)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    guard = PolicyGuard(PolicyContext(chosen.storage.keep_data, frozenset(contract.COMMON_TAGS)))
    guard.install()
    place = zones.place(chosen.region)
    named = names(chosen.cluster_name, place, chosen.network.zones.home_id)
    cluster = Cluster(ClusterPlan(chosen, pulumi.get_stack(), named, place, image))
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
