"""Ask through Systems Manager: Run Command with the stack's own document, answers over the results bucket.

Sources: the API reference of Systems Manager (SendCommand, ListCommandInvocations, DescribeInstanceInformation) and its
user guide: Run Command keeps 24,000 characters of an output itself and writes the whole of it to a bucket, under
PREFIX/COMMAND/INSTANCE/awsrunShellScript/STEP/stdout, before it says that the instance is done. Every node may write
into that bucket, so an answer there is believed for its digest (cloud/vouched.py).
"""

from __future__ import annotations

import base64
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flightline_node import bounds
from flightline_node.model import SettingsError

from ... import contract
from ...cloud import vouched
from ...cloud.clients import Clients, explain, is_aws_error
from ...cloud.vouched import FINAL, NONE, Invocation
from ...record import outputs
from ...record.answers import most_bytes, said
from .. import library_call
from ..calls import OF_A_STACK, Call, broadcast, packed
from . import Detaching, HostReply, LaunchError

if TYPE_CHECKING:
    from ...cloud.orders import Order

Tell = Callable[[HostReply], None]
T = TypeVar("T")
MOST_IDS = 50
"""Instances that one command may name. Source: SendCommand, InstanceIds and the values of a target."""
DELIVER_S = 120
"""For the agent to fetch a command; it polls without a pause while it is well."""
LEAST_DELIVER_S = 30
POLL_S, MOST_POLL_S = 2.0, 20.0
SETTLE_S = 20.0
"""For an output to be seen in the bucket after the command has ended."""
READERS = 16
RAN = frozenset({"Success", "Failed", "ExecutionTimedOut"})
"""Of the details of an invocation: its task was started. Others (Undeliverable, DeliveryTimedOut, ...) never were."""
WELL = "Online"


@dataclass
class _SentCommand:
    """One command and whom it still owes an answer. ended_at: when it was first final."""

    id: str
    waiting: dict[str, Call]
    ended_at: float = 0.0


