"""The files of a case: a fixture, a simulated node, one driver generation's nvidia-smi, a kernel log, edits."""

import json
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Mapping

from flightline.demo.faults import broken
from flightline.demo.hardware import machine
from flightline.demo.tree import Entry, Link, healthy
from flightline.demo.tree import Files as Tree
from flightline_node.ask.probes import PROBES, Probe
from flightline_node.ask.readers import READERS
from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError
from tests.harness import sample

Files = dict[str, bytes]

_READ = frozenset(
    {
        "efa_counters",
        "fs_io",
        "gpu_load",
        "imds",
        "limits",
        "neuron_sysfs",
        "nvme_smart",
        "processes",
        "sysfs",
        "versions",
    }
)
"""The readers that answer from a simulated node's files; those of deeper levels have the same stored answers."""


def _stand_up(tree: Mapping[str, Entry], root: Path) -> None:
    for path, entry in tree.items():
        if not path.startswith("root/"):
            continue
        place = root / path[len("root/") :]
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, Link):
            place.symlink_to(entry.target)
        elif isinstance(entry, bytes):
            place.write_bytes(entry)


def _reader_answers(tree: Mapping[str, Entry], kind: str) -> Files:
    """What the readers say, from the node's root laid out for a moment (in memory where the machine can)."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        _stand_up(tree, Path(name))
        asked = [probe for probe in PROBES if probe.reader in _READ and probe.only in ("", kind)]
        return {probe.file: READERS[probe.reader](name).encode() for probe in asked}


def _kind(instance_type: str) -> str:
    return resolve(instance_type).accelerator or ""


@lru_cache(maxsize=None)
def _healthy_readers(instance_type: str) -> tuple[tuple[str, bytes], ...]:
    return tuple(_reader_answers(healthy(instance_type), _kind(instance_type)).items())


def _path_read(probe: Probe) -> str:
    """The file that a `cat` probe prints, as the tree names it; "" for any other probe."""
    return "root/" + probe.commands[0][1][len("{root}/") :] if probe.commands and probe.commands[0][0] == "cat" else ""


def _with_identities(content: bytes) -> bytes:
    """The demo keeps a place for what is each node's own: made-up serial numbers and UUIDs."""
    content = re.sub(rb"@SERIAL(\d+)@", lambda m: b"16500000000%02d" % int(m.group(1)), content)
    return re.sub(rb"@UUID(\d+)@", lambda m: b"GPU-00000000-0000-4000-8000-0000000000%02d" % int(m.group(1)), content)


def _bundle(instance_type: str, tree: Tree) -> Files:
    """What the probes would collect on a simulated node, without starting a process."""
    sound = healthy(instance_type)
    printed = {_path_read(probe) for probe in PROBES}
    changed = {path for path in {*sound, *tree} if sound.get(path) != tree.get(path)}
    touched = any(path.startswith("root/") and path not in printed for path in changed)
    files = _reader_answers(tree, _kind(instance_type)) if touched else dict(_healthy_readers(instance_type))
    for probe in PROBES:
        entry = tree.get(_path_read(probe) or f"out/{probe.file}")
        if isinstance(entry, bytes) and entry and not probe.reader:
            files[probe.file] = entry
    return {name: _with_identities(content) for name, content in files.items()}


@lru_cache(maxsize=None)
def demo(instance_type: str, *faults: str) -> tuple[tuple[str, bytes], ...]:
    """Every file of a simulated node, healthy or with faults of the demo fleet."""
    return tuple(_bundle(instance_type, broken(machine(instance_type), faults)).items())


