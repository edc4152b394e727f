"""Log groups that nodes and file systems write to."""

from .base import ClusterPlan, Component


class LogGroups(Component):
    """The results that nodes log, their system's log, and what FSx says where there is one."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        names = plan.names
        wanted = {"results": names.results_log_group, "system": names.system_log_group}
        if (fsx := plan.settings.storage.fsx) and not fsx.file_system_id:
            wanted["fsx"] = names.fsx_log_group
        self.groups = {key: self.log_group(key, group) for key, group in wanted.items()}
        self.register_outputs({"names": list(wanted.values())})
