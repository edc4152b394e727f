"""The Lambda functions: what each is called, given and shipped with. Pure but for reading the files to ship."""

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.planning.names import Names, Place
from infra.planning.resource_policies import Statement, grant, policy, service, tls_only

RUNTIME = "python3.12"
ARCHITECTURE = "arm64"
ROOT = Path(__file__).parents[2]
SHIPPED = (
    *("flightline/__init__.py", "flightline/contract.py"),
    *(f"flightline/cloud/{name}.py" for name in ["__init__", "batches", "blobs", "clients", "items", "signals"]),
    "flightline/cloud/functions/__init__.py",
    *(
        f"flightline/record/{name}.py"
        for name in ["__init__", "intake", "reasons", "schema", "shape", "witness", "printable"]
    ),
)
"""Beside the functions' own folders; a test imports every handler from the archive alone."""
NODE_LIBRARY = (
    *(f"{name}.py" for name in ["__init__", "bounds", "model", "names", "suggest", "word"]),
    *(f"judge/{name}.py" for name in ["__init__", "must", "reasons", "skips", "waivers"]),
    *(f"know/{name}.py" for name in ["__init__", "expected", "hardware", "remedies"]),
    *("read/__init__.py", "read/strictjson.py", "tell/__init__.py", "tell/logline.py"),
)
JUDGES = frozenset({"verdict"})
"""Functions that ship the fleet judgement and the report as well, and the whole of the node library's tables."""
ROOMS = ("fleet", "report", "store")
TEMPLATES = ("jinja2", "markupsafe")
"""Of the report, as requirements.txt pins them. Their Python files alone: what is compiled is compiled for this
machine, and markupsafe has the same in Python."""
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "storage": ("common", "storage"),
    "alert-router": ("common", "storage", "alert_router"),
    "training-input": ("common", "alert_router", "training_input"),
    "verdict": ("common", "storage", "verdict"),
}
QUEUE_RETENTION_S = 14 * 86_400
VISIBILITY_FACTOR = 6
"""A queue hides a message for six times the function's time limit. Source: Lambda developer guide, SQS."""
RECEIVES, ANSWER_RECEIVES = 5, 100
"""Deliveries until an event is a dead letter. A run's order comes again while others judge its run, and must not end so
before the run's deadline."""
_CONSOLES: Mapping[str, str] = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""Hosts of the console by partition. Source: AWS China and GovCloud user guides."""
REPLAY_BATCH, EVENTS_BATCH, EVENTS_WINDOW_S = 1, 100, 10
"""Events of many nodes at once are one message; the window is what an alert may wait for others of its kind."""
ANSWERS_BATCH, ANSWERS_WINDOW_S = 200, 1
"""Answers of a run that has no control node: the last of them waits so long at most before it is looked at."""
AT_ONCE: Mapping[str, int] = {"events": 10, "answers": 20}
"""Invocations that a queue may keep busy: a node that floods it takes no more of the account's than that. Reserved ones
(reserveConcurrency) are taken from all others, and small accounts have none to give. Source: Lambda developer guide,
"Configuring scaling behavior for SQS event source mappings"."""
OF_QUEUE: Mapping[str, str] = {"alert-router": "events", "verdict": "answers"}
"""Function -> the queue that keeps it busy."""
BATCHES: Mapping[str, tuple[int, int | None]] = {
    "events": (EVENTS_BATCH, EVENTS_WINDOW_S),
    "answers": (ANSWERS_BATCH, ANSWERS_WINDOW_S),
    "replay": (REPLAY_BATCH, None),
}
"""Of each queue that a function reads: messages at once, and seconds to wait for them."""


@dataclass(frozen=True)
class Function:
    """One function. timeout_s is below the lease of a claim (flightline/cloud/functions/common/claims.py)."""

    key: str
    name: str
    handler: str
    description: str
    timeout_s: int
    memory_mib: int
    environment: Mapping[str, str]


def functions(slack: bool, boot_failures: int, names: Names, place: Place) -> dict[str, Function]:
    """Every function by its key in names.functions. boot_failures: fewest boots without a go that stop launches."""
    base = {
        "FLIGHTLINE_CLUSTER": names.cluster,
        "FLIGHTLINE_NAMESPACE": names.metric_namespace,
        "FLIGHTLINE_RESULTS_TABLE": names.results_table,
        "FLIGHTLINE_TRAINING_TABLE": names.training_table,
        "FLIGHTLINE_RESULTS_BUCKET": names.results_bucket,
    }
    # The name of the secret, never the webhook: a function's environment can be read by whoever may describe it.
    told = {
        **base,
        "FLIGHTLINE_CHANNELS": json.dumps(channels(slack, names, place)),
        "FLIGHTLINE_LINK": dashboard_link(names, place),
    }
    routed = {
        **told,
        "FLIGHTLINE_NODE_GROUP": names.node_group,
        "FLIGHTLINE_BOOT_FAILURES": str(boot_failures),
        "FLIGHTLINE_LAUNCH_HOOK": names.launch_hook,
        "FLIGHTLINE_DRAIN_HOOK": names.drain_hook,
    }
    judged = {**told, "FLIGHTLINE_QUEUE": queue_url(place, events_queue(names, "verdict"))}
    train = {
        **base,
        "FLIGHTLINE_DATA_BUCKET": names.data_bucket,
        "FLIGHTLINE_TRAINING_DOCUMENT": names.training_document,
    }
    return {
        "storage": _function(names, "storage", "Stores what nodes log and tells people of failures", 110, 512, told),
        "alert-router": _function(
            names, "alert-router", "Tells people of alarms, boots and EC2 events", 110, 256, routed
        ),
        "verdict": _function(names, "verdict", "Judges runs that have no control node", 110, 3008, judged),
        "training-input": _function(names, "training-input", "Starts training runs on good nodes", 110, 512, train),
    }


def channels(slack: bool, names: Names, place: Place) -> dict[str, str]:
    """Settings of the channels by which people are told (flightline/tell/channels)."""
    told = {"topic": place.arn("sns", names.alerts_topic)}
    return {**told, "slack": f"secretsmanager:{names.slack_secret}"} if slack else told


def dashboard_link(names: Names, place: Place) -> str:
    """The dashboard in the console, for messages."""
    host = _CONSOLES.get(place.partition, _CONSOLES["aws"])
    return f"https://{host}/cloudwatch/home?region={place.region}#dashboards/dashboard/{names.dashboard}"


def reserved(key: str) -> int | None:
    """Invocations that are a function's own where the stack reserves some: as many as its queue may keep busy."""
    return AT_ONCE[OF_QUEUE[key]] if key in OF_QUEUE else None


