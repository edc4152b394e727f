"""nvidia-smi -q -x, or nvidia-smi -q.

The form is told from the content, not from the file's name. An output that is only an
error message ("No devices were found", "Failed to initialize NVML: ...") is facts as well:
it names the fault.
"""

from __future__ import annotations

from typing import List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import nvidia_smi_merge, nvidia_smi_text, nvidia_smi_xml
from .nvidia_messages import Messages, decode
from .nvidia_smi_fields import TEXT, Raw, assemble

FILES = ("nvidia-smi.xml", "nvidia-smi.txt")
_SUMMARY = "| NVIDIA-SMI "


def parse(files: Mapping[str, Data]) -> Facts:
    """{driver_version, cuda_version, attached_gpus, gpus[], errors[], warnings[]}; see nvidia_smi_fields.

    gpus[] are in the order printed (`index`), which is the PCI order of CUDA and NVML;
    `minor_number` is the number of the device file and differs. errors[]{pci_bus_id text}: the
    tool or a device could not be read; warnings[]: the tool's own (a corrupted InfoROM).

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
    messages = Messages().read_all(text.splitlines())
    if messages.errors:
        return assemble(Raw(TEXT, messages=messages))
    if _SUMMARY in text:
        raise ParseError("the summary table, not the output of nvidia-smi -q")
    raise ParseError("neither the XML nor the text of nvidia-smi -q, and no message of the tool")
