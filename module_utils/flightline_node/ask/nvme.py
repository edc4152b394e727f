"""The reader `nvme_smart`: the health log of every NVMe controller, asked of the kernel without a tool.

The command is the one that nvme-cli sends (Get Log Page, SMART / Health Information, log 02h), through the
kernel's admin ioctl: no process per disk, and nothing to install. It reads and changes nothing; it needs root.
"""

from __future__ import annotations

import glob
import json
import os
import re
import struct
from typing import Any, Dict, Union

from .files import contents

_ADMIN_IOCTL = 0xC0484E41
"""_IOWR('N', 0x41, struct nvme_passthru_cmd), linux/nvme_ioctl.h."""
_COMMAND = struct.Struct("<BBHIIIQQII6III")
_GET_LOG_PAGE, _SMART, _ALL_NAMESPACES = 0x02, 0x02, 0xFFFFFFFF
_LOG_BYTES = 512
_MAX_CHARS = 200
_TIMEOUT_MS = 2000
_KELVIN = 273
_CONTROLLER = re.compile(r"nvme\d{1,4}")
_COUNTERS = {
    "power_cycles": 112,
    "power_on_hours": 128,
    "unsafe_shutdowns": 144,
    "media_errors": 160,
    "num_err_log_entries": 176,
}
"""Where the 16-byte counters stand in the log: NVM Express base specification 1.4, figure 194."""


def nvme_smart(root: str) -> str:
    """{controller: {model, serial, log{...} or error}}, the log under nvme-cli's names."""
    found: Dict[str, Dict[str, Any]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "sys/class/nvme/nvme*"))):
        name = os.path.basename(path)
        if _CONTROLLER.fullmatch(name):
            entry = {key: contents(os.path.join(path, key), _MAX_CHARS) or "" for key in ("model", "serial")}
            asked = _ask(os.path.join(root, "dev", name))
            found[name] = {**entry, **({"error": asked} if isinstance(asked, str) else {"log": decode(asked)})}
    return json.dumps(found, indent=1)


def _ask(device: str) -> Union[bytes, str]:
    """The raw log, or why there is none."""
    import ctypes
    import fcntl

    buffer = ctypes.create_string_buffer(_LOG_BYTES)
    words = (_SMART | (_LOG_BYTES // 4 - 1) << 16, 0, 0, 0, 0, 0)
    command = bytearray(
        _COMMAND.pack(
            *(_GET_LOG_PAGE, 0, 0, _ALL_NAMESPACES, 0, 0, 0, ctypes.addressof(buffer), 0, _LOG_BYTES),
            *words,
            *(_TIMEOUT_MS, 0),
        )
    )
    try:
        handle = os.open(device, os.O_RDONLY)
    except OSError as error:
        return error.strerror or type(error).__name__
    try:
        status = fcntl.ioctl(handle, _ADMIN_IOCTL, command, True)
    except OSError as error:
        return error.strerror or type(error).__name__
    finally:
        os.close(handle)
    return f"the controller refuses the log, NVMe status {status:#x}" if status else buffer.raw


def decode(log: bytes) -> Dict[str, int]:
    """The fields of a raw SMART log; temperature in degrees Celsius, absent when the log has none."""
    warning, kelvin, spare, threshold, used = struct.unpack_from("<BHBBB", log)
    fields = {"critical_warning": warning, "avail_spare": spare, "spare_thresh": threshold, "percent_used": used}
    if kelvin:
        fields["temperature_c"] = kelvin - _KELVIN
    for name, at in _COUNTERS.items():
        fields[name] = int.from_bytes(log[at : at + 16], "little")
    return fields
