"""The XML form, `nvidia-smi -q -x`.

Read with expat directly: the guard against entity bombs needs its declaration handlers, and
the memory stays small on any input. No DTD is ever fetched: expat reads no external entity
unless a handler for it is set. With --dtd the document carries its DTD: elements, and an
attribute without a default.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional
from xml.parsers import expat

from ...model import ParseError
from .lazy import Lazy
from .nvidia_smi_fields import XML, Raw, RawGpu

ROOT = "nvidia_smi_log"
_END = f"</{ROOT}>"
_BULK = ("supported_clocks", "accounted_processes")  # most of the file, and nothing is read from them
_PROCESS = "processes/process_info"
_ERROR = "error_string"  # beside the GPUs, in nvidia-smi's own DTD: why one of them is not listed
_MIG = "mig_devices"
_MIG_ERRORS = "mig_devices/mig_device/ecc_error_count/volatile_count/sram_uncorrectable"
_CONTROL = Lazy("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")

MAX_DEPTH = 32
MAX_GPUS = 1024
MAX_VALUES = 200_000
MAX_VALUE_CHARS = 65_536


def is_xml(text: str) -> bool:
    """True for an output in the XML form."""
    return f"<{ROOT}" in text or text.lstrip().startswith("<?xml")


def documents(text: str, most: int) -> List[str]:
    """The text cut behind each document but the last: what stands between two belongs to the later one.

    One that follows them and is cut off is left out, unless it is the only one. At most the last `most`.
    """
    cut: List[str] = []
    start = 0
    for match in re.finditer(_END, text):
        # The end of a document whose beginning is missing is read with what follows it.
        if f"<{ROOT}" in text[start : match.end()]:
            cut.append(text[start : match.end()])
            start = match.end()
    if len(cut) < 2:
        return [text]
    tail = text[start:]
    cut[-1] += tail if "<" not in tail else tail[: tail.find("<")]
    return cut[-most:]


def read(text: str) -> Raw:
    """The fields of the output.

    Text around the document, or lines of the tool between its elements, are read for
    messages. Raises ParseError when the document is cut off or broken and no message of
    the tool says why; with such a message the GPUs that were complete are kept. One document: see documents.
    """
    begin = min(place for place in map(text.find, ("<?xml", "<!DOCTYPE", f"<{ROOT}")) if place >= 0)
    end = text.rfind(_END)
    body = text[begin : end + len(_END) if end >= 0 else len(text)]
    rest = "" if end < 0 else text[end + len(_END) :]
    body = _without_bulk(body)
    raw = Raw(XML)
    raw.messages.read_all(_bare_lines(text[:begin], body, rest))
    try:
        _collect(body, raw)
    except expat.ExpatError as error:
        if end >= 0 and _retry(body, raw):
            return raw
        if not raw.messages.errors:
            what = "not well-formed XML" if end >= 0 else "the XML is cut off"
            raise ParseError(f"{what}: {error}") from None
    if not raw.top and not raw.gpus and not raw.messages.errors:
        raise ParseError("no driver version and no GPU in the XML")
    return raw


def _bare_lines(*texts: str) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines():
            if "<" not in line:
                yield line


def _without_bulk(body: str) -> str:
    for tag in _BULK:
        opening, closing = f"<{tag}>", f"</{tag}>"
        kept: List[str] = []
        done = 0
        start = body.find(opening)
        while start >= 0:
            end = body.find(closing, start)
            if end < 0:
                break
            kept.append(body[done:start])
            done = end + len(closing)
            start = body.find(opening, done)
        if kept:
            body = "".join(kept) + body[done:]
    return body


def _retry(body: str, raw: Raw) -> bool:
    """Read again with what nvidia-smi does not escape made harmless: names of processes, control characters."""
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", body)
    pieces = clean.split("<process_name>")
    for index in range(1, len(pieces)):
        name, closing, rest = pieces[index].partition("</process_name>")
        if closing:
            # Escaped text is left alone: a bare & is the only sign that this name was not.
            pieces[index] = _escape(re.sub(r"&(amp|lt|gt|quot|apos|#\d+);", _unescape, name)) + closing + rest
    clean = "<process_name>".join(pieces)
    if clean == body:
        return False
    fresh = Raw(XML, messages=raw.messages)
    try:
        _collect(clean, fresh)
    except expat.ExpatError:
        return False
    raw.top, raw.gpus = fresh.top, fresh.gpus
    return True


_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def _escape(text: str) -> str:
    """xml.sax.saxutils.escape would do, but brings urllib, http and ssl into every run on the node."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescape(match: re.Match[str]) -> str:
    return _ENTITIES.get(match.group(1), "?")


