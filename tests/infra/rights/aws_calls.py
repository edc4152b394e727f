"""Which AWS operations the project's own code calls, read from its source, and the IAM actions they take."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import botocore.session
from botocore import xform_name

from tests.infra.stacks import ROOT

SERVICES = (
    *("autoscaling", "cloudwatch", "dynamodb", "ec2", "eks", "events", "fsx", "kms", "lambda", "logs"),
    *("s3", "secretsmanager", "sns", "sqs", "ssm", "sts"),
)
"""Services whose operations are looked for. A client of another one is found by its name and must be added here."""

IAM_PREFIX = {"events": "events"}
ACTIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    # Where the IAM action is not the operation's own name (AWS service authorization reference).
    ("dynamodb", "transact_write_items"): ("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"),
    ("dynamodb", "transact_get_items"): ("GetItem",),
    ("s3", "head_object"): ("GetObject",),
    ("s3", "list_objects_v2"): ("ListBucket",),
    ("s3", "list_object_versions"): ("ListBucketVersions",),
    ("s3", "head_bucket"): ("ListBucket",),
    ("s3", "copy_object"): ("GetObject", "PutObject"),
    ("s3", "delete_objects"): ("DeleteObject",),
    ("s3", "create_multipart_upload"): ("PutObject",),
    ("s3", "upload_part"): ("PutObject",),
    ("s3", "complete_multipart_upload"): ("PutObject",),
    ("autoscaling", "record_lifecycle_action_heartbeat"): ("RecordLifecycleActionHeartbeat",),
}
TRANSFERS = {
    # Methods that boto3 adds to a client.
    "upload_file": ("s3:PutObject",),
    "upload_fileobj": ("s3:PutObject",),
    "download_file": ("s3:GetObject",),
    "download_fileobj": ("s3:GetObject",),
}
NOT_AWS = {
    # Expressions that look like a call of an operation and are not: what they are.
    "url.query": "a part of a URL",
    "parts.query": "a part of a URL",
    "socket.create_connection": "TCP, to the other nodes of a job",
    "super().invoke": "how a click command runs",
}


@dataclass(frozen=True)
class Call:
    """One call in the source. operation: botocore's method name; services: those that have it."""

    path: str
    line: int
    text: str
    operation: str
    services: tuple[str, ...]

    @property
    def actions_known(self) -> bool:
        """Whether it is one operation of one service."""
        return self.operation in TRANSFERS or len(self.services) == 1

    @property
    def actions(self) -> tuple[str, ...]:
        """IAM actions that it takes, with their prefix."""
        if self.operation in TRANSFERS:
            return TRANSFERS[self.operation]
        (service,) = self.services
        names = ACTIONS.get((service, self.operation), (_operation_name(service, self.operation),))
        return tuple(f"{IAM_PREFIX.get(service, service)}:{name}" for name in names)


@cache
def operations() -> Mapping[str, Mapping[str, str]]:
    """Method name -> service -> operation name."""
    session = botocore.session.Session()
    found: dict[str, dict[str, str]] = {}
    for service in SERVICES:
        for name in session.get_service_model(service).operation_names:
            found.setdefault(xform_name(name), {})[service] = name
    return found


def _operation_name(service: str, method: str) -> str:
    return operations()[method][service]


