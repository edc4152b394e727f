"""The Pulumi program: settings, policies, components, outputs."""

from __future__ import annotations

import sys
from pathlib import Path

# Pulumi runs this file with its own folder on the path; the packages lie beside it in the repository.
_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(_ROOT), str(_ROOT / "module_utils")) if path not in sys.path]

import pulumi  # noqa: E402

from infra import contract, images, settings, zones  # noqa: E402
from infra.cluster import Cluster, Plan  # noqa: E402
from infra.config.errors import ConfigError  # noqa: E402
from infra.guard import Guard  # noqa: E402
from infra.outputs import outputs  # noqa: E402
from infra.planning import quotas  # noqa: E402
from infra.planning.names import names  # noqa: E402
from infra.policies import Site  # noqa: E402


def main() -> None:
    """Read, guard, build, seal."""
    try:
        chosen = settings.load(zones.ask)
        image = images.find(chosen)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    note = quotas.interfaces(chosen.nodes)
    if note:
        pulumi.log.warn(note)
    guard = Guard(Site(chosen.storage.keep_data, frozenset(contract.COMMON_TAGS)))
    guard.install()
    place = zones.place(chosen.region)
    named = names(chosen.cluster_name, place, chosen.network.zones.gpu_id)
    cluster = Cluster(Plan(chosen, pulumi.get_stack(), named, place, image))
    guard.seal(outputs(cluster), cluster.components)


main()
