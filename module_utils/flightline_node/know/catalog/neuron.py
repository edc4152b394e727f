"""What the Neuron driver and runtime print when something is wrong, and what each message means for the node.

Sources: aws-neuron-driver 2.24.7 (names of the functions' files in brackets), AWS Neuron troubleshooting page ("Hardware
Errors", "Failure to initialize Neuron"), the patterns of AWS's node problem detector for Neuron. Messages are facts;
the sentences are ours. One line each: id; class; remedy; pattern; meaning. Classes: condemns (the node is not to be
used), degrades (a warning, and from some repetitions on a failure), blinds (a counter reads 0 although it could not be
read), job (a program's trouble, no part of the node is named), nothing. The first pattern that a line matches counts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, Pattern, Tuple

from ...model import Remedy

CONDEMNS, DEGRADES, BLINDS, JOB, NOTHING = "condemns", "degrades", "blinds", "job", "nothing"

KERNEL_NEEDLES = (b"euron", b"NEURON_HW_ERR")
"""Of which one stands in every such line of the kernel: the driver's begin with its module's name."""
JOB_NEEDLES = (
    *KERNEL_NEEDLES,
    b"NRT:",
    b"TDRV",
    b"NMGR:",
    b"[ND ",
    b"[MLA ",
    b"NRT_",
    b"status",
    b"FATAL-RT",
    b"HBM memory error",
)

_TABLE = r"""
hw_err_collectives; job; NONE; NEURON_HW_ERR=\w*COLLECTIVE\w*; a collective hung: look for the worker that failed
hw_err_repairable; condemns; REBOOT; NEURON_HW_ERR=\w*REPAIRABLE\w*; an HBM error that a reload of the driver or a reboot repairs
hw_err; condemns; REPLACE; NEURON_HW_ERR=\w+; a hardware error for which AWS retires the instance
status_repairable; condemns; REBOOT; NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE|\bstatus(?: code)?[ =:]{1,3}1205\b; [nrt_status.h] an HBM error that a reload of the driver or a reboot repairs
status_collectives; job; NONE; NRT_EXEC_HW_ERR_COLLECTIVES|\bstatus(?: code)?[ =:]{1,3}1200\b; [nrt_status.h] a collective hung: look for the worker that failed
status_hardware; condemns; REPLACE; NRT_EXEC_HW_ERR_\w+|NRT_EXEC_UNIT_UNRECOVERABLE|\bstatus(?: code)?[ =:]{1,3}(?:120[123]|101)\b; [nrt_status.h] a hardware error in HBM, NeuronCore or DMA engine
sram_uncorrectable; condemns; REPLACE; Uncorrectable memory error is detected, metadata; uncorrectable error in an on-chip SRAM
hbm_repairable; condemns; REBOOT; Uncorrectable HBM memory error is detected.*(?:reload the neuron driver|reboot); an HBM error that a reload of the driver or a reboot repairs
hbm_uncorrectable; condemns; REPLACE; Uncorrectable HBM memory error is detected; uncorrectable error in an HBM
dma_abort; condemns; REPLACE; DMA [TR]X engine \d+ is in an abort state; a DMA engine met an error it cannot recover from
hang_collectives; job; NONE; suspected hang in collectives operation|missing collectives status; a collective hung: look for the worker that failed
hang_compute; condemns; REPLACE; FATAL-RT-UNDEFINED-STATE\).{0,40}(?:execution|inference) timeout; a device does not finish what it was given
device_in_use; job; NONE; NeuronCore\(s\) not available; another program holds the NeuronCores
old_driver; condemns; UPDATE_SOFTWARE; This runtime requires Neuron Driver version|\(compatibility id: \w+\) is not compatible with the installed; runtime and driver do not go together
no_driver; condemns; UPDATE_SOFTWARE; Unable to determine Neuron Driver version|No neuron device available; the runtime finds no driver or device
no_collectives; condemns; UPDATE_SOFTWARE; Error opening libnccom\.so; the collectives library is missing
init_failed; condemns; REBOOT; CRITICAL HW ERROR|HAL init failed|Failed to stop neuron core|TDRV not initialized; a device was left running and did not start
reset_failed; condemns; REBOOT; nd\d+: reset request \d+ (?:failed|was initiated, but failed to complete); [neuron_reset.c] a device did not come back from its reset
reset_unfinished; condemns; REBOOT; nd\d+: failed to (?:initialize dma after reset|complete post reset configuration); [neuron_reset.c] a device did not come back from its reset
invalid_state; condemns; REBOOT; nd\d+ is in an invalid state; [neuron_cdev.c] a device is not usable since its reset
thread_failed; condemns; REBOOT; nd\d+ (?:reset|metrics aggregation) thread creation failed; [neuron_reset.c, neuron_metrics.c] the driver could not set a device up
no_index; condemns; REBOOT; Could not retrieve device index|Invalid device index \d+; [neuron_dhal] a device does not answer the driver
duplicate_id; condemns; REBOOT; duplicate routing id \d+ found|scheduling unload of neuron; [neuron_dhal] two devices claim one place and the driver unloads itself
not_registered; condemns; REBOOT; Failed to register neuron inf driver|readless read initialization failed|failed to register ndhal funcs; [neuron_pci.c] the driver did not start
scrub_failed; condemns; REPLACE; Scrub failed for nd\d+ HBM|for scrubbing nd\d+ HBM; [neuron_cdev.c] an HBM could not be cleared after an error
dma_not_started; condemns; REBOOT; neuron:\w+: .*(?:(?:[UTS]DMA (?:ENG|BCAST)|DMA eng ?):?\d+ init failed|DMA init failed on nc|failed to init (?:m2s|s2m|engine)|H2T ring (?:allocation|init) failed|can't allocate .{1,24} for H2T|q\d+ failed to reset); [neuron_ring.c, udma] a DMA engine or queue could not be set up
not_set_up; condemns; REBOOT; neuron:\w+: .*(?:mpset (?:device|host) init failed|nds allocation failure|failed to (?:register (?:character device|readless)|allocate hbm carveout)|error -?\d+ while trying to create|can't get major|create class/|neuron_dhal\.|ndhal is null|carve out mc not|BAR4 not mapped|io remap failed|failed to read (?:device ready|east|west)|read instance type failed|unable to schedule driver unload|No usable DMA|failed to initialize mc handle map|local (?:routing id|serial number) read failed); [neuron_cdev.c, neuron_dhal, neuron_mempool.c] a device or the driver could not be set up
repair_invalid; degrades; CONTACT_SUPPORT; but repair state is \d+ which is invalid; [neuron_dhal_v3.c] HBM error count and repair state contradict each other
ecc_unread; blinds; INVESTIGATE; sysfs failed to read (?:ECC|HBM ECC)|failed to get ecc error count|failed to get hbm reapirable; [neuron_fw_io.c] the driver could not read an ECC count and shows 0
counters_lacking; degrades; REBOOT; neuron:\w+: .*(?:failed to (?:register sysfs|(?:dynamically )?add |create (?:a group|an attribute|the )|init and add|allocate .{0,40}(?:metric|sysfs|attr))|cannot init the root node|can't add the dynamic node|sysfs metric.{0,40}already exists); [neuron_sysfs_metrics.c] counters of a device are not there to be read
topology_unread; degrades; INVESTIGATE; neuron:\w+: .*(?:Unable to get connected devices|Failed to get Neuron Core mapping|Connected device count exceeded); [neuron_cdev.c] the driver does not know a device's neighbours
serial_unread; degrades; INVESTIGATE; failed to get (?:device power|api version)|Failed to read firmware API|sysfs failed to read (?:power|pe_array)|failed to read pe |response too large|No region found|sysfs failed to read serial number|failed to get the (?:lower|higher) 32 bits of the serial; [neuron_fw_io.c] a device's firmware does not answer
passes; nothing; NONE; neuron:\w+: .*(?:prefetch failed|skipping small genpool|Election request failed|neighbor read failed on eng|during reset/initialization|without initializing fw_io); [neuron_fw_io.c, neuron_pelect.c] the driver does without, or asks again
copy_retried; nothing; NONE; Failed to copy memory during a NeuronCore reset.*Retrying; [neuron_dma.c] a copy met a reset and is repeated
dma_timeout; degrades; REBOOT; DMA completion timeout; [neuron_dma.c] a DMA transfer did not finish in its time
dma_refused; degrades; REBOOT; neuron:\w+: .*(?:failed to (?:prepare|start) DMA|copy start failed|memset (?:memory |device to device )?failed|dma memcpy (?:wait )?failed|mem buffer copy failed|engine programming dma (?:failed|mc)|not enough room in [TR]X); [neuron_dma.c, neuron_ring.c] a DMA transfer could not be started
firmware_timeout; degrades; REBOOT; seq: \d+, cmd: \d+ (?:timed out|failed); [neuron_fw_io.c] a device's firmware does not answer
register_read; degrades; REBOOT; register read failure while reading; [neuron_dhal] a device's register could not be read
wrong_wiring; degrades; CONTACT_SUPPORT; ultraserver link is miss-wired|unexpected ultraServer link mask|Serial numbers on \w+ link pair don't match; [neuron_pelect.c] UltraServer links lead to the wrong neighbour
election; degrades; INVESTIGATE; election failed|(?:election|neighbor) io .{0,24}fail|election (?:io queue init|thread creation) failed|failed to create dma descriptor|election data read timeout|Read ultraserver neighbor .* failed|secondary devices reported good links; [neuron_pelect.c] the UltraServer's nodes do not agree
out_of_memory; job; NONE; mc_alloc: device mempool .* needed|neuron:\w+: .*(?:Could not allocate|no space in \w+ genpool|[Aa]llocation failed|(?:memory alloc|failed to alloc)|map out of entries|could not (?:pin|allocate)|Failed to allocate); [neuron_mempool.c] a program asked for more memory than the device has
starved; job; NONE; neuron:\w+: .*(?:(?:reader|writer) starved|pid:? ?\d+ failed to open); [neuron_crwl.c] a program holds a NeuronCore that another one wants
program; job; NONE; neuron:\w+: .*(?:\b[Ii]nvalid\b|[Uu]nexpected (?:class|type)|is not NULL|too (?:large|small|big)|not supported|[Uu]nsupported|out of (?:range|bound)|not allowed|not initialized|can't set|already (?:exists|detached|zero|0)|exceed|unaligned|not .{0,12}aligned|another process|from another pid|freed prematurely|(?:device closed|before \w+\(\))|copy_from_user|error -?\d+ while|(?i:failed) to delete mmap|Metric posting failed|not found|without enter|cannot (?:set|show|increment|decrement)|get DMA queue desc|snprintf); a program asked for what the driver does not do
""".strip()


class MessagePattern(NamedTuple):
    """One message. kind: one of the classes above."""

    id: str
    kind: str
    remedy: Remedy
    pattern: Pattern[str]
    meaning: str


@lru_cache(maxsize=None)
def rules() -> Tuple[MessagePattern, ...]:
    """The table, in its order."""
    rows = (line.split("; ", 3) for line in _TABLE.splitlines())
    return tuple(_rule(name, kind, remedy, rest) for name, kind, remedy, rest in rows)


def _rule(name: str, kind: str, remedy: str, rest: str) -> MessagePattern:
    pattern, _, meaning = rest.rpartition("; ")
    return MessagePattern(name, kind, Remedy(remedy), re.compile(pattern), meaning)


@lru_cache(maxsize=1)
def any_rule() -> Pattern[str]:
    """One search that tells whether any of them matches: most lines match none."""
    return re.compile("|".join(f"(?:{rule.pattern.pattern})" for rule in rules()))