@cache
def calls(source: str, path: str) -> tuple[Call, ...]:
    """Calls of AWS operations: methods of clients (also when handed over uncalled), paginators, presigned URLs."""
    return tuple(_calls(_parsed(source), path))


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _calls(tree: ast.AST, path: str) -> Iterator[Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (node.attr in operations() or node.attr in TRANSFERS):
            text = ast.unparse(node)
            if text not in NOT_AWS:
                yield _call(path, node.lineno, text, node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = {"get_paginator": 0, "generate_presigned_url": 0, "can_paginate": 0}.get(node.func.attr)
            if name is not None:
                argument = node.args[0] if node.args else None
                operation = argument.value if isinstance(argument, ast.Constant) else f"<{ast.unparse(node)}>"
                yield _call(path, node.lineno, ast.unparse(node.func), str(operation))


def _call(path: str, line: int, text: str, operation: str) -> Call:
    services = tuple(operations().get(operation, {}))
    if len(services) > 1:
        # Several services have it: the receiver's name says which.
        services = tuple(service for service in services if service in text.lower()) or services
    return Call(path, line, text, operation, services)


def clients(source: str) -> Iterator[str]:
    """Services that the source makes clients of: client("s3"), session.client("s3"), clients.get("s3")."""
    # Most files name none, and reading the text alone is quick.
    for node in ast.walk(_parsed(source)) if re.search("client|resource", source) else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func)
            if re.search(r"(^|\.)(client|resource)$", called) or re.search(r"clients\.get$", called):
                yield str(node.args[0].value)


def sources(*folders: str) -> dict[str, str]:
    """Path -> text of every Python file under folders of the repository; a file stands for itself."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in (sorted((ROOT / folder).rglob("*.py")) or [ROOT / folder])
    }


def reachable(entry: str) -> set[str]:
    """Files of the repository that a file imports, directly or not; itself included."""
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports(path)
    return found


def live(entry: str) -> list[Call]:
    """Calls that running a file can come to.

    A function, class or method of an imported file counts once its name is mentioned in code that counts. A name that
    two share counts for both: too much is found rather than too little.
    """
    waiting = [unit for path in sorted(reachable(entry)) for unit in _units(path)]
    used: list[Unit] = []
    mentioned: set[str] = set()
    while now := [unit for unit in waiting if unit.path == entry or unit.runs(mentioned)]:
        used += now
        taken = set(now)
        waiting = [unit for unit in waiting if unit not in taken]
        mentioned.update(*(unit.mentions for unit in now))
    return [call for unit in used for call in unit.calls]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Unit:
    """A function, a method with its class, or a statement that runs when the file is imported (neither is set)."""

    path: str
    node: ast.AST
    owner: str = ""
    name: str = ""

    def runs(self, mentioned: set[str]) -> bool:
        """Whether code that counts mentions it. Methods count by their own name, whatever they are called on."""
        if self.owner and not {self.owner, f".{self.owner}"} & mentioned:
            return False
        if self.owner:
            return not self.name or f".{self.name}" in mentioned
        return not self.name or bool({self.name, f"{Path(self.path).stem}.{self.name}"} & mentioned)

    @cached_property
    def mentions(self) -> frozenset[str]:
        return frozenset(_mentions(self.node, "flightline_node" in self.path))

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(_calls(self.node, self.path))


@cache
def _units(path: str) -> list[Unit]:
    found: list[Unit] = []
    for node in _parsed((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found += _members(path, node)
        else:
            found.append(Unit(path, node, name=node.name if isinstance(node, _FUNCTIONS) else ""))
    return found


def _members(path: str, owner: ast.ClassDef) -> Iterator[Unit]:
    for node in (*owner.bases, *owner.decorator_list, *owner.body):
        # Python calls __init__ and its like itself.
        name = node.name if isinstance(node, _FUNCTIONS) else ""
        yield Unit(path, node, owner.name, "" if name.startswith("__") else name)


def _mentions(node: ast.AST, in_node_library: bool = False) -> Iterator[str]:
    """Names, and attributes for methods; `module.name` for functions of modules."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        # An import alone runs nothing of what it names; under another name its uses would not be seen.
        # A constant runs nothing under any name, and the node library calls no AWS.
        renamed = [one for one in node.names if one.asname and not one.name.isupper()]
        assert not renamed or in_node_library, ast.unparse(node)
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield f".{inner.attr}"
            yield f"{ast.unparse(inner.value).rpartition('.')[2]}.{inner.attr}"


@cache
def _imports(path: str) -> list[str]:
    folder, found = Path(path).parent, list[str]()
    for node in ast.walk(_parsed((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found += _files(Path(*alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            base = folder.joinpath(*[".."] * (node.level - 1)) if node.level else Path()
            module = base.joinpath(*(node.module or "").split(".")) if node.module else base
            for place in (module, *(module / alias.name for alias in node.names)):
                found += _files(place)
        elif isinstance(node, ast.Name) and node.id == "iter_modules":
            # A registry: whatever stands in its folder is imported.
            found += [one.relative_to(ROOT).as_posix() for one in sorted((ROOT / folder).glob("*.py"))]
    return found


def _files(module: Path) -> Iterator[str]:
    for candidate in (module.with_suffix(".py"), module / "__init__.py"):
        for base in (ROOT, ROOT / "module_utils"):
            path = (base / candidate).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                yield path.relative_to(ROOT).as_posix()


def shell_actions(script: str) -> set[str]:
    """IAM actions of the aws commands in a shell script."""
    found: set[str] = set()
    for service, command, rest in re.findall(r"\baws ([a-z0-9]+) ([a-z0-9-]+)(.*)", script):
        if (service, command) == ("s3", "cp"):
            source = re.findall(r'"([^"]*)"', rest)[0]
            found.add("s3:GetObject" if source.endswith("_URL") else "s3:PutObject")
        else:
            found.add(f"{service}:{''.join(word.capitalize() for word in command.split('-'))}")
    return found
