"""What NVIDIA's tools say in place of a value: of a GPU that is gone, or of a driver that does not answer.

Source: nvidia-smi's own messages and nvmlErrorString (NVML API reference).
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from ...model import Remedy

LOST, OFF_BUS, NO_ANSWER = "lost", "off_bus", "no_answer"
MISMATCH, NOT_LOADED, NO_LIBRARY = "driver_mismatch", "driver_not_loaded", "no_library"
NEEDS_RESET, NONE_FOUND, OTHER, NO_ACCESS = "needs_reset", "none_found", "other", "no_access"


class Saying(NamedTuple):
    """One message: the words it is told by, in lower case."""

    phrases: str
    id: str
    remedy: Remedy
    meaning: str


SAYINGS: Tuple[Saying, ...] = (
    Saying("driver/library version mismatch", MISMATCH, Remedy.REBOOT, "the loaded driver is not the installed one"),
    Saying(
        "couldn't communicate with the nvidia driver", NOT_LOADED, Remedy.UPDATE_SOFTWARE,
        "the NVIDIA driver is not loaded",
    ),
    Saying("driver not loaded", NOT_LOADED, Remedy.UPDATE_SOFTWARE, "the NVIDIA driver is not loaded"),
    Saying("libnvidia-ml.so", NO_LIBRARY, Remedy.UPDATE_SOFTWARE, "the NVIDIA driver's library is not installed"),
    Saying("nvml: unknown error", NO_ACCESS, Remedy.FIX_CONFIG, "the container has lost its GPUs, or the driver does not start"),
    Saying("nvidia-smi: command not found", NO_LIBRARY, Remedy.UPDATE_SOFTWARE, "the NVIDIA driver's tools are not installed"),
    Saying("requires reset", NEEDS_RESET, Remedy.RESET_GPU, "a GPU needs a reset"),
    Saying("requires restart", NEEDS_RESET, Remedy.RESET_GPU, "a GPU needs a reset"),
    Saying("has been lost", LOST, Remedy.REBOOT, "a GPU is lost"),
    Saying("is lost", LOST, Remedy.REBOOT, "a GPU is lost"),
    Saying("fallen off the bus", OFF_BUS, Remedy.REBOOT, "a GPU has fallen off the bus"),
    Saying("unable to determine the device handle", LOST, Remedy.REBOOT, "a GPU is lost"),
    Saying("no devices were found", NONE_FOUND, Remedy.REBOOT, "the driver finds no GPU"),
    Saying("no devices found", NONE_FOUND, Remedy.REBOOT, "the driver finds no GPU"),
    Saying("attached gpus are listed", LOST, Remedy.REBOOT, "a GPU is lost"),
)  # fmt: skip

_NO_DRIVER = ("nvidia driver", "nvml", "version mismatch")
_GONE = ("lost", "fallen off", "does not answer", "device handle")


def saying(text: str) -> Optional[Saying]:
    """The message that a text holds."""
    low = text.lower()
    return next((one for one in SAYINGS if one.phrases in low), None)


def no_driver(text: str) -> bool:
    """Does a tool say that it cannot talk to the driver?"""
    low = text.lower()
    return any(phrases in low for phrases in _NO_DRIVER)


def kind(text: str) -> str:
    """LOST, NOT_LOADED or OTHER: what a tool's error is about, where more need not be known."""
    if any(phrases in text.lower() for phrases in _GONE):
        return LOST
    return NOT_LOADED if no_driver(text) else OTHER
