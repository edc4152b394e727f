"""Ask through Ansible: the playbook that reads the inventory asks each node as well, and its callback keeps the rows.

One ansible-playbook, not two: to start it costs more than most fleets take to answer.
"""

from __future__ import annotations

from typing import ClassVar

from . import Launcher


class AnsibleLauncher(Launcher):
    """The launcher. Nobody is left to ask when its playbook has ended."""

    says: ClassVar[str] = "a connection to each node"
    playbook: ClassVar[str] = "preflight"
    how = "Ansible"