class SsmLauncher(Detaching):
    """The launcher. It takes no further words."""

    says: ClassVar[str] = "Systems Manager, for a stack"
    how = "Systems Manager"

    def __init__(self, options: Sequence[str] = (), clients: Callable[[str], Clients] = Clients) -> None:
        super().__init__(options)
        self._make = clients
        self._clients: Clients | None = None
        self._stack: Mapping[str, str] = {}
        self._managed: dict[str, str] = {}
        self._commands: list[_SentCommand] = []
        self._stopped = threading.Event()

    def known_as(self, call: Call) -> str:
        """See Launcher."""
        name = str(call.params["instance_id"])
        if not name:
            raise SettingsError(f"saw no instance_id of {call.host}; wanted one for --via ssm; do: set it")
        return name

    def unlisted(self, calls: Sequence[Call]) -> Mapping[str, str]:
        """Managed GPU nodes of the stack that are no host of the inventory."""
        self._look(calls)
        known = {call.name for call in calls}
        return {
            name: f"Systems Manager has it in this cluster, {ping}"
            for name, ping in self._managed.items()
            if name not in known
        }

    def ask(self, calls: Sequence[Call], run_id: str, until: float, on_reply: Tell) -> None:
        """See Launcher."""
        ready, lost = self.sort_out(calls)
        for reply in lost:
            on_reply(reply)
        self.send(ready, run_id, until)
        self._listen(run_id, until, on_reply)

    def sort_out(self, calls: Sequence[Call]) -> tuple[list[Call], list[HostReply]]:
        """See Detaching."""
        if not self._managed:
            self._look(calls)
        unfit = {call.host: _unfit(call.name, self._managed.get(call.name)) for call in calls}
        lost = [HostReply(host, trouble=why, lost=True) for host, why in unfit.items() if why]
        return [call for call in calls if not unfit[call.host]], lost

    def send(self, ready: Sequence[Call], run_id: str, until: float) -> None:
        """See Detaching."""
        for targets, group, asked in self._rounds(ready):
            if self._stopped.is_set():
                return
            self._send(targets, group, asked, run_id, until)

    def came(self, at: Mapping[str, str], order: Order, known: Iterable[str]) -> Iterator[tuple[Call, HostReply]]:
        """See Detaching."""
        clients = self._make(at["region"])
        s3, bucket, known = clients.get("s3"), at["results_bucket"], set(known)
        for key, command, name in _outputs(s3, bucket, order.run.run_id):
            host = order.nodes[name][1] if name in order.nodes else ""
            call = Call(host, name, order.params(name)) if host and host not in known else None
            if call:
                own = vouched.invocation(clients.get("ssm"), command, name).output
                yield call, _vouched(s3, bucket, key, call, own)

    @property
    def answers_at(self) -> Mapping[str, str]:
        """See Launcher; known once the stack was looked for."""
        return self._stack

    def stop(self) -> None:
        """End every command; its processes on the nodes are ended by their agents."""
        self._stopped.set()
        for command in self._commands:
            if command.waiting:
                self._try(lambda one=command: self._client("ssm").cancel_command(CommandId=one.id))  # type: ignore[misc]

    def _client(self, service: str) -> Any:
        self._clients = self._clients or self._make(self._stack["region"])
        return self._clients.get(service)

    def _look(self, calls: Sequence[Call]) -> None:
        """Find the stack and the nodes that Systems Manager manages for it."""
        stacks = {tuple(call.stack.get(name, "") for name in OF_A_STACK) for call in calls}
        found = stacks.pop() if len(stacks) == 1 else ()
        if not all(found) or not found:
            raise SettingsError(
                "saw hosts of no stack, or of several; wanted those of one for --via ssm; "
                "do: make outputs, then -i inventory/aws_ec2.yml"
            )
        self._stack = dict(zip(OF_A_STACK, found))
        with _explained("look for managed nodes"):
            pages = self._client("ssm").get_paginator("describe_instance_information").paginate(Filters=self._tags())
            self._managed = {
                one["InstanceId"]: one.get("PingStatus", "")
                for page in pages
                for one in page["InstanceInformationList"]
            }

    def _tags(self) -> list[dict[str, Any]]:
        """The stack's GPU nodes, as a filter and as a target."""
        tags = {contract.TAG_CLUSTER: self._stack["cluster_name"], contract.TAG_ROLE: contract.ROLE_GPU}
        return [{"Key": f"tag:{name}", "Values": [value]} for name, value in tags.items()]

    def _rounds(self, calls: Sequence[Call]) -> Iterator[tuple[list[dict[str, Any]], Sequence[Call], dict[str, Any]]]:
        """Target, calls and what is asked of each command: one for the whole stack when all of it is asked alike."""
        kinds: dict[str, list[Call]] = {}
        for call in calls:
            kinds.setdefault(call.installed, []).append(call)
        if len(kinds) == 1 and len(calls) == len(self._managed):
            asked = broadcast(calls)
            if asked:
                yield self._tags(), calls, asked
                return
        for kind in kinds.values():
            for start in range(0, len(kind), MOST_IDS):
                some = kind[start : start + MOST_IDS]
                yield [{"Key": "InstanceIds", "Values": [call.name for call in some]}], some, packed(some)

    def _send(
        self,
        targets: list[dict[str, Any]],
        calls: Sequence[Call],
        asked: Mapping[str, Any],
        run_id: str,
        until: float,
    ) -> None:
        end_s = max(int(call.params["timeout_s"]) for call in calls) + bounds.NODE_GRACE_S
        left_s = int(until - time.monotonic())
        document = contract.preflight_document(self._stack["cluster_name"])
        with _explained(f"run {document}"):
            done = self._client("ssm").send_command(
                DocumentName=document,
                Targets=targets,
                Parameters={
                    "key": [library_call.own_key()],
                    "installed": [calls[0].installed],
                    "endS": [str(end_s)],
                    "asked": [base64.b64encode(zlib.compress(json.dumps(asked).encode(), 9)).decode("ascii")],
                },
                Comment=f"Flightline preflight {run_id}",
                TimeoutSeconds=max(LEAST_DELIVER_S, min(DELIVER_S, left_s)),
                # A node that fails must not keep the others from being asked.
                MaxConcurrency="100%",
                MaxErrors="100%",
                OutputS3BucketName=self._stack["results_bucket"],
                OutputS3KeyPrefix=_prefix(run_id),
            )
        self._commands.append(_SentCommand(done["Command"]["CommandId"], {call.name: call for call in calls}))

    def _listen(self, run_id: str, until: float, on_reply: Tell) -> None:
        """Until every host was told of, the deadline is over or the run was stopped."""
        with ThreadPoolExecutor(READERS, "ssm") as pool:
            while not self._stopped.is_set() and time.monotonic() < until:
                began = time.monotonic()
                for command in self._commands:
                    if command.waiting:
                        self._try(lambda one=command: self._round(one, run_id, pool, on_reply))  # type: ignore[misc]
                if not any(command.waiting for command in self._commands):
                    return
                # A round over thousands of nodes is many requests: they must not be all that this account may ask.
                self._stopped.wait(min(max(POLL_S, time.monotonic() - began), MOST_POLL_S))

    def _try(self, do: Callable[[], T]) -> T | None:
        """What AWS refuses now it may grant in the next round; what it says last is kept for who gets no answer."""
        try:
            return do()
        except Exception as error:
            if not is_aws_error(error):
                raise
            self.how = f"Systems Manager; {explain(error, 'the last request')}"
            return None

    def _round(self, command: _SentCommand, run_id: str, pool: ThreadPoolExecutor, on_reply: Tell) -> None:
        final = self._is_final(command)  # before the bucket is listed: what it holds then is all there will be
        self._take(command, run_id, pool, on_reply)
        if final and command.waiting:
            command.ended_at = command.ended_at or time.monotonic()
            self._explain(command, on_reply)

    def _is_final(self, command: _SentCommand) -> bool:
        listed = self._client("ssm").list_commands(CommandId=command.id)["Commands"]
        return bool(listed) and listed[0].get("Status") in FINAL

    def _take(self, command: _SentCommand, run_id: str, pool: ThreadPoolExecutor, on_reply: Tell) -> None:
        """The outputs that have come into the bucket, of instances that Systems Manager says are done."""
        come = list(_outputs(self._client("s3"), self._stack["results_bucket"], run_id, command.id))
        if not any(name in command.waiting for *_, name in come):
            return
        own = {name: one.output for name, one in self._invocations(command).items() if one.status in FINAL}
        new = [
            (key, command.waiting[name], own[name]) for key, _, name in come if name in command.waiting and name in own
        ]
        # Each by itself: an object that this side may not read must not keep those behind it from being read.
        found = pool.map(lambda one: self._try(lambda: self._read(*one)), new)
        for (_, call, *_), reply in zip(new, found):
            if reply and command.waiting.pop(call.name, None):
                on_reply(reply)

    def _read(self, key: str, call: Call, own: str) -> HostReply:
        return _vouched(self._client("s3"), self._stack["results_bucket"], key, call, own)

    def _explain(self, command: _SentCommand, on_reply: Tell) -> None:
        """The command has ended: who gave no output is told of with what Systems Manager says of it."""
        said_of = self._invocations(command)
        settled = time.monotonic() - command.ended_at > SETTLE_S
        for name, call in list(command.waiting.items()):
            status, details, _ = said_of.get(name, NONE)
            if details == "Success" and not settled:
                continue
            if details in RAN:
                reply = self._kept(command, call, details)
            else:
                words = f"Systems Manager says {details or status}" if status else "Systems Manager sent it nothing"
                reply = HostReply(call.host, trouble=words, lost=True)
            # Not before: what AWS refuses of it is asked again in the next round.
            del command.waiting[name]
            on_reply(reply)

    def _invocations(self, command: _SentCommand) -> dict[str, Invocation]:
        return vouched.invocations(self._client("ssm"), CommandId=command.id)

    def _kept(self, command: _SentCommand, call: Call, details: str) -> HostReply:
        """What Systems Manager itself kept of an output that reached no bucket: short ones are whole."""
        done = self._client("ssm").get_command_invocation(CommandId=command.id, InstanceId=call.name)
        found = read(call, str(done.get("StandardOutputContent") or ""))
        if found.answer is not None:
            return found
        error = said(str(done.get("StandardErrorContent") or "no word of why"))
        words = f"Systems Manager says {details}, and its output came neither whole nor into the bucket: {error}"
        return HostReply(call.host, trouble=words)


