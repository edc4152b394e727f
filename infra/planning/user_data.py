"""Cloud-init user data of GPU nodes: the boot preflight and what it needs to know.

Everything on the node can read its user data, and so can everybody with ec2:DescribeInstanceAttribute: no secret
belongs here. The checksum does: it is what makes the package from S3 trustworthy.
"""

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from flightline.contract import BOOT_PREFIX
from flightline_node.inputs import INPUTS
from infra.config.model import StackSettings
from infra.planning import efa
from infra.planning.names import Names, Place

MAX_BYTES = 16 * 1024
"""EC2's limit, before base64."""

START_UP_S = 180
"""What the download and the evidence may take of the preflight's time."""

CONFIGURED_LATER = (
    *("clock_sync", "cpu_governor", "hugepages", "lnet", "lustre", "memlock", "mounts", "open_files", "raid"),
    *("swap", "sysctl"),
)
"""Checks of what only the playbooks set up, where nodes do not configure themselves; `make preflight` judges them."""

_FILES = Path(__file__).parents[2] / "roles" / "flightline_node" / "files"
"""Unit and script are the role's: a node has one of each, whoever wrote them first."""
_SCRIPT = "/usr/local/sbin/flightline-boot"
_UNIT = "flightline-boot.service"
_NAME = r"[A-Za-z0-9_.-]{0,255}"
_TYPE = r"[a-z0-9-]+\.[a-z0-9-]+"
_SHA256 = r"[0-9a-f]{64}"
_S3_URL = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.=-]+)*"
_BOOTS_URL = rf"{_S3_URL}(/arn:[a-z0-9:-]+:instance)?"
_LINE, _FORM, _SHOWN = "line", "form", "shown"


def _line(
    name: str, form: str = "", default: Any = MISSING, shown: Callable[[Any], object] = lambda value: value
) -> Any:
    """A value that the script reads by a name. form: of text; for the shell it has no quote, no dollar and no space."""
    return field(default=default, metadata={_LINE: name, _FORM: form, _SHOWN: shown})


@dataclass(frozen=True, kw_only=True)
class BootPlan:
    """What a node needs to judge itself at boot.

    package_url: s3://bucket/key of the node package; package_sha256: its checksum, 64 hexadecimal digits.
    group: the Auto Scaling group that waits for the node; empty for one outside a group.
    results_url: s3://bucket/prefix for records and for bundles of failed nodes, each under its instance id; it ends
    with what is before that in an instance's ARN, for IAM knows a writer by that. Empty keeps them on the node only.
    roles_url, variables_url: the roles and the stack's variables for them, with their checksums; empty: by hand only.
    efa_count: EFA interfaces that the launch template asks for; None leaves it to the type's entry.
    other_types: what the group may launch beside instance_type, with commas; the node then asks which one it is.
    """

    region: str = _line("REGION", r"[a-z0-9-]+")
    instance_type: str = _line("INSTANCE_TYPE", _TYPE)
    other_types: str = _line("OTHER_TYPES", f"({_TYPE}(,{_TYPE})*)?", "")
    level: str = _line("LEVEL", r"quick|standard")
    time_limit_minutes: int = _line("LIMIT_S", shown=lambda minutes: minutes * 60 - START_UP_S)
    package_url: str = _line("PACKAGE_URL", _S3_URL)
    package_sha256: str = _line("PACKAGE_SHA256", _SHA256)
    group: str = _line("GROUP", _NAME)
    results_url: str = _line("RESULTS_URL", f"({_BOOTS_URL})?")
    roles_url: str = _line("ROLES_URL", f"({_S3_URL})?", "")
    roles_sha256: str = _line("ROLES_SHA256", f"({_SHA256})?", "")
    variables_url: str = _line("VARIABLES_URL", f"({_S3_URL})?", "")
    variables_sha256: str = _line("VARIABLES_SHA256", f"({_SHA256})?", "")
    configure_minutes: int = _line("CONFIGURE_S", default=30, shown=lambda minutes: minutes * 60)
    efa_count: int | None = None
    skip: tuple[str, ...] = CONFIGURED_LATER


@dataclass(frozen=True)
class BootRoles:
    """Checksums of the roles' bundle and of the stack's variables."""

    sha256: str
    variables_sha256: str


