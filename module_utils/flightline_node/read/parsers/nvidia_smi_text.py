"""The text form, `nvidia-smi -q`: "Name : value" lines, nested by indentation."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ...model import ParseError
from .lazy import Lazy
from .nvidia_smi_fields import TEXT, Raw, RawGpu

_GPU = Lazy(r"GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])")
_PADDED = Lazy(r"(?m)^ *[A-Z][\w .-]{2,50} {2,}: \S")
_SECTION = Lazy(
    r"(?m)^ *(?:ECC Errors|Remapped Rows|Retired Pages|Fabric|Clocks (?:Event|Throttle) Reasons"
    r"|GPU Link Info|Temperature"
    r"|Gpu Power Readings|GPU Power Readings|Power Readings|FB Memory Usage|Max Clocks|Clocks"
    r"|Inforom Version|MIG Mode|ECC Mode)\s*$"
)
_LEAST_PADDED = 2
_SPECIFICATION = " specification"  # 610 appends it to the names of temperature limits
_PROCESS_KEYS = {"process id": "pid", "type": "type", "name": "process_name", "used gpu memory": "used_memory"}
_SKIP = ("mig device", "mig devices", "supported clocks", "accounted processes")
_MIG_ERRORS = ("mig device", "ecc errors", "volatile", "sram uncorrectable")

MAX_GPUS = 1024
MAX_DEPTH = 32
MAX_VALUES = 200_000
MAX_LINE_CHARS = 16_384


def is_text(text: str) -> bool:
    """True for an output in the text form."""
    return "NVSMI LOG" in text or "Attached GPUs" in text


def fragment(text: str) -> Optional[Raw]:
    """A part of the output as people quote it, with a heading of a GPU or without; None for any other text."""
    reader, lines = _TextReader(), text.splitlines()
    if not any(_GPU.fullmatch(line.strip()) for line in lines):
        if len(_PADDED.findall(text)) < _LEAST_PADDED or not _SECTION.search(text):
            return None
        reader.line("GPU 00000000:00:00.0")
        lines = ["    " + line for line in lines]
    for line in lines:
        reader.line(line.strip() if _GPU.fullmatch(line.strip()) else line)
    return reader.raw if any(gpu.leaves for gpu in reader.raw.gpus) else None


def read(text: str) -> Raw:
    """The fields of the output.

    Raises ParseError when it is cut off, or has neither a GPU nor a message of the tool.
    """
    reader, lines = _TextReader(), text.splitlines()
    margin = _margin(lines)
    for line in lines:
        reader.line(line[margin:] if line[:margin].isspace() else line)
    raw = reader.raw
    if not raw.top and not raw.gpus and not raw.messages.errors:
        raise ParseError("no driver version and no GPU section in the text")
    if not raw.messages.errors:
        _check_complete(raw)
    return raw


def _margin(lines: List[str]) -> int:
    """How far the whole output is indented: notebooks and bug reports paste it as a block."""
    for line in lines:
        body = line.lstrip()
        if body.startswith("Attached GPUs"):
            return len(line) - len(body)
    return 0


def _check_complete(raw: Raw) -> None:
    """Every full listing of a GPU ends with its processes (a listing by -d has no product name)."""
    if not raw.gpus:
        if raw.top.get("attached gpus") not in (None, "0"):
            raise ParseError("the text is cut off before the first GPU")
        return
    if any("product name" in gpu.leaves for gpu in raw.gpus):
        last = raw.gpus[-1]
        if last.processes is None and "processes" not in last.leaves:
            raise ParseError(f"the text is cut off within GPU {last.id}")


class _TextReader:
    """Line by line, keeping the chain of headings above the current indentation."""

    def __init__(self) -> None:
        self.raw = Raw(TEXT)
        self._gpu: Optional[RawGpu] = None
        self._above: List[Tuple[int, str]] = []
        self._values = 0

    def line(self, line: str) -> None:
        """Take one line."""
        line = line[:MAX_LINE_CHARS].expandtabs(4).rstrip()
        name_and_rest = line.lstrip(" ")
        indent = len(line) - len(name_and_rest)
        if not name_and_rest:
            return
        if indent == 0:
            self._top(name_and_rest)
        elif self._gpu is not None:
            self._field(self._gpu, indent, *_split(name_and_rest))

    def _top(self, line: str) -> None:
        heading = _GPU.fullmatch(line)
        self._above.clear()
        if heading:
            if len(self.raw.gpus) >= MAX_GPUS:
                raise ParseError(f"more than {MAX_GPUS} GPUs")
            self._gpu = RawGpu(heading.group(1))
            self.raw.gpus.append(self._gpu)
            return
        if self.raw.messages.read(line) or self._gpu is not None:
            return
        name, value = _split(line)
        if value is not None and len(self.raw.top) < 64:
            self.raw.top.setdefault(name, value)

    def _field(self, gpu: RawGpu, indent: int, name: str, value: Optional[str]) -> None:
        above = self._above
        while above and above[-1][0] >= indent:
            above.pop()
        if len(above) >= MAX_DEPTH:
            raise ParseError("headings nested too deep")
        above.append((indent, name))
        section = above[0][1]
        if section in _SKIP:
            gpu.mig_devices += len(above) == 1 and name == "mig device" and value is None
            if value is not None and tuple(item[1] for item in above) == _MIG_ERRORS:
                self._count()
                gpu.mig_errors.append(value)
        elif section == "processes" and (len(above) > 1 or value is None):
            self._process(gpu, name, value)
        elif value is not None:
            self._count()
            gpu.leaves.setdefault("/".join(item[1] for item in above), value)

    def _process(self, gpu: RawGpu, name: str, value: Optional[str]) -> None:
        if gpu.processes is None:
            gpu.processes = []
        key = _PROCESS_KEYS.get(name)
        if key is None or value is None:
            return
        self._count()
        if key == "pid":
            gpu.processes.append({})
        if gpu.processes:
            process: Dict[str, str] = gpu.processes[-1]
            process.setdefault(key, value)

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise ParseError(f"more than {MAX_VALUES} values: not the output of nvidia-smi")


def _split(line: str) -> Tuple[str, Optional[str]]:
    """(lower-case name, value), or (heading, None).

    Names are padded to a column, but the longest ones reach it: "...Specification: 0 C".
    """
    place = line.find(": ")
    if place < 0 and line.endswith(":"):
        place = len(line) - 1
    if place < 0:
        return line.lower(), None
    name = line[:place].rstrip().lower()
    if name.endswith(_SPECIFICATION):
        name = name[: -len(_SPECIFICATION)]
    return name, line[place + 1 :].strip()
