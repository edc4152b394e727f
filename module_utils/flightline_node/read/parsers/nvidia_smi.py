"""nvidia-smi -q -x, nvidia-smi -q, or one of the short forms.

The form is told from the content, not from the file's name. An output that is only an
error message ("No devices were found", "Failed to initialize NVML: ...") is facts as well:
it names the fault.
"""

from __future__ import annotations

from typing import List, Mapping

from ...know.catalog import nvml
from ...model import Facts, ParseError
from ..bundle import Data
from . import nvidia_smi_merge, nvidia_smi_short, nvidia_smi_text, nvidia_smi_xml
from .lazy import Lazy
from .nvidia_messages import MAX_TEXT, Messages, decode
from .nvidia_smi_fields import TEXT, Raw, assemble

FILES = ("nvidia-smi.xml", "nvidia-smi.txt")
_BUSY = Lazy(
    r"[Ii]n use by another (?:client|process)|being used by one or more other processes"
    r"|[Ii]nsufficient [Rr]esources|(?:[Uu]nable|[Ff]ailed) to (?:create|destroy|enable|disable|set).{0,80}"
    r"(?:[Ii]nsufficient [Pp]ermissions|[Nn]ot [Ss]upported)"
)
"""A change that the tool refuses while programs run: an order of steps, no fault."""


def parse(files: Mapping[str, Data]) -> Facts:
    """{driver_version, cuda_version, attached_gpus, gpus[], errors[], warnings[]}; see nvidia_smi_fields.

    gpus[] are in the order printed (`index`), which is the PCI order of CUDA and NVML;
    `minor_number` is the number of the device file and differs. errors[]{pci_bus_id text}: the
    tool or a device could not be read; warnings[]: the tool's own (a corrupted InfoROM).

    partial: a form that says less than -q (the plain table, -L, --query-gpu), or a warning alone; busy[]: a change that
    was refused because programs run.

    Of two files the XML counts; the text only when the XML cannot be read. Of several documents in one file the worst
    of each GPU counts.
    Raises ParseError when neither can.
    """
    reasons: List[str] = []
    for name in FILES:
        if name not in files:
            continue
        try:
            return _parse_one(files[name])
        except ParseError as error:
            reasons.append(str(error))
    raise ParseError("; ".join(reasons) or "no output")


def _parse_one(data: Data) -> Facts:
    text = decode(data)
    if nvidia_smi_xml.is_xml(text):
        parts = nvidia_smi_xml.documents(text, nvidia_smi_merge.MAX_DOCUMENTS)
        found = [assemble(nvidia_smi_xml.read(part)) for part in parts]
        return found[0] if len(found) == 1 else nvidia_smi_merge.merge(found)
    if nvidia_smi_text.is_text(text):
        return assemble(nvidia_smi_text.read(text))
    short = nvidia_smi_short.read(text) or nvidia_smi_text.fragment(text)
    if short:
        return {**assemble(short), "partial": True}
    lines = text.splitlines()
    busy = [line.strip()[:MAX_TEXT] for line in lines if _BUSY.search(line)]
    messages = Messages().read_all(line for line in lines if not _BUSY.search(line))
    for line in lines if not messages.errors else ():
        # In a program's log the sentence stands within the line.
        if nvml.saying(line):
            messages.told(line[:MAX_TEXT])
    if messages.errors:
        return assemble(Raw(TEXT, messages=messages))
    if busy or any("inforom" in one["text"].lower() for one in messages.warnings):
        return {**assemble(Raw(TEXT, messages=messages)), "partial": True, "busy": busy[:4]}
    if nvidia_smi_short.is_headless(text):
        raise ParseError("rows of --query-gpu without the names of their columns: print them with --format=csv")
    raise ParseError("neither the XML nor the text of nvidia-smi -q, and no message of the tool")