def boot_plan(
    settings: StackSettings, names: Names, place: Place, package_sha256: str, roles: BootRoles | None = None
) -> BootPlan:
    """The plan of a stack's GPU nodes. roles: None leaves them to `make configure`."""
    nodes, bucket = settings.nodes, f"s3://{names.results_bucket}"
    return BootPlan(
        region=settings.region,
        instance_type=nodes.instance_type,
        level=settings.boot.level,
        time_limit_minutes=settings.boot.time_limit_minutes,
        package_url=f"{bucket}/{names.package_key(package_sha256)}",
        package_sha256=package_sha256,
        group=names.node_group,
        results_url=f"{bucket}/{BOOT_PREFIX}{place.arn('ec2', 'instance')}",
        roles_url=f"{bucket}/{names.roles_key(roles.sha256)}" if roles else "",
        roles_sha256=roles.sha256 if roles else "",
        variables_url=f"{bucket}/{names.variables_key(roles.variables_sha256)}" if roles else "",
        variables_sha256=roles.variables_sha256 if roles else "",
        configure_minutes=settings.boot.configure_minutes,
        # What the roles have set up is judged with the rest.
        skip=() if roles else CONFIGURED_LATER,
        # The nodes have what the template gives them: with efa off, a type's own count would condemn every node.
        efa_count=efa.efa_count(efa.interfaces(nodes.instance_type, nodes.efa)),
        other_types=",".join(nodes.spot.types),
    )


def render(plan: BootPlan) -> str:
    """The user data as text (not base64). Raises ValueError when it is over MAX_BYTES or a field is malformed."""
    _check(plan)
    content = {
        "write_files": [
            _file("/etc/flightline/boot.env", _environment(plan), "0644"),
            _file("/etc/flightline/node.json", _settings(plan), "0644"),
            _file(_SCRIPT, template("flightline-boot"), "0755"),
            _file(f"/etc/systemd/system/{_UNIT}", template(_UNIT), "0644"),
        ],
        "runcmd": [
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", _UNIT],
            # Not waited for: cloud-init would otherwise hold the boot for as long as the preflight lasts.
            ["systemctl", "start", "--no-block", _UNIT],
        ],
    }
    # JSON is YAML: no quoting of our own.
    text = "#cloud-config\n" + json.dumps(content, indent=1, sort_keys=True) + "\n"
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ValueError(f"user data: saw {size} bytes; wanted fewer, for EC2 takes {MAX_BYTES}")
    return text


@lru_cache(maxsize=8)
def template(name: str) -> str:
    """A file of the role as text."""
    return (_FILES / name).read_text(encoding="utf-8")


def _file(path: str, content: str, mode: str) -> dict[str, str]:
    return {"path": path, "content": content, "owner": "root:root", "permissions": mode}


def _settings(plan: BootPlan) -> str:
    """What the node judges itself by, until a role writes what the inventory says."""
    known = {
        "host": "",
        "instance_type": plan.instance_type,
        "level": plan.level,
        "skip": list(plan.skip),
        "expected": {} if plan.efa_count is None else {"efa_count": plan.efa_count},
    }
    return json.dumps({one.name: known.get(one.name, one.default) for one in INPUTS if one.stored}, sort_keys=True)


def _environment(plan: BootPlan) -> str:
    lines = [part for part in fields(plan) if _LINE in part.metadata]
    values = {part.metadata[_LINE]: part.metadata[_SHOWN](getattr(plan, part.name)) for part in lines}
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def _check(plan: BootPlan) -> None:
    for part in fields(plan):
        form, value = part.metadata.get(_FORM), getattr(plan, part.name)
        if form and not re.fullmatch(form, value):
            raise ValueError(f"{part.name}: saw {value!r}; wanted text of the form {form}")
    given = {bool(getattr(plan, name)) for name in ("roles_url", "roles_sha256", "variables_url", "variables_sha256")}
    if len(given) > 1:
        raise ValueError("roles_url, variables_url and their checksums: wanted all or none")
    if not all(re.fullmatch(r"[a-z0-9_]+", check) for check in plan.skip):
        raise ValueError(f"skip: saw {plan.skip!r}; wanted ids or tags of checks")
    if plan.time_limit_minutes * 60 <= START_UP_S:
        raise ValueError(f"time_limit_minutes: saw {plan.time_limit_minutes}; wanted more than {START_UP_S // 60}")
    if plan.group and not plan.results_url:
        raise ValueError("results_url: wanted one, for the group is told by what lies there")
