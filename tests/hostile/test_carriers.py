"""Condemning lines behind everything that carries kernel lines: none of them may end in a go without a word.

A line is what the vendors' sources print (tests/messages); a carrier is what dmesg, journald, syslog, container engines,
collectors, terminals and people make of it. FAIL is wanted; UNKNOWN says that somebody must look; a go is a lost line.
By decision (docs/decisions/kernel-log.md) a line under another program's tag is that program's, whatever it quotes.

    python -m tests.hostile.test_carriers       every line behind every carrier, and how many FAIL
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import Status, Verdict
from flightline_node.settings import build
from tests.harness import NOW, InMemory
from tests.messages import catalogue

LINES, SAMPLE = 48, 300
QUIET = (
    "Linux version 6.8.0-1015-aws (buildd) #16-Ubuntu SMP",
    "eth0: renamed from veth1a2b",
    "audit: type=1400 audit(1.1:2): x",
)
CHECKS = ("xid", "sxid", "gpu_lost", "kernel_errors", "pcie_aer", "unread_lines")

D, T, UP = "2026-11-21", "09:{m:02d}:{s:02d}", "{up:12.6f}"
ISO = f"{D}T{T}"
HEADS = (
    # dmesg, in each of its forms, and /dev/kmsg
    f"[{UP}] ", f"<3>[{UP}] ", f"<4>[{UP}] ", f"kern  :err   : [{UP}] ", f"kern  :warn  : [{ISO},000123+00:00] ",
    f"[{UP}] [ T1946] ", f"[{UP}][  C12] ", f"[Sat Nov 21 {T} 2026] ", f"[Sat Nov 21 {T}] ", f"{ISO},123456+00:00 ",
    "[Nov21 09:{m:02d}] ", "[  +0.000{s:03d}] ", f"[{UP} <    0.000012>] ", "3,8{s:02d},{us},-;", "6,8{s:02d},{us},-,caller=T1;",
    f"[{ISO}.123456Z] ", f"[{D} {T}] ", f"[Sa Nov 21 {T} 2026] ", f"[Sab Nov 21 {T} 2026] ", f"[\u571f 11\u6708 21 {T} 2026] ", "",
    # syslog
    f"Nov 21 {T} gpu-7 kernel: ", f"Nov 21 {T} gpu-7 kernel: [{UP}] ", f"Nov 21 {T} kernel: ", f"<3>Nov 21 {T} gpu-7 kernel: ",
    f"<3>1 {ISO}Z gpu-7 kernel - - - ", f"{ISO}.123456+00:00 gpu-7 kernel: [{UP}] ", f"Nov 21 {T} gpu-7 kern.err kernel: ",
    f"Nov 21 {T} gpu-7 kernel[0]: ", f"{ISO}Z gpu-7 kernel: ", f"2026 Nov 21 {T} gpu-7 kernel: ", f"Nov 21 {T} PM gpu-7 kernel: ",
    f"11\u6708 21 {T} gpu-7 kernel: ", f"Nov 21 {T} gpu-7 klogd: ", f"{ISO}.000Z Nov 21 {T} gpu-7 kernel: ",
    # journalctl -o
    f"{ISO}+0000 gpu-7 kernel: ", f"{ISO}.123456+0000 gpu-7 kernel: ", f"Sat {D} {T} UTC gpu-7 kernel: ", "1795252{m:02d}{s:01d}.123456 gpu-7 kernel: ",
    f"[{UP}] gpu-7 kernel: ", f"Nov 21 {T}.123456 gpu-7 kernel: ", f"Nov 21 {T} gpu-7 dmesg[812]: ",
    # containers
    f"{ISO}.000000123Z stdout F [{UP}] ", f"{ISO}.000000123Z stderr F ", f"{ISO}.000000123Z ", f"{ISO}.000000123Z [{UP}] ",
    f"[pod/node-log-x1/tail] [{UP}] ", f"node-log-x1 tail [{UP}] ", f"tail-1  | [{UP}] ", f"node-log-x1 tail {ISO}Z [{UP}] ",
    # CloudWatch
    f"{ISO}+00:00 i-0abc123/kern [{UP}] ", f"{ISO}.000Z i-0abc123 Nov 21 {T} gpu-7 kernel: ", f"{ISO}.000Z\t[{UP}] ", "1795252709{s:03d}\t[{up:.6f}] ",
    # launchers, grep, people
    f"gpu-7: [{UP}] ", f"gpu-7: Nov 21 {T} gpu-7 kernel: ", f"[1,0]<stdout>:[{UP}] ", f"12: [{UP}] ", f"(head, rank=0, pid=4242) [{UP}] ",
    f"/var/log/kern.log:77:Nov 21 {T} gpu-7 kernel: ", f"77:[{UP}] ", f"kern.log-Nov 21 {T} gpu-7 kernel: ", f"> [{UP}] ", f"> > Nov 21 {T} gpu-7 kernel: ",
    f"    [{UP}] ", f"\t[{UP}]\t", f"| [{UP}] ", f"* [{UP}] ", f"$ [{UP}] ", "@400000006560{m:02d}{s:02d}0f1e2d3c ", f"Nov 21 {T} [{UP}] ",
    f"\x1b[32m[{UP}] \x1b[0m", f"^[[32m[{UP}] ^[[0m", f"\ufeff[{UP}] ", f"[{UP}]\u00a0", f"[{UP}] \u200b", f"Nov 21 {T} gpu-7 kernel:\u00a0", f"\u00a0[{UP}] ",
    f"\u200b[{UP}] ", f"{ISO} gpu-7 kernel\u00a0: ", f"{{{{job=\"kernel\"}}}} [{UP}] ", f"I1121 {T}.123456 1 log.go:9] [{UP}] ",
)  # fmt: skip


def _head(head: str) -> Callable[[list[str]], bytes]:
    def carry(lines: list[str]) -> bytes:
        made = [
            head.format(m=n // 60, s=n % 60, up=10.0 + n, us=(10 + n) * 10**6) + line for n, line in enumerate(lines)
        ]
        return ("\n".join(made) + "\n").encode()

    return carry


def _rows(row: Callable[[int, str], str]) -> Callable[[list[str]], bytes]:
    return lambda lines: "".join(row(n, line) + "\n" for n, line in enumerate(lines)).encode()


def _stamp(n: int) -> str:
    return f"2026-11-21T09:00:{n:02d}"


def _json(**fields: str) -> Callable[[list[str]], bytes]:
    """An object a line. MESSAGE, BYTES, STAMP and LOG stand for what they say."""

    def row(n: int, line: str) -> str:
        made = {
            "MESSAGE": line,
            "BYTES": [*line.encode()],
            "STAMP": _stamp(n) + "Z",
            "MICRO": f"17952527{n:02d}000000",
            "LOG": f"[{n + 9:12.6f}] {line}\n",
        }
        return json.dumps({key: made.get(value, value) for key, value in fields.items()})

    return _rows(row)


_KERNEL = {"_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "MICRO", "PRIORITY": "3"}
_NPD = "I1121 09:00:{n:02d}.123456       1 log_monitor.go:160] New status generated: &{{Source:kernel-monitor Events:[{{Severity:warn Timestamp:{t} Reason:KernelError Message:{line}}}] Conditions:[]}}"
MADE: dict[str, Callable[[list[str]], bytes]] = {
    "journal json": _json(MESSAGE="MESSAGE", **_KERNEL),
    "journal json, bytes": _json(MESSAGE="BYTES", **_KERNEL),
    "journal json, cut fields": _json(MESSAGE="MESSAGE", SYSLOG_IDENTIFIER="kernel"),
    "journal export": lambda lines: "".join(f"__CURSOR=s\n__REALTIME_TIMESTAMP=17952527{n:02d}000000\n_TRANSPORT=kernel\nMESSAGE={x}\n\n" for n, x in enumerate(lines)).encode(),
    "journal verbose": lambda lines: "".join(f"Sat 2026-11-21 09:00:{n:02d}.000001 UTC [s=abc;i=1]\n    _TRANSPORT=kernel\n    MESSAGE={x}\n" for n, x in enumerate(lines)).encode(),
    "dmesg -J": lambda lines: json.dumps({"dmesg": [{"pri": 3, "time": n + 9.0, "msg": x} for n, x in enumerate(lines)]}, indent=1).encode(),
    "docker json-file": _json(log="LOG", stream="stdout", time="STAMP"),
    "loki": lambda lines: json.dumps({"data": {"result": [{"stream": {}, "values": [[f"17952527{n:02d}000000000", x] for n, x in enumerate(lines)]}]}}).encode(),
    "filter-log-events": lambda lines: json.dumps({"events": [{"timestamp": 1795252709000 + n, "message": f"[{n + 9:12.6f}] {x}"} for n, x in enumerate(lines)]}).encode(),
    "fluentd": _rows(lambda n, x: f"2026-11-21 09:00:{n:02d}.000000000 +0000 kernel: " + json.dumps({"priority": "3", "message": x})),
    "fluentd, other tag": _rows(lambda n, x: f"2026-11-21 09:00:{n:02d} +0000 host.kern: " + json.dumps({"ident": "kernel", "message": x})),
    "fluentd, tabs": _rows(lambda n, x: f"{_stamp(n)}+00:00\thost.kern\t" + json.dumps({"message": x})),
    "fluent-bit": _rows(lambda n, x: f'[{n}] kmsg.0: [[17952527{n:02d}.5, {{}}], {{"priority"=>3, "sec"=>{n}, "msg"=>"{x}"}}]'),
    "fluent-bit json": _json(date="STAMP", log="LOG"),
    "filebeat": _json(**{"@timestamp": "STAMP", "message": "MESSAGE"}),
    "gelf": _json(version="1.1", host="gpu-7", short_message="MESSAGE"),
    "splunk": _json(_time="STAMP", _raw="LOG"),
    "otel": _rows(lambda n, x: json.dumps({"timeUnixNano": f"{n}", "severityText": "ERROR", "body": {"stringValue": x}})),
    "node-problem-detector": _rows(lambda n, x: _NPD.format(n=n, t=_stamp(n), line=x)),
    "kubectl events": _rows(lambda n, x: f"{n}m          Warning   KernelError   node/gpu-7   {x}"),
    "csv": _rows(lambda n, x: f'"17952527{n:02d}000","[{n + 9:12.6f}] {x}"'),
    "csv, bare": _rows(lambda n, x: f"17952527{n:02d}000,gpu-7,kernel,{x}"),
    "cr": lambda lines: "".join(f"[{n + 9:12.6f}] {x}\r" for n, x in enumerate(lines)).encode(),
    "crlf": lambda lines: "".join(f"[{n + 9:12.6f}] {x}\r\n" for n, x in enumerate(lines)).encode(),
    "utf-16": lambda lines: "".join(f"[{n + 9:12.6f}] {x}\r\n" for n, x in enumerate(lines)).encode("utf-16"),
    "utf-16, no mark": lambda lines: "".join(f"[{n + 9:12.6f}] {x}\n" for n, x in enumerate(lines)).encode("utf-16-le"),
    "coloured within": _rows(lambda n, x: f"[{n + 9:12.6f}] \x1b[33m{x.split(' ')[0]}\x1b[0m \x1b[31m{' '.join(x.split(' ')[1:])}\x1b[0m"),
    "no last line end": lambda lines: "\n".join(f"[{n + 9:12.6f}] {x}" for n, x in enumerate([*lines, "end"])).encode(),
    "html": _rows(lambda n, x: f"<li>[{n + 9:12.6f}] {x.replace('<', '&lt;')}</li>"),
    "ansible": lambda lines: ("gpu-7 | CHANGED | rc=0 >>\n" + "".join(f"[{n + 9:12.6f}] {x}\n" for n, x in enumerate(lines))).encode(),
    "zero bytes": lambda lines: b"\0" * 64 + "".join(f"[{n + 9:12.6f}] {x}\n" for n, x in enumerate(lines)).encode(),
}  # fmt: skip
CARRIERS: dict[str, Callable[[list[str]], bytes]] = {**{repr(head): _head(head) for head in HEADS}, **MADE}


@cache
def lines() -> list[str]:
    """Condemning lines, evenly from every tool's list; those of one line that name their fault alone."""
    found: dict[str, list[str]] = {}
    for path in catalogue.files():
        for one in catalogue.load(path):
            if (
                one.file == "kernel.log"
                and one.cls == "condemns"
                and one.times == 1
                and not one.before
                and "neuron" not in path.stem
            ):
                found.setdefault(one.tool, []).append(catalogue._fill(one.sample))
    picked = [line for many in found.values() for line in many[:: max(1, len(many) * len(found) // LINES)]]
    return picked[:LINES]


@cache
def _site():
    return resolve("p5.48xlarge"), build(select=list(CHECKS))


def answer(data: bytes) -> str:
    """What the judgement says of a kernel log: FAIL, UNKNOWN, or go."""
    expected, settings = _site()
    judged = judge(InMemory({"kernel.log": data}), expected, settings, NOW, required=True)
    if judged.verdict is Verdict.GO:
        return "go"
    return "FAIL" if any(one.status is Status.FAIL for one in judged.findings) else "UNKNOWN"


def carried(carrier: str, line: str) -> bytes:
    """A log of four lines, of which the third condemns."""
    return CARRIERS[carrier]([*QUIET[:2], line, QUIET[2]])


def silent(pairs: list[tuple[str, str]]) -> Iterator[str]:
    """The pairs that end in a go."""
    for carrier, line in pairs:
        if answer(carried(carrier, line)) == "go":
            yield f"{carrier}: {line}"


def pairs() -> list[tuple[str, str]]:
    """Every line behind every carrier."""
    return [(carrier, line) for carrier in CARRIERS for line in lines()]


def test_there_are_enough_of_both_and_each_line_condemns_by_itself():
    assert len(lines()) >= 40 and len(CARRIERS) >= 100
    assert {answer(carried(repr(HEADS[0]), line)) for line in lines()} == {"FAIL"}
    assert answer(carried(repr(HEADS[0]), QUIET[2])) == "go"


@pytest.mark.parametrize("seed", [1])
def test_no_line_is_lost_behind_a_carrier(seed):
    assert not list(silent(random.Random(seed).sample(pairs(), SAMPLE)))


def test_no_carrier_loses_the_chief_fault():
    assert not list(silent([(carrier, lines()[0]) for carrier in CARRIERS]))


def main() -> int:
    """Every pair."""
    counts = Counter((answer(carried(*pair)), pair[0]) for pair in pairs())
    told = [f"{said} {sum(n for (what, _), n in counts.items() if what == said)}" for said in ("go", "UNKNOWN", "FAIL")]
    told += [f"  {said} {count}: {carrier}" for (said, carrier), count in sorted(counts.items()) if said != "FAIL"]
    sys.stdout.write("\n".join(told) + "\n")
    return any(said == "go" for said, _ in counts)


if __name__ == "__main__":
    sys.exit(main())