_REMAP_OF_550 = """<remapped_rows>
\t\t\t<remapped_row_corr>0</remapped_row_corr>
\t\t\t<remapped_row_unc>0</remapped_row_unc>
\t\t\t<remapped_row_pending>No</remapped_row_pending>
\t\t\t<remapped_row_failure>No</remapped_row_failure>
\t\t\t<row_remapper_histogram>
\t\t\t\t<row_remapper_histogram_max>640 bank(s)</row_remapper_histogram_max>
\t\t\t\t<row_remapper_histogram_high>0 bank(s)</row_remapper_histogram_high>
\t\t\t\t<row_remapper_histogram_partial>0 bank(s)</row_remapper_histogram_partial>
\t\t\t\t<row_remapper_histogram_low>0 bank(s)</row_remapper_histogram_low>
\t\t\t\t<row_remapper_histogram_none>0 bank(s)</row_remapper_histogram_none>
\t\t\t</row_remapper_histogram>
\t\t</remapped_rows>"""

# Fixtures model trouble; these edits make their first GPU a healthy one in the same driver's words.
_HEALED: dict[str, tuple[tuple[str, str], ...]] = {
    "v100-450": (),
    "t4-515": ((r"(?<=<persistence_mode>)Disabled", "Enabled"),),
    "a100-535-mig": (
        (r"(?<=_mig>)Enabled", "Disabled"),
        (r"<mig_devices>.*?</mig_devices>", "<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>"),
        (r"<processes>.*?</processes>", "<processes>\n\t\t</processes>"),
        (r"<remapped_rows>N/A</remapped_rows>", _REMAP_OF_550),
    ),
    "h100-550-faulty": (),
    "h200-570-recovery": (
        (r"(?<=<gpu_recovery_action>)Drain and Reset", "None"),
        (r"(?<=<state>)In Progress", "Completed"),
        (r"(?<=<status>)N/A", "Success"),
        (r"(?<=<remapped_row_unc>)1", "0"),
        (r"(?<=<remapped_row_pending>)Yes", "No"),
        (r"3071(?= bank)", "3072"),
        (r"(?<=<row_remapper_histogram_high>)1", "0"),
    ),
    "b200-580": (),
    "rtxpro6000-590": (
        (r"(?<=<current_ecc>)Disabled", "Enabled"),
        (r"((?:correctable|uncorrectable)\w*>)N/A", r"\g<1>0"),
        (r"(?<=<sram_threshold_exceeded>)N/A", "No"),
    ),
    "h200-610": (),
}


# Branches without a fixture of their own, told in a neighbour's file: what NVIDIA's DTDs and public captures show to differ.
_RETOLD: dict[str, tuple[tuple[str, str], ...]] = {
    "470": (
        (r"(?<=<driver_version>)[^<]*", "470.256.02"),
        (r"(?<=<cuda_version>)[^<]*", "11.4"),
        (r"\t*<reserved>[^\n]*\n", ""),
        (r"\t*<gsp_firmware_version>[^\n]*\n", ""),
        (r"\t*<product_architecture>[^\n]*\n", ""),
    ),
    "525": (
        (r"(?<=<driver_version>)[^<]*", "525.147.05"),
        (r"(?<=<cuda_version>)[^<]*", "12.0"),
        (r"clocks_event_reason", "clocks_throttle_reason"),
        (r"\t*<module_power_readings>.*?</module_power_readings>\n", ""),
        (r"gpu_power_readings>", "power_readings>"),
        (r"requested_power_limit>", "enforced_power_limit>"),
        (r"current_power_limit>", "power_limit>"),
    ),
    "545": ((r"(?<=<driver_version>)[^<]*", "545.23.08"), (r"(?<=<cuda_version>)[^<]*", "12.3")),
    "560": ((r"(?<=<driver_version>)[^<]*", "560.35.03"), (r"(?<=<cuda_version>)[^<]*", "12.6")),
    "565": ((r"(?<=<driver_version>)[^<]*", "565.57.01"), (r"(?<=<cuda_version>)[^<]*", "12.7")),
    "575": ((r"(?<=<driver_version>)[^<]*", "575.57.08"), (r"(?<=<cuda_version>)[^<]*", "12.9")),
}


