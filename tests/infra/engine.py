"""A stand-in for Pulumi's engine: Pulumi's own mocks, plus what they leave out.

It calls stack transforms over gRPC as the engine does (same request, same callback server), keeps each request with
its options, and answers with invented ids. It creates nothing.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import grpc
import pulumi
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2, source_pb2
from pulumi.runtime.settings import ROOT, SETTINGS
from pulumi.runtime.stack import run_in_stack

from infra.policies import Registered

PROJECT = "flightline"
_IDLE_LOOP = asyncio.new_event_loop()


@dataclass(frozen=True)
class Aliased:
    """Where a resource was before; empty for what is as it is now."""

    name: str
    type_: str
    no_parent: bool


@dataclass(frozen=True)
class Request:
    """One resource as it reached the engine. props: plain values by the engine's names. id, arn: invented.

    ignored: properties whose change the engine leaves alone. aliased: what it was before.
    """

    urn: str
    type_: str
    name: str
    props: Mapping[str, Any]
    secret_props: frozenset[str]
    custom: bool
    parent: str
    dependencies: frozenset[str]
    protect: bool
    retain: bool
    ignored: frozenset[str]
    timeouts: Mapping[str, str]
    aliased: tuple[Aliased, ...]
    id: str
    arn: str


@dataclass
class Run:
    """What one run of a program registered."""

    requests: list[Request] = field(default_factory=list)
    component_outputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    def of(self, type_: str) -> list[Request]:
        return [request for request in self.requests if request.type_ == type_]

    def one(self, name: str) -> Request:
        (found,) = [request for request in self.requests if request.name == name]
        return found

    def before(self, name: str) -> set[str]:
        """Names of all that is made before it."""
        by_urn = {one.urn: one for one in self.requests}
        found, waiting = set[str](), [one.urn for one in self.custom if one.name == name]
        assert waiting, f"nothing is called {name}"
        while waiting:
            new = by_urn[waiting.pop()].dependencies - found
            found |= new
            waiting += sorted(new)
        return {by_urn[urn].name for urn in found}

    @property
    def custom(self) -> list[Request]:
        return [request for request in self.requests if request.custom]

    @property
    def registered(self) -> tuple[Registered, ...]:
        """The requests as policies see them."""
        return tuple(
            Registered(one.type_, one.name, one.props, one.protect, one.retain, one.secret_props)
            for one in self.requests
        )


class _Answers(mocks.Mocks):
    def __init__(self, calls: Mapping[str, Any]) -> None:
        self._calls = calls

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        digest = hashlib.sha256(f"{args.typ}|{args.name}".encode()).hexdigest()[:17]
        state = {**args.inputs, **_computed(args, digest)}
        return state.get("_id", _ID_PREFIX.get(args.typ, "id") + "-" + digest), state

    def call(self, args: mocks.MockCallArgs) -> Any:
        answer = self._calls.get(args.token)
        if answer is None:
            raise AssertionError(f"the program calls {args.token}; this test gave no answer for it")
        return answer(args.args) if callable(answer) else answer


_ID_PREFIX = {
    "aws:ec2/vpc:Vpc": "vpc",
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/securityGroup:SecurityGroup": "sg",
    "aws:ec2/launchTemplate:LaunchTemplate": "lt",
    "aws:ec2/instance:Instance": "i",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fs",
}


def _computed(args: mocks.MockResourceArgs, digest: str) -> dict[str, Any]:
    """Properties that AWS fills in; invented."""
    service = args.typ.split(":")[1].split("/")[0] if args.typ.startswith("aws:") else "x"
    name = args.inputs.get("name") or args.inputs.get("bucket") or args.name
    made: dict[str, Any] = {"arn": f"arn:aws:{service}:us-east-1:123456789012:{name}"}
    if args.typ == "aws:fsx/lustreFileSystem:LustreFileSystem":
        made.update(dnsName=f"fs-{digest}.fsx.us-east-1.amazonaws.com", mountName="abcdefgh")
    if args.typ == "aws:eks/cluster:Cluster":
        # Beside what was asked for: EKS answers with the same block and its own part of it.
        vpc = {**args.inputs["vpcConfig"], "clusterSecurityGroupId": f"sg-{digest}", "vpcId": f"vpc-{digest}"}
        made.update(endpoint=f"https://{digest}.gr7.us-east-1.eks.amazonaws.com", vpcConfig=vpc)
        made.update(certificateAuthority={"data": "bm90IG9uZQ=="})
    if args.typ == "aws:eks/nodeGroup:NodeGroup":
        groups = [{"name": f"eks-{args.inputs['nodeGroupName']}-{digest}"}]
        made.update(resources=[{"autoscalingGroups": groups, "remoteAccessSecurityGroupId": ""}])
    if args.typ == "aws:ec2/launchTemplate:LaunchTemplate":
        made["latestVersion"] = 1
    if args.typ == "aws:iam/role:Role":
        made["arn"] = f"arn:aws:iam::123456789012:role/{name}"
    if args.typ in ("aws:s3/bucket:Bucket", "aws:autoscaling/group:Group", "aws:iam/role:Role"):
        made["_id"] = name
    if args.typ == "aws:sns/topic:Topic":
        made["_id"] = made["arn"]
    return made


class _Monitor(mocks.MockMonitor):
    def __init__(self, answers: mocks.Mocks, run: Run, preview: bool) -> None:
        super().__init__(answers)
        self._run, self._preview = run, preview
        self._transforms: list[tuple[grpc.Channel, callback_pb2.Callback]] = []

    def close(self) -> None:
        for channel, _ in self._transforms:
            channel.close()

    def RegisterStackTransform(self, request: Any) -> Any:
        # Channels of a process share connections by address, and a port may come again that an earlier run has closed.
        channel = grpc.insecure_channel(request.target, options=[("grpc.use_local_subchannel_pool", 1)])
        self._transforms.append((channel, request))
        return super().RegisterStackTransform(request)

    def RegisterResource(self, request: Any) -> Any:
        if request.type == "pulumi:pulumi:Stack":
            return super().RegisterResource(request)
        for channel, callback in self._transforms:
            _transform(channel, callback, request)
        response = super().RegisterResource(request)
        self._run.requests.append(_request(self, request, response))
        if self._preview and request.custom:
            return resource_pb2.RegisterResourceResponse(urn=response.urn, object=request.object)
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:
        outputs = _whole(rpc.deserialize_properties(request.outputs, keep_unknowns=True))
        if request.urn.split("::")[2] == "pulumi:pulumi:Stack":
            self._run.outputs.update(outputs)
        else:
            self._run.component_outputs[request.urn] = outputs
        return super().RegisterResourceOutputs(request)


def _transform(channel: grpc.Channel, callback: Any, request: Any) -> None:
    options = resource_pb2.TransformResourceOptions(retain_on_delete=request.retainOnDelete)
    if request.HasField("protect"):
        options.protect = request.protect
    ask = resource_pb2.TransformRequest(
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent=request.parent,
        properties=request.object,
        options=options,
    )
    callback_pb2_grpc.CallbacksStub(channel).Invoke(
        callback_pb2.CallbackInvokeRequest(token=callback.token, request=ask.SerializeToString())
    )


def _request(monitor: mocks.MockMonitor, request: Any, response: Any) -> Request:
    props = rpc.deserialize_properties(request.object, keep_unknowns=True)
    return Request(
        urn=monitor.make_urn(request.parent, request.type, request.name),
        type_=request.type,
        name=request.name,
        props={key: _whole(rpc.unwrap_rpc_secret(value)) for key, value in props.items()},
        secret_props=frozenset(key for key, value in props.items() if rpc.is_rpc_secret(value)),
        custom=request.custom,
        parent=request.parent,
        dependencies=frozenset(request.dependencies),
        protect=request.protect,
        retain=request.retainOnDelete,
        ignored=frozenset(request.ignoreChanges),
        timeouts={name: getattr(request.customTimeouts, name) for name in ("create", "update", "delete")},
        aliased=tuple(Aliased(one.spec.name, one.spec.type, one.spec.noParent) for one in request.aliases),
        id=response.id,
        arn=str(rpc.deserialize_properties(response.object).get("arn", "")),
    )


def _whole(value: Any) -> Any:
    """On the wire every number is a float; the program's whole numbers are shown as such."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def run(
    program: Callable[[], Any],
    *,
    calls: Mapping[str, Any] | None = None,
    config: Mapping[str, str] | None = None,
    secret_keys: tuple[str, ...] = (),
    stack: str = "test",
    preview: bool = False,
) -> Run:
    """Run a program to its end; an error it ends with is in `.error`."""
    result = Run()
    monitor = _Monitor(_Answers(calls or {}), result, preview)

    async def main() -> None:
        # A failed registration leaves futures behind that nobody waits for; the error itself is in the result.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        SETTINGS.rpc_manager.clear()
        SETTINGS.outputs.clear()
        pulumi.runtime.set_all_config(dict(config or {}), list(secret_keys))
        mocks.set_mocks(_Answers(calls or {}), PROJECT, stack, preview, monitor=monitor)
        ROOT.set(None)
        await run_in_stack(program)

    try:
        # Which line registered what is for the real engine's messages, and takes a sixth of a run.
        with mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace):
            asyncio.run(main())
    except Exception as error:
        result.error = error
    finally:
        monitor.close()
        # asyncio.run leaves the thread without a loop; a test that makes an Output outside of a run needs one.
        asyncio.set_event_loop(_IDLE_LOOP)
    return result
