"""Systems Manager's Run Command with agents of the test: the stack's own document runs as real processes of this machine.

Not the real service: who is managed, what comes of a command and how it ends follow its API reference, and nothing here
proves a right, a quota or a delivery.
"""

import re
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.planning import documents

from .emulated import Cloud

STEP = documents.preflight()["mainSteps"][0]


def rendered(parameters: Mapping[str, list[str]]) -> str:
    """The document's script with its parameters. Raises ValueError for one that the document refuses."""
    known = documents.preflight()["parameters"]
    text = "\n".join(STEP["inputs"]["runCommand"])
    for name, rule in known.items():
        (value,) = parameters[name]
        if not re.fullmatch(rule["allowedPattern"].strip("^$"), value):
            raise ValueError(f"InvalidParameters: {name}")
        text = text.replace(f"{{{{ {name} }}}}", value)
    assert "{{" not in text and set(parameters) == set(known)
    return text


@dataclass
class Agents:
    """ping: of each managed instance. becomes: what a command comes to at an instance instead of being run, by its
    StatusDetails, such as Undeliverable. spoil: changes the output of an instance. no_bucket: outputs that reach none.
    written: changes what is in the bucket afterwards, as every node's role may (instance, output, parameters asked).
    """

    cloud: Cloud
    env: Mapping[str, str]
    ping: dict[str, str]
    becomes: dict[str, str] = field(default_factory=dict)
    spoil: Callable[[str, str], str] = lambda _, text: text
    no_bucket: set[str] = field(default_factory=set)
    written: Callable[[str, str, str], str] = lambda _, text, __: text
    sent: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    _done: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cloud.instead |= {
            "DescribeInstanceInformation": self._managed,
            "SendCommand": self._send,
            "ListCommands": self._commands,
            "ListCommandInvocations": self._invocations,
            "GetCommandInvocation": self._invocation,
            "CancelCommand": self._cancel,
        }

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
        for thread in self._threads:
            thread.join(30)

    def _managed(self, _: dict[str, Any]) -> dict[str, Any]:
        managed = [{"InstanceId": name, "PingStatus": ping} for name, ping in self.ping.items()]
        return {"InstanceInformationList": managed}

    def _send(self, asked: dict[str, Any]) -> dict[str, Any]:
        script, (first, *_) = rendered(asked["Parameters"]), asked["Targets"]
        names = list(self.ping) if first["Key"].startswith("tag:") else first["Values"]
        assert len(names) <= 50 or first["Key"].startswith("tag:")
        command = str(uuid.uuid4())
        self.sent.append(asked)
        self._done[command] = dict.fromkeys((name for name in names if name in self.ping), ("InProgress", ""))
        for name in self._done[command]:
            thread = threading.Thread(target=self._agent, args=(command, name, script, asked), daemon=True)
            self._threads.append(thread)
            thread.start()
        return {"Command": {"CommandId": command}}

    def _agent(self, command: str, name: str, script: str, asked: dict[str, Any]) -> None:
        if name in self.becomes:
            self._done[command][name] = (self.becomes[name], "")
            return
        own = {**self.env, "AWS_SSM_INSTANCE_ID": name}
        argv, silent = ["/bin/sh", "-c", script], subprocess.DEVNULL
        process = subprocess.Popen(argv, env=own, text=True, stdout=subprocess.PIPE, stderr=silent)
        self._processes.append(process)
        output = self.spoil(name, process.communicate()[0])
        if name not in self.no_bucket:
            key = f"{asked['OutputS3KeyPrefix']}/{command}/{name}/awsrunShellScript/{STEP['name']}/stdout"
            body = self.written(name, output, asked["Parameters"]["asked"][0])
            self.cloud.client("s3").put_object(Bucket=asked["OutputS3BucketName"], Key=key, Body=body.encode())
        self._done[command][name] = ("Success" if process.returncode == 0 else "Failed", output[:24_000])

    def _commands(self, asked: dict[str, Any]) -> dict[str, Any]:
        states = {details for details, _ in self._done[asked["CommandId"]].values()}
        status = "InProgress" if "InProgress" in states else "Success" if states == {"Success"} else "Failed"
        return {"Commands": [{"CommandId": asked["CommandId"], "Status": status}]}

    def _invocations(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Pages of two, so that no test passes that reads the first one only."""
        rows = list(self._done[asked["CommandId"]].items())
        start = int(asked.get("NextToken") or 0)
        page = [
            {"InstanceId": name, "Status": _status(details), "StatusDetails": details, **_plugins(asked, output)}
            for name, (details, output) in rows[start : start + 2]
        ]
        more = {"NextToken": str(start + 2)} if start + 2 < len(rows) else {}
        return {"CommandInvocations": page, **more}

    def _invocation(self, asked: dict[str, Any]) -> dict[str, Any]:
        details, output = self._done[asked["CommandId"]][asked["InstanceId"]]
        return {"StatusDetails": details, "StandardOutputContent": output, "StandardErrorContent": "AccessDenied: s3"}

    def _cancel(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.cancelled.append(asked["CommandId"])
        return {}


def _plugins(asked: Mapping[str, Any], output: str) -> dict[str, Any]:
    """With Details: the beginning of what each step printed. Source: CommandPlugin, Output of at most 2,500 characters."""
    return {"CommandPlugins": [{"Name": STEP["name"], "Output": output[:2500]}]} if asked.get("Details") else {}


def _status(details: str) -> str:
    """The status that goes with its details. Source: Run Command's table of statuses."""
    if details.endswith("TimedOut"):
        return "TimedOut"
    return details if details in ("Success", "InProgress", "Cancelled") else "Failed"