def _retell(content: str, branch: str) -> str:
    old = re.search(r"<driver_version>([^<]*)<", content)
    for pattern, new in _RETOLD[branch]:
        content, count = re.subn(pattern, new, content, flags=re.DOTALL)
        assert count, f"{branch}: nothing to retell at {pattern}"
    now = re.search(r"<driver_version>([^<]*)<", content)
    assert old and now
    return content.replace(old.group(1), now.group(1))  # the GSP firmware has the driver's version


def _gpu_block(block: str, index: int) -> str:
    """A copy of a GPU under other identities, as its neighbour in the same node."""
    bus = f"{0x10 + 0x11 * index:02X}"
    first = re.search(r'^"([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0)"', block)
    serial, uuid = re.search(r"<serial>(\d+)<", block), re.search(r"<uuid>(GPU-[^<]*)<", block)
    assert first and serial and uuid, "fixture without identities"
    block = block.replace(first.group(1), f"00000000:{bus}:00.0")
    block = re.sub(r"(?<=<pci_bus>)[^<]*", bus, block)
    block = re.sub(r"(?<=<minor_number>)\d+", str(index), block)
    block = re.sub(r"(?<=<module_id>)\d+", str(index + 1), block)
    block = block.replace(serial.group(1), f"{int(serial.group(1)) + index:013d}")
    return block.replace(uuid.group(1), f"{uuid.group(1)[:-2]}{index:02d}")


@lru_cache(maxsize=None)
def generation(fixture: str, instance_type: str, branch: str = "") -> str:
    """nvidia-smi -q -x of a healthy node of a type, in the words of the fixture's driver, or of another branch."""
    content = sample(f"nvidia_smi/{fixture}.xml").decode()
    head, first, *_ = content.split("\t<gpu id=")
    first = first[: first.index("\t</gpu>")] + "\t</gpu>\n"
    for pattern, new in _HEALED[fixture]:
        first, count = re.subn(pattern, new, first, flags=re.DOTALL)
        assert count, f"{fixture}: nothing to heal at {pattern}"
    count = resolve(instance_type).gpu_count or 0
    head = re.sub(r"(?<=<attached_gpus>)\d+", str(count), head)
    whole = "\t<gpu id=".join([head, *(_gpu_block(first, index) for index in range(count))]) + "</nvidia_smi_log>\n"
    return _retell(whole, branch) if branch else whole


STAMPS = {
    "dmesg": "[ {up:12.6f}] ",
    "dmesg-T": "[Sat Nov 21 09:{m:02d}:{s:02d} 2026] ",
    "syslog": "Nov 21 09:{m:02d}:{s:02d} ip-10-0-0-7 kernel: [ {up:12.6f}] ",
    "rfc3339": "2026-11-21T09:{m:02d}:{s:02d}.000001+00:00 ip-10-0-0-7 kernel: [ {up:12.6f}] ",
    "journal": "2026-11-21T09:{m:02d}:{s:02d}+0000 ip-10-0-0-7 kernel: ",
}
_BOOT = (
    "Linux version 6.8.0-1015-aws (buildd@lcy02-amd64-040) (x86_64-linux-gnu-gcc-13) #16-Ubuntu SMP",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build  (archive@builder)",
    "ena 0000:00:05.0: ENA device version: 0.10",
)


def kernel_log(lines: list[str], stamp: str = "journal", driver: str = "580.95.05") -> str:
    """A short log of one boot with the given messages, a minute apart."""
    made = []
    for index, line in enumerate([*_BOOT[:1], _BOOT[1].format(driver=driver), *_BOOT[2:], *lines]):
        made.append(STAMPS[stamp].format(up=1 + 60.0 * index, m=index % 60, s=1 + index % 59) + line)
    return "\n".join(made) + "\n"


