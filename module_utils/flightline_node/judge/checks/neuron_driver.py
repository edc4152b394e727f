"""Is the Neuron driver loaded, and the one wanted?"""

from __future__ import annotations

from typing import Any, Iterator, Optional

from ...model import Finding, Reason, Remedy
from ..context import Context
from .common import judge_version, version_tuple
from .neuron_common import neuron_check

PACKAGE = "aws-neuronx-dkms"

NOT_LOADED = Reason("not_loaded", "the Neuron driver is not loaded", Remedy.FIX_CONFIG)
NOT_THE_INSTALLED = Reason("not_the_installed", "the loaded driver is not the installed one", Remedy.REBOOT)


def installed(context: Context, package: str) -> Optional[str]:
    """The version of an installed package, where the list of packages is there."""
    packages = (context.optional("neuron_packages") or {}).get("packages", {})
    version: Optional[str] = packages.get(package)
    return version


def loaded(context: Context) -> Optional[str]:
    """The version of the loaded driver: as the kernel shows it, else as the driver said when it started."""
    sysfs, log = context.optional("neuron_sysfs"), context.optional("neuron_log") or {}
    if sysfs is not None:
        version: Optional[str] = sysfs.get("driver")
        return version
    return log.get("driver_started")


def evaluate(context: Context) -> Iterator[Finding]:
    """The site's pin first, else the oldest driver that serves the type; then whether what is installed runs."""
    running, package = loaded(context), installed(context, PACKAGE)
    expected = context.expected
    if running is None and context.optional("neuron_sysfs") is not None:
        message = "the neuron kernel module is not loaded" + (f", {PACKAGE} {package} is installed" if package else "")
        rest: Any = {
            "measured": "not loaded",
            "expected": f"loaded, {expected.driver_minimum or 'any version'} or later",
        }
        yield context.fail(NOT_LOADED, message, remedy=NOT_LOADED.remedy if package else Remedy.UPDATE_SOFTWARE, **rest)
        return
    finding = judge_version(
        context, "Neuron driver", running or package, expected.driver_version, expected.driver_minimum
    )
    yield finding
    if running and package and version_tuple(running)[:3] != version_tuple(package)[:3]:
        message = f"driver {running} is loaded and {PACKAGE} {package} installed: the update has not been loaded"
        yield context.warn(NOT_THE_INSTALLED, message, measured=running, expected=package)


CHECK = neuron_check(
    id="neuron_driver",
    order=930,
    title="Neuron driver",
    what="The version of the loaded neuron module, against the site's pin (driver_version) or the type's minimum, and "
    "against the installed aws-neuronx-dkms.",
    why="Without the driver there is no device; a package update that could not reload it leaves the old one running "
    "while modinfo shows the new.",
    remedy="Install aws-neuronx-dkms for the running kernel; end what uses the devices and load it anew, or reboot.",
    out_of_service="Yes when not loaded, below what the type runs with, or not the pin; not reloaded warns.",
    source="AWS Neuron troubleshooting page; Neuron driver release notes (2.8.4: Trn1n, Inf2; 2.20.28: Trn2)",
    needs_any=("neuron_sysfs", "neuron_packages"),
    wants=("neuron_log",),
    tags=("neuron", "software"),
    evaluate=evaluate,
)
