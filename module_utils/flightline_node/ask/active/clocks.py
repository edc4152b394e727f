"""Clocks, temperature and power of the GPUs while they are loaded, as nvidia-smi prints them once a second."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

from ..runner import SYSTEM_PATHS

FIELDS = (
    "pci.bus_id",
    "clocks.sm",
    "clocks.max.sm",
    "temperature.gpu",
    "power.draw",
    "enforced.power.limit",
    "clocks_throttle_reasons.active",
)
"""Names that nvidia-smi accepts from driver 450 to 610; the newer clocks_event_reasons is not in old ones."""
_IDLE = 0x1
STOP_S = 2.0


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:  # [N/A], [Unknown Error]
        return None


def _mask(text: str) -> Optional[int]:
    try:
        return int(text, 16)
    except ValueError:
        return None


def read(text: str) -> Dict[str, Dict[str, Any]]:
    """{PCI address: {samples, sm_mhz, max_sm_mhz, temperature_c, power_w, power_limit_w, throttle{mask: samples}}}.

    Lists in the order printed. A sample with the idle reason is of before or after the load and left out.
    """
    found: Dict[str, Dict[str, Any]] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        mask = _mask(words[-1])
        if len(words) != len(FIELDS) or mask is None or mask & _IDLE:
            continue
        entry = found.setdefault(words[0], {"samples": 0, "throttle": {}})
        entry["samples"] += 1
        names = ("sm_mhz", "max_sm_mhz", "temperature_c", "power_w", "power_limit_w")
        for name, value in zip(names, map(_number, words[1:-1])):
            if value is not None:
                entry.setdefault(name, []).append(value)
        entry["throttle"][f"0x{mask:x}"] = entry["throttle"].get(f"0x{mask:x}", 0) + 1
    return found


def shorten(entry: Dict[str, Any]) -> Dict[str, Any]:
    """The figures kept of one GPU's samples."""
    short: Dict[str, Any] = {"samples": entry["samples"], "throttle": entry["throttle"]}
    clocks: List[float] = sorted(entry.get("sm_mhz", []))
    if clocks:
        short.update(sm_mhz_median=clocks[len(clocks) // 2], sm_mhz_min=clocks[0])
    for name in ("max_sm_mhz", "temperature_c", "power_w", "power_limit_w"):
        if entry.get(name):
            short[name + ("" if name.endswith(("limit_w", "sm_mhz")) else "_max")] = max(entry[name])
    return short


class Sampler:
    """nvidia-smi, asked once a second until the end. Without it the load test still counts."""

    def __init__(self, tool: str) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._trouble = ""
        path = tool if "/" in tool else shutil.which(tool, path=SYSTEM_PATHS)
        if path is None:
            self._trouble = f"not installed: {tool}"
            return
        command = [path, "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits", "--loop=1"]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._out)
        except OSError as error:
            self._trouble = f"{tool}: {error.strerror or error}"

    def end(self) -> Dict[str, Any]:
        """Stop asking; {samples: {PCI address: figures}} or the reason why there are none."""
        if self._process:
            # Interrupted, as at a terminal, it writes out what it has buffered.
            for stop in (signal.SIGINT, signal.SIGKILL):
                self._process.send_signal(stop)
                with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the driver: left behind
                    self._process.wait(timeout=STOP_S)
                    break
        self._out.seek(0)
        text = self._out.read().decode("utf-8", "replace")
        self._out.close()
        found = {pci: shorten(entry) for pci, entry in read(text).items()}
        if not found:
            return {"samples": {}, "sampling_error": self._trouble or text.strip()[:200] or "nvidia-smi said nothing"}
        return {"samples": found}