def _collect(body: str, raw: Raw) -> None:
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    collector = _Collector(raw)
    parser.AttlistDeclHandler = _refuse_default
    parser.EntityDeclHandler = _refuse_entity
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.text
    parser.Parse(body.encode("utf-8", "replace"), True)


def _refuse_default(element: str, name: str, kind: str, default: Optional[str], required: int) -> None:
    if default is not None:  # a long one, given to every element, is a bomb as well
        raise ParseError("the XML declares the default of an attribute: refused")


def _refuse_entity(*_: object) -> None:
    raise ParseError("the XML declares an entity: refused")


class _Collector:
    """Keeps the text of the leaves by path, as expat meets them."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._paths: List[str] = []
        self._leaf, self._room = False, 0
        self._buffer: List[str] = []
        self._gpu: Optional[RawGpu] = None
        self._process: Dict[str, str] = {}
        self._values = 0

    def start(self, name: str, attributes: Dict[str, str]) -> None:
        """An element opens."""
        depth = len(self._paths)
        self._buffer.clear()
        self._leaf, self._room = True, MAX_VALUE_CHARS
        if depth == 0 and name != ROOT:
            raise ParseError(f"the root element is {name[:40]}, not {ROOT}")
        if depth > MAX_DEPTH:
            raise ParseError("elements nested too deep")
        if depth == 1 and name == "gpu":
            if len(self._raw.gpus) >= MAX_GPUS:
                raise ParseError(f"more than {MAX_GPUS} GPUs")
            self._gpu = RawGpu(attributes.get("id", ""))
        # Paths are relative to the GPU, or to the root outside of one.
        path = f"{self._paths[-1]}/{name}" if depth > (2 if self._gpu else 1) else name
        self._paths.append(path)
        if self._gpu is not None and path == _PROCESS:
            self._process = {}

    def text(self, data: str) -> None:
        """Text inside the innermost element."""
        if self._leaf and self._room > 0:
            self._buffer.append(data)
            self._room -= len(data)

    def end(self, name: str) -> None:
        """An element closes."""
        path = self._paths.pop()
        depth = len(self._paths)
        leaf, self._leaf = self._leaf, False
        if depth == 1 and name == "gpu" and self._gpu is not None:
            self._raw.gpus.append(self._gpu)
            self._gpu = None
        elif self._gpu is None:
            if leaf and path == _ERROR:
                self._raw.messages.told("".join(self._buffer))
            elif leaf and depth == 1:
                self._keep(self._raw.top, path)
        elif path.startswith("processes"):
            self._end_process(self._gpu, path, leaf)
        elif path.startswith(_MIG + "/"):
            self._gpu.mig_devices += path == _MIG + "/mig_device"
            if leaf and path == _MIG_ERRORS:
                self._count()
                self._gpu.mig_errors.append("".join(self._buffer).strip())
        elif leaf:
            self._keep(self._gpu.leaves, path)

    def _end_process(self, gpu: RawGpu, path: str, leaf: bool) -> None:
        if path == _PROCESS:
            if gpu.processes is None:
                gpu.processes = []
            gpu.processes.append(self._process)
        elif path.startswith(_PROCESS + "/") and leaf:
            self._keep(self._process, path[len(_PROCESS) + 1 :])
        elif path == "processes" and leaf:
            self._keep(gpu.leaves, path)

    def _keep(self, into: Dict[str, str], path: str) -> None:
        self._count()
        into.setdefault(path, "".join(self._buffer).strip())

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise ParseError(f"more than {MAX_VALUES} values: not the output of nvidia-smi")
