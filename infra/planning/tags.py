"""The tags of the stack's resources and instances, by the names of `flightline.contract`."""

from flightline.contract import (
    PROJECT,
    ROLE_CPU,
    ROLE_GPU,
    ROLE_HEAD,
    TAG_CAPACITY,
    TAG_CLUSTER,
    TAG_EFA_COUNT,
    TAG_INSTANCE_TYPE,
    TAG_ORCHESTRATOR,
    TAG_PROJECT,
    TAG_ROLE,
    TAG_STACK,
)
from infra.config.model import StackSettings
from infra.planning import efa


def common_tags(settings: StackSettings, stack: str) -> dict[str, str]:
    """Tags of every resource: the site's own, then the project's, which win."""
    return {
        **settings.tags,
        TAG_PROJECT: PROJECT,
        TAG_CLUSTER: settings.cluster_name,
        TAG_STACK: stack,
    }


def instance_tags(settings: StackSettings, stack: str, role: str) -> dict[str, str]:
    """Tags of an instance of one role, its Name included."""
    gpu = role == ROLE_GPU
    types = {
        ROLE_GPU: settings.nodes.instance_type,
        ROLE_HEAD: settings.head.instance_type,
        ROLE_CPU: settings.kubernetes.cpu_instance_type,
    }
    instance_type = types[role]
    layout = efa.interfaces(instance_type, settings.nodes.efa) if gpu else ()
    return {
        **common_tags(settings, stack),
        "Name": f"{settings.cluster_name}-{role}",
        TAG_ROLE: role,
        TAG_INSTANCE_TYPE: " ".join(settings.nodes.types) if gpu else instance_type,
        TAG_EFA_COUNT: str(efa.efa_count(layout)),
        TAG_ORCHESTRATOR: settings.orchestrator,
        TAG_CAPACITY: settings.nodes.capacity.kind if gpu else "on-demand",
    }
