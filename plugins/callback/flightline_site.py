# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""End a configuration run by saying which hosts are configured, and where the others left it."""

from __future__ import annotations

DOCUMENTATION = r"""
name: flightline_site
type: aggregate
short_description: Says at the end of playbooks/site.yml which hosts are configured, failed or lost
description:
  - A play at the end of the playbook cannot say it, because a play whose hosts are all gone does not run.
  - Names each host that is not configured, with the task at which it left and what was said; where the play went on
    after a role's refusal, with every one of them. Ansible's own exit status stays (2 a host failed, 4 a host was
    unreachable).
  - Does nothing in any other playbook or ad-hoc command.
version_added: "0.1.0"
author:
  - Flightline contributors (@flightline)
requirements:
  - the flightline package in the controller's Python
"""

from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from flightline.configure.site_summary import HostTrouble, SiteRun

PLAYBOOK = "site.yml"
REFUSED = "flightline_refused"
"""The fact by which a play remembers that a role refused and goes on with the next."""


class CallbackModule(CallbackBase):
    """Collects while the playbook runs, prints at its end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "flightline_site"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._watching = False
        self._site = SiteRun()

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Is it the configuration?"""
        self._watching = Path(str(playbook._file_name)).name == PLAYBOOK

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Remember every host that a play selects."""
        if not self._watching:
            return
        manager = play.get_variable_manager()
        names = [str(host) for host in manager._inventory.get_hosts(play.hosts, order=play.order)]
        self._site.hosts += [name for name in names if name not in self._site.hosts]

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Remember the last failure; whether the host recovered from it is known at the end."""
        if not ignore_errors:
            self._site.failed[result.host.get_name()] = self._trouble(result)

    def v2_runner_on_ok(self, result: Any) -> None:
        """A role's refusal that the play went on after: what failed last is the reason."""
        name = result.host.get_name()
        if REFUSED in (result.result.get("ansible_facts") or {}) and name in self._site.failed:
            told = self._site.refused.setdefault(name, [])
            if self._site.failed[name].said not in [trouble.said for trouble in told]:
                told.append(self._site.failed[name])

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Remember where a host was lost."""
        if not result.task.ignore_unreachable:
            # A task that handles a secret hides what ssh said, which is no secret: the node did not answer.
            said = result.result.get("msg") or "the node does not answer"
            self._site.lost[result.host.get_name()] = HostTrouble(result.task.get_name(), str(said))

    def _trouble(self, result: Any) -> HostTrouble:
        said = result.result.get("msg") or result.result.get("censored") or ""
        return HostTrouble(result.task.get_name(), str(said))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print the summary."""
        if not self._watching:
            return
        self._site.failed = {name: what for name, what in self._site.failed.items() if stats.failures.get(name)}
        self._site.lost = {name: what for name, what in self._site.lost.items() if stats.dark.get(name)}
        self._display.banner("CONFIGURE")
        for line in self._site.lines():
            self._display.display(line)