def set_elements(content: str, index: int, elements: Mapping[str, str]) -> str:
    """Set elements of one GPU ("section/.../tag": value), or of all with index -1."""
    head, *blocks = content.split("\t<gpu id=")
    chosen = range(len(blocks)) if index < 0 else [min(index, len(blocks) - 1)]
    for number in chosen:
        for path, value in elements.items():
            *sections, tag = path.split("/")
            start = 0
            for section in sections:
                start = blocks[number].index(f"<{section}>", start)
            at = blocks[number].index(f"<{tag}>", start) + len(tag) + 2
            end = blocks[number].index("<", at)
            blocks[number] = blocks[number][:at] + value + blocks[number][end:]
    return "\t<gpu id=".join([head, *blocks])


def drop_gpu(content: str, index: int) -> str:
    """nvidia-smi lists one GPU less."""
    head, *blocks = content.split("\t<gpu id=")
    number = min(index, len(blocks) - 1)
    tail = blocks[-1].partition("\t</gpu>\n")[2] if number == len(blocks) - 1 else ""
    del blocks[number]
    head = re.sub(r"(?<=<attached_gpus>)\d+", str(len(blocks)), head)
    return "\t<gpu id=".join([head, *blocks]) + tail


def garble_gpu(content: str, index: int, words: str) -> str:
    """Every value of one GPU is an error text, as when the driver cannot reach it."""
    head, *blocks = content.split("\t<gpu id=")
    number = min(index, len(blocks) - 1)
    body, closing, tail = blocks[number].partition("\t</gpu>")
    keep = body.split(">", 1)[0] + ">"
    rest = re.sub(r">[^<>\n]+</(?!minor_number|pci_bus_id|uuid|serial)", f">{words}</", body[len(keep) :])
    blocks[number] = keep + rest + closing + tail
    return "\t<gpu id=".join([head, *blocks])


def _sub(files: Files, file: str, pattern: str, new: str) -> None:
    content, count = re.subn(pattern, new, files[file].decode(), count=1, flags=re.DOTALL | re.MULTILINE)
    assert count, f"{file}: nothing to change at {pattern}"
    files[file] = content.encode()


def edit(files: Files, steps: Mapping[str, Any]) -> None:
    """Apply a case's edits in place. Raises AssertionError, KeyError or ValueError when one changes nothing."""
    before = dict(files)
    smi = files.get("nvidia-smi.xml", b"").decode()
    if "set" in steps:
        smi = set_elements(smi, steps.get("gpu", 1), steps["set"])
    if "drop_gpu" in steps:
        smi = drop_gpu(smi, steps["drop_gpu"])
    if "garble" in steps:
        smi = garble_gpu(smi, steps.get("gpu", 1), steps["garble"])
    if smi:
        files["nvidia-smi.xml"] = smi.encode()
    for file, pattern, new in steps.get("replace", ()):
        _sub(files, file, pattern, new)
    for file, text in steps.get("append", {}).items():
        files[file] = files.get(file, b"") + text.encode()
    for file, percent in steps.get("cut", {}).items():
        files[file] = files[file][: len(files[file]) * percent // 100]
    for file, value in steps.get("json", {}).items():
        files[file] = json.dumps({**json.loads(files[file]), **value}).encode()
    assert steps.get("none") or files != before, f"edit changes nothing: {steps}"


def build(spec: Mapping[str, Any]) -> Files:
    """The files of a case from its label's `files` part. Raises SettingsError for an unknown part."""
    files: Files = {}
    unknown = set(spec) - {"demo", "faults", "only", "smi", "fixtures", "texts", "kernel", "edit"}
    if unknown:
        raise SettingsError(f"unknown part {', '.join(sorted(unknown))}")
    if "demo" in spec:
        files.update(demo(spec["demo"], *spec.get("faults", ())))
    if "only" in spec:
        files = {name: files[name] for name in spec["only"]}
    if "smi" in spec:
        files["nvidia-smi.xml"] = generation(*spec["smi"]).encode()
    for name, path in spec.get("fixtures", {}).items():
        files[name] = sample(path)
    for name, text in spec.get("texts", {}).items():
        files[name] = text.encode()
    if "kernel" in spec:
        files["kernel.log"] = kernel_log(**spec["kernel"]).encode()
    if "edit" in spec:
        edit(files, spec["edit"])
    return files
