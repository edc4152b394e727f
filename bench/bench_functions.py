"""The storage function on a 1 MB log batch: time, CPU, memory and requests (wanted: below its 512 MiB and 110 s).

The function runs in a process of its own, as in Lambda; DynamoDB and SNS are moto's server in this one, so the wall
time is mostly the emulator's. CPU and memory are the function's own. Records are those of a simulated p5.48xlarge.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.common import ROOT, place, recorded
from flightline.cloud import items
from flightline_node.tell import logline
from tests.emulated import Cloud

BATCH_BYTES = 1_000_000
_CHILD = """
import json, resource, sys, time
sys.path[:0] = ["{root}", "{root}/module_utils"]
from flightline.cloud.functions.storage import handler
def used():
    # VmHWM, because ru_maxrss begins with the parent's.
    u, status = resource.getrusage(resource.RUSAGE_SELF), open("/proc/self/status").read()
    return u.ru_utime + u.ru_stime, int(status.split("VmHWM:")[1].split()[0]) / 1024
event = json.load(open(sys.argv[1]))
handler._storage()
cpu, before = used()
started = time.perf_counter()
answer = handler.entry(event, None)
took = time.perf_counter() - started
after_cpu, peak = used()
print("\\n@" + json.dumps([answer, took, after_cpu - cpu, before, peak]))
"""


def _batch(record: dict[str, Any], bad_every: int) -> tuple[list[str], int]:
    """Lines of 1 MB together. bad_every: one node in so many is no-go; 0 is none."""
    lines: list[str] = []
    size = 0
    while size < BATCH_BYTES:
        number = len(lines)
        one = copy.deepcopy(record) | {"host": f"gpu-{number:04d}", "instance_id": f"i-0abc{number:08x}"}
        for index, gpu in enumerate(one["gpus"]):
            gpu |= {"serial": f"{number:06d}{index}", "uuid": f"GPU-{number:08x}-{index}"}
        if bad_every and number % bad_every == 0:
            one["verdict"] = "no-go"
            one["findings"][0] |= {"status": "FAIL", "message": "made bad for the benchmark", "remedy": "REPLACE"}
        lines += logline.lines("node", f"self-{number}", one)
        size += len(lines[-1]) + 26
    return lines, size


def _event(lines: list[str]) -> dict[str, Any]:
    events = [{"id": str(number), "timestamp": 1, "message": line} for number, line in enumerate(lines)]
    content = {"messageType": "DATA_MESSAGE", "logGroup": "g", "logStream": "all", "logEvents": events}
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(content).encode())).decode()}}


def _measure(cloud: Cloud, event: Path) -> tuple[dict[str, int], float, float, float, float]:
    topic, _ = cloud.topic("alerts")
    cloud.seen.clear()
    env = {**os.environ, **cloud.env}
    env |= {
        "FLIGHTLINE_CLUSTER": "bench",
        "FLIGHTLINE_NAMESPACE": "Flightline/bench",
        "FLIGHTLINE_RESULTS_TABLE": "results",
        "FLIGHTLINE_TRAINING_TABLE": "training",
        "FLIGHTLINE_RESULTS_BUCKET": "bench-results",
        "FLIGHTLINE_CHANNELS": json.dumps({"topic": topic}),
    }
    command = [sys.executable, "-c", _CHILD.format(root=ROOT), str(event)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    answer, *numbers = json.loads(done.stdout.rpartition("@")[2])
    return answer, *numbers


def main() -> None:
    """Print one line per batch: healthy, one node in ten bad, and the same batch once more."""
    with place() as directory:
        record = recorded(directory / "gpu-01")
        cloud = Cloud()
        try:
            for title, bad_every in (("all go", 0), ("one in ten no-go", 10)):
                lines, size = _batch(record, bad_every)
                path = directory / "event.json"
                path.write_text(json.dumps(_event(lines)))
                cloud.reset()
                cloud.table("results")
                cloud.client("dynamodb").create_table(**items.table_definition("training", items.TRAINING_INDEXES))
                cloud.bucket("bench-results")
                for again in ("", ", delivered again"):
                    answer, took, cpu, before, peak = _measure(cloud, path)
                    requests = dict(cloud.seen)
                    print(
                        f"{size / 1e6:.2f} MB, {len(lines)} nodes, {title}{again}: {took:.1f} s, {cpu:.2f} s of CPU, "
                        f"peak {peak:.0f} MB ({peak - before:.0f} above the idle function); stored {answer['stored']}, "
                        f"told {answer['told']}; requests {sum(requests.values())}: {dict(sorted(requests.items()))}"
                    )
        finally:
            cloud.close()


if __name__ == "__main__":
    main()