def archive(key: str) -> dict[str, Path]:
    """Path in a function's archive -> file."""
    files = {path: ROOT / path for path in SHIPPED}
    files |= {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "flightline" / "tell").rglob("*.py"))}
    files |= {f"flightline_node/{name}": ROOT / "module_utils" / "flightline_node" / name for name in NODE_LIBRARY}
    for folder in FOLDERS[key]:
        base = ROOT / "flightline" / "cloud" / "functions" / folder
        files |= {f"flightline/cloud/functions/{folder}/{path.name}": path for path in sorted(base.glob("*.py"))}
    return {**files, **_judging()} if key in JUDGES else files


def _judging() -> dict[str, Path]:
    """What judges a fleet and writes its report, with the templates' engine."""
    files: dict[str, Path] = {}
    for room in (*(ROOT / "flightline" / name for name in (*ROOMS, "record")), ROOT / "flightline" / "cloud"):
        files |= {str(path.relative_to(ROOT)): path for path in sorted(room.glob("*.py"))}
    templates = ROOT / "flightline" / "report" / "templates"
    files |= {str(path.relative_to(ROOT)): path for path in sorted(templates.iterdir()) if path.is_file()}
    library = ROOT / "module_utils" / "flightline_node"
    files |= {f"flightline_node/{path.relative_to(library)}": path for path in sorted(library.rglob("*.py"))}
    for name in TEMPLATES:
        spec = importlib.util.find_spec(name)
        assert spec and spec.origin, f"requirements.txt pins {name}"
        home = Path(spec.origin).parent
        files |= {f"{name}/{path.name}": path for path in sorted(home.glob("*.py"))}
    return files


def events_queue(names: Names, function: str) -> str:
    """Name of the queue that feeds a function."""
    return f"{names.functions[function]}-events"


def queue_url(place: Place, queue: str) -> str:
    """A queue's address. Source: SQS developer guide, "Queue and message identifiers"."""
    suffix = "amazonaws.com.cn" if place.partition == "aws-cn" else "amazonaws.com"
    return f"https://sqs.{place.region}.{suffix}/{place.account}/{queue}"


def answers_policy(names: Names, place: Place, queue: str) -> Mapping[str, Any]:
    """Who may send events to the verdict's queue: the results bucket."""
    arn = place.arn("sqs", queue)
    return policy(_from_results("Answers", names, place, arn), tls_only("sqs:*", arn))


def queue_policy(names: Names, place: Place, queue: str) -> Mapping[str, Any]:
    """Who may send events to the router's queue: the rules of this cluster and its results bucket."""
    arn, rules = place.arn("sqs", queue), place.arn("events", f"rule/{names.cluster}-*")
    return policy(
        grant("Rules", service("events"), "sqs:SendMessage", arn, {"ArnLike": {"aws:SourceArn": rules}}),
        _from_results("Boots", names, place, arn),
        tls_only("sqs:*", arn),
    )


SENDERS: Mapping[str, Callable[[Names, Place, str], Mapping[str, Any]]] = {
    "events": queue_policy,
    "answers": answers_policy,
}
"""Who may send events, by queue."""


def _from_results(sid: str, names: Names, place: Place, queue_arn: str) -> Statement:
    # A bucket's ARN names no account, and a bucket that is gone can be made by somebody else.
    condition = {
        "ArnEquals": {"aws:SourceArn": f"arn:{place.partition}:s3:::{names.results_bucket}"},
        "StringEquals": {"aws:SourceAccount": place.account},
    }
    return grant(sid, service("s3"), "sqs:SendMessage", queue_arn, condition)


def redrive(names: Names, place: Place, receives: int = RECEIVES) -> str:
    """After so many deliveries an event is a dead letter."""
    target = place.arn("sqs", names.dead_letter_queue)
    return json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": receives}, sort_keys=True)


def _function(
    names: Names, key: str, description: str, timeout_s: int, memory_mib: int, environment: Mapping[str, str]
) -> Function:
    handler = f"flightline.cloud.functions.{key.replace('-', '_')}.handler.entry"
    return Function(key, names.functions[key], handler, description, timeout_s, memory_mib, environment)
