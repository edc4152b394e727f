"""The one key of a stack, where the stack shall have one."""

from dataclasses import replace

from infra.config.model import OWN_KEY
from infra.planning import keys

from .base import ClusterPlan, Component, text


class StackKey(Component):
    """Without it nothing that it encrypted can be read: it is kept as data is."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        made = self.key(
            f"Everything of {plan.names.cluster}", plan.names.key_alias, text(keys.key_policy(plan.place)), kept=True
        )
        self.arn = made.arn
        self.register_outputs({"arn": self.arn})


def with_key(plan: ClusterPlan) -> ClusterPlan:
    """The plan with the key that the stack names or makes; as it is where AWS' own keys do."""
    wanted = plan.settings.kms_key
    return replace(plan, key_arn=StackKey(plan.part("key"), plan).arn if wanted == OWN_KEY else wanted)
