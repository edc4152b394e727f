"""Runs the policies inside `pulumi preview` and `pulumi up`: a resource that breaks one is never registered.

The engine calls the transform with every resource before it does anything about it. In a preview some values are not
known yet: what depends on them is left open there and judged during the update, when the engine asks again with the
values and before the resource is created. An answer that is still open then counts as a breach. A preview makes
nothing, so it goes on after a breach and ends with all of them.

What a transform raises comes back from the engine as text with a traceback, and the language host prints another. So it
fails the verdict first, which an output of the stack waits for: the program ends by that, a RunError, as its sentences
alone, and the resource's registration, which still waits, ends with it.
"""

import asyncio
from typing import Any, Iterable, Mapping, Sequence

import pulumi
from pulumi.output import Unknown as PulumiUnknown
from pulumi.runtime import rpc

from infra.policies import RULES, UNKNOWN, Broken, PolicyContext, PolicyFinding, Registered, judge, judge_stack
from infra.policies.locks import LOCK
from infra.policies.secrets import OUTPUTS
from infra.policies.secrets import RULE as SECRETS

GRACE_S = 10.0
"""How long a refused resource waits for the program to end by the verdict; it is never made, whoever is first."""


class PolicyBreach(pulumi.RunError):
    """A resource breaks a policy; the message names both."""


class Lock(pulumi.ComponentResource):
    """Nothing in AWS. What it depends on is deleted after it, so while it is protected Pulumi deletes none of that."""

    def __init__(self, after: Sequence[pulumi.Resource]) -> None:
        super().__init__(LOCK, "lock", {}, pulumi.ResourceOptions(depends_on=list(after), protect=True))
        self.register_outputs({})


class Outputs(pulumi.ComponentResource):
    """Registered last: it carries the outputs past the policies and lets the rules that need every resource run."""

    def __init__(self, outputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(OUTPUTS, "policies", dict(outputs), opts)
        self.register_outputs({})


class PolicyGuard:
    """The policies of one stack."""

    def __init__(self, site: PolicyContext) -> None:
        self._site = site
        self._seen: list[Registered] = []
        self.open: list[PolicyFinding] = []
        """What a preview could not judge yet."""
        self._broken: list[PolicyFinding] = []
        self._verdict: asyncio.Future[None] | None = None

    def install(self) -> None:
        """Judge every resource registered from now on."""
        self._verdict = asyncio.get_running_loop().create_future()
        pulumi.runtime.register_resource_transform(self._transform)

    def finish(
        self, outputs: Mapping[str, Any], foundation: Sequence[pulumi.Resource], compute: Sequence[pulumi.Resource] = ()
    ) -> None:
        """Judge the stack as a whole once everything is registered; then export the outputs.

        With data to keep, the component of the outputs is a lock of everything, and another one is of the ground: what
        stays when only the compute is torn down. The engine deletes in the order of dependencies and asks each resource
        when its turn comes; so a destroy without a preview would tear everything down that stands before the data.
        """
        keep = self._site.keep_data
        locks = [Lock(foundation)] if keep else []
        exported = Outputs(
            # To the SDK a component is its children, and a lock has none: so an output waits for it.
            _held(outputs, [lock.urn for lock in locks]),
            pulumi.ResourceOptions(depends_on=[*foundation, *compute, *locks], protect=keep),
        )
        # Here and not in the transform, which knows one resource: a preview ends with everything that is wrong.
        for name, value in _held(outputs, [exported.urn.apply(self._end), self._verdict]).items():
            pulumi.export(name, value)

    async def _transform(self, args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        try:
            resource = await registered(args)
            self._settle(judge(resource, self._site))
            self._seen.append(resource)
            if resource.type_ == OUTPUTS:
                self._settle(judge_stack(tuple(self._seen)))
        except Exception as error:
            refused = error if isinstance(error, PolicyBreach) else _fault(args, error)
            if self._verdict and not self._verdict.done():
                self._verdict.set_exception(refused)
            await asyncio.sleep(GRACE_S)
            raise refused from None
        return None

    def _settle(self, findings: Iterable[PolicyFinding]) -> None:
        found = list(findings)
        preview = pulumi.runtime.is_dry_run()
        breaches = [finding for finding in found if isinstance(finding.answer, Broken) or not preview]
        self.open += [finding for finding in found if finding not in breaches]
        if preview and not any(finding.rule == SECRETS.id for finding in breaches):
            self._broken += breaches
        elif breaches:
            # An update must not make the resource and a preview must not print the secret, so the callback has to fail.
            raise PolicyBreach(message(breaches))

    def _end(self, _: str) -> None:
        """Everything is judged: pass, or end a preview with everything that is wrong."""
        if self._broken:
            raise PolicyBreach(message(self._broken))
        if self._verdict and not self._verdict.done():
            self._verdict.set_result(None)


def _fault(args: pulumi.ResourceTransformArgs, error: Exception) -> PolicyBreach:
    seen = f"{type(error).__name__}: {error}"
    return PolicyBreach(f"{args.name} ({args.type_}): saw {seen} in a policy, wanted a judgement; do: report this text")


def _held(outputs: Mapping[str, Any], by: Sequence[Any]) -> dict[str, Any]:
    """The outputs, the first of which waits for these as well."""
    first = {name: pulumi.Output.all(value, *by).apply(_first) for name, value in list(outputs.items())[:1]}
    return {**outputs, **first}


def _first(parts: Sequence[Any]) -> Any:
    return parts[0]


def message(breaches: Sequence[PolicyFinding]) -> str:
    """What is shown: every breach, then why its rule exists."""
    whys = {rule.id: rule.why for rule in RULES}
    lines = [f"  {finding}" for finding in breaches]
    lines += [f"  Why {rule}: {whys[rule]}" for rule in dict.fromkeys(finding.rule for finding in breaches)]
    return "policy broken, nothing was changed for this resource:\n" + "\n".join(lines)


async def registered(args: pulumi.ResourceTransformArgs) -> Registered:
    """What the policies read: plain values, unknown ones marked, secret properties named."""
    given = dict(args.props or {})
    secret = frozenset({key for key, value in given.items() if await _is_secret(value)})
    props = {key: await _plain(value) for key, value in given.items()}
    opts = args.opts
    return Registered(
        type_=args.type_,
        name=args.name,
        props=props,
        protect=bool(opts.protect),
        retain=bool(opts.retain_on_delete),
        secret_props=secret,
    )


async def _is_secret(value: Any) -> bool:
    if isinstance(value, pulumi.Output):
        return await value.is_secret()
    if rpc.is_rpc_secret(value):
        return True
    if isinstance(value, dict):
        return any([await _is_secret(inner) for inner in value.values()])
    if isinstance(value, list):
        return any([await _is_secret(inner) for inner in value])
    return False


async def _plain(value: Any) -> Any:
    if isinstance(value, pulumi.Output):
        return await _plain(await value.future()) if await value.is_known() else UNKNOWN
    if isinstance(value, PulumiUnknown):
        return UNKNOWN
    if rpc.is_rpc_secret(value):
        return await _plain(rpc.unwrap_rpc_secret(value))
    if isinstance(value, dict):
        return {key: await _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [await _plain(inner) for inner in value]
    return value