def read(call: Call, text: str) -> HostReply:
    """What came of a host, from the whole output of its task."""
    return outputs.read(call.host, call.name, text, _most(call))


def _most(call: Call) -> int:
    return most_bytes(bool(call.params.get("return_bundle")))


def _outputs(s3: Any, bucket: str, run_id: str, command: str = "") -> Iterator[tuple[str, str, str]]:
    """(key, command, instance) of the outputs of a run, or of one of its commands, that are in a bucket."""
    base = f"{_prefix(run_id)}/"
    prefix = f"{base}{command}/" if command else base
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for one in page.get("Contents", ()):
            words = one["Key"][len(base) :].split("/")
            if len(words) == 5 and words[4] == "stdout":
                yield one["Key"], words[0], words[1]


def _vouched(s3: Any, bucket: str, key: str, call: Call, own: str) -> HostReply:
    """What came of a host, of an output that anybody may have written. own: its beginning that Systems Manager has."""
    texts = vouched.texts(s3, bucket, key, 2 * _most(call))
    return vouched.vouched(call.host, lambda text: read(call, text), texts, own)


def _prefix(run_id: str) -> str:
    return f"{contract.CALLS_PREFIX}{run_id}"


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Raises LaunchError for what AWS refuses."""
    try:
        yield
    except Exception as error:
        if not is_aws_error(error):
            raise
        raise LaunchError(f"saw {explain(error, what)}; wanted Systems Manager to ask the nodes") from error


def _unfit(name: str, ping: str | None) -> str:
    """Why no command can reach a node, or ""."""
    if ping is None:
        return f"Systems Manager manages no {name}: its agent does not run, or its role may not (asked: its tags)"
    return "" if ping == WELL else f"Systems Manager says the agent of {name} is {ping or 'in no state'}"
