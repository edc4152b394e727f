"""Validate the CloudWatch agent's configuration against the agent's own schema, then load it."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from ..host import Host, Problem
from ..outcome import Outcome
from . import jsonschema

HOME = "/opt/aws/amazon-cloudwatch-agent"
CTL = f"{HOME}/bin/amazon-cloudwatch-agent-ctl"
SCHEMA = f"{HOME}/doc/amazon-cloudwatch-agent-schema.json"
_MOST_SHOWN = 10
_MODE = 0o644
"""What Host.write gives a file. The agent follows what the file says: nobody else may write it."""


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Nothing is written before the configuration is valid; what the agent refuses is taken back."""
    path, text = wanted["path"], rendered(wanted["config"])
    _validate(host, wanted)
    old, loaded = host.read(path), host.read(applied(path))
    running = _running(host)
    before = {"config": _shown(old), "loaded": loaded is not None and _same(loaded, text), "running": running}
    after = {"config": wanted["config"], "loaded": True, "running": wanted["state"] == "started"}
    if wanted["state"] == "valid":
        return Outcome(False, before, before, before)
    if old == text and host.mode(path) == _MODE and before["loaded"] and running:
        return Outcome(False, before, before, before)
    if check:
        return Outcome(True, before, after, after)
    host.write(path, text)
    try:
        _load(host, path)
    except Problem:
        _take_back(host, path, old)
        raise
    if not _running(host):
        _take_back(host, path, old)
        raise Problem(
            "the agent does not run with the new configuration; the previous one is in place again",
            "the agent running",
            f"read {HOME}/logs/amazon-cloudwatch-agent.log",
        )
    return Outcome(True, before, after, after)


def rendered(config: Mapping[str, Any]) -> str:
    """One spelling for one configuration, so that a second run changes nothing."""
    return json.dumps(config, indent=2, sort_keys=True) + "\n"


def applied(path: str) -> str:
    """Where fetch-config keeps its copy: file_<name> in the agent's directory of parts."""
    return f"{HOME}/etc/amazon-cloudwatch-agent.d/file_{path.rsplit('/', 1)[-1]}"


def _shown(text: Optional[str]) -> Any:
    try:
        return json.loads(text) if text is not None else None
    except ValueError:
        return text


def _same(left: str, right: str) -> bool:
    return bool(_shown(left) == _shown(right))


def _validate(host: Host, wanted: Mapping[str, Any]) -> None:
    schema = _schema(host, wanted["schema"])
    try:
        found = jsonschema.errors(wanted["config"], schema)
    except jsonschema.SchemaError as error:
        raise Problem(
            f"{wanted['schema']}: {error}",
            "a schema this module can check by",
            "name another schema, or extend the validator",
        ) from error
    if found:
        more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        raise Problem(
            f"{len(found)} errors in the configuration: {'; '.join(found[:_MOST_SHOWN])}{more}",
            f"a configuration valid by {wanted['schema']}; nothing was written or loaded",
            "correct the configuration's variables",
        )


def _schema(host: Host, path: str) -> Dict[str, Any]:
    text = host.read(path)
    try:
        schema = json.loads(text or "")
    except ValueError:
        schema = None
    if not isinstance(schema, dict) or not schema:
        raise Problem(
            f"{path} {'is not JSON' if text else 'is not there'}",
            "the agent's JSON schema, which its package installs",
            "install amazon-cloudwatch-agent first, or name the schema's file",
        )
    return schema


def _running(host: Host) -> bool:
    answer = host.ask([CTL, "-a", "status"])
    status = _shown(answer.out)
    return isinstance(status, dict) and status.get("status") == "running" and status.get("configstatus") == "configured"


def _load(host: Host, path: str) -> None:
    host.change(command(path), "the agent to take the configuration", f"read {HOME}/logs/configuration-validation.log")


def command(path: str) -> List[str]:
    """fetch-config with -s also restarts the agent."""
    return [CTL, "-a", "fetch-config", "-m", "ec2", "-c", f"file:{path}", "-s"]


def _take_back(host: Host, path: str, old: Optional[str]) -> None:
    """A refused configuration must not be what the next boot starts with."""
    if old is None:
        host.ask(["rm", "-f", host.path(path), host.path(applied(path))])
        return
    host.write(path, old)
    host.ask(command(path))
