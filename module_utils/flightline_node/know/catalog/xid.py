"""Xid codes: what each is called, what NVIDIA says to do at once, and what that means before a job.

Sources, read 2026-11: NVIDIA Xid catalogue (docs.nvidia.com/deploy/xid-errors; mnemonic, bucket, meaning),
nverror.h of open-gpu-kernel-modules 595.45.04 (162 to 176), NVIDIA's older Xid guide (meanings of codes that the
catalogue calls unused). Columns: code, mnemonic, bucket (NVIDIA's immediate action), class, status, remedy,
meaning, note.

status follows the bucket: an action on the GPU or the node is FAIL; RESTART_APP, IGNORE and "follow the
other Xid" are INFO; what NVIDIA says to watch, and codes without a bucket that are not plainly fatal,
are WARN. Codes 167 to 175 have no bucket: the fatal ones among them are treated like their nearest relative, as are
retired codes of memory and micro-controllers. A code that nobody explains is UNKNOWN. Where this departs from the bucket
(63, 94, 160, 161), docs/corpus.md says why.
DECODE: see nvlink5.py. TEXT: the line itself names the action. Kept as text: a node reads it only when there is an Xid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Dict, NamedTuple, Optional


class Xid(NamedTuple):
    """One code. `status` and `remedy` are spelled as in model.py, or DECODE or TEXT."""

    code: int
    mnemonic: str
    bucket: str
    cls: str
    status: str
    remedy: str
    meaning: str
    note: str


def lookup(code: int) -> Optional[Xid]:
    """The entry of a code, or None when NVIDIA names no such code."""
    return table().get(code)


@lru_cache(maxsize=1)
def table() -> Dict[int, Xid]:
    """Every known code."""
    entries = (line.split("|") for line in TABLE.splitlines())
    return {int(parts[0]): Xid(int(parts[0]), *parts[1:]) for parts in entries}


TABLE = """\
1|ROBUST_CHANNEL_FIFO_ERROR_FIFO_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer stream|no longer in NVIDIA's catalogue
2|ROBUST_CHANNEL_FIFO_ERROR_SW_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer stream|no longer in NVIDIA's catalogue
3|ROBUST_CHANNEL_FIFO_ERROR_UNK_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer stream|no longer in NVIDIA's catalogue
4|ROBUST_CHANNEL_FIFO_ERROR_CHANNEL_BUSY|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer stream / GPU semaphore timeout|no longer in NVIDIA's catalogue
5|ROBUST_CHANNEL_FIFO_ERROR_RUNOUT_OVERFLOW|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
6|ROBUST_CHANNEL_FIFO_ERROR_PARSE_ERR|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer stream|no longer in NVIDIA's catalogue
7|ROBUST_CHANNEL_FIFO_ERROR_PTE_ERR|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted push buffer address|no longer in NVIDIA's catalogue
8|ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT|RESTART_APP|application|INFO|RESTART_APP|GPU stopped processing|
9|ROBUST_CHANNEL_GR_ERROR_INSTANCE|UNUSED|unused|WARN|INVESTIGATE|Driver error programming GPU|no longer in NVIDIA's catalogue
10|ROBUST_CHANNEL_GR_ERROR_SINGLE_STEP|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
11|ROBUST_CHANNEL_GR_ERROR_MISSING_HW|RESTART_APP|application|INFO|RESTART_APP|Invalid or corrupted push buffer stream|
12|ROBUST_CHANNEL_GR_ERROR_SW_METHOD|UNUSED|unused|WARN|INVESTIGATE|Driver error handling GPU exception|no longer in NVIDIA's catalogue
13|ROBUST_CHANNEL_GR_EXCEPTION|RESTART_APP|application|INFO|RESTART_APP|Graphics engine exception|an application error; hardware only when it keeps coming on one GPU
14|ROBUST_CHANNEL_FAKE_ERROR|IGNORE|informational|INFO|NONE|Unused|
15|ROBUST_CHANNEL_SCANLINE_TIMEOUT|UNUSED|unused|WARN|INVESTIGATE||no longer in NVIDIA's catalogue
16|ROBUST_CHANNEL_VBLANK_CALLBACK_TIMEOUT|UNUSED|unused|WARN|INVESTIGATE|Display engine hung|no longer in NVIDIA's catalogue
17|ROBUST_CHANNEL_PARAMETER_ERROR|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
18|ROBUST_CHANNEL_BUS_MASTER_TIMEOUT_ERROR|UNUSED|bus|FAIL|REBOOT|Bus mastering disabled in PCI Config Space|no longer in NVIDIA's catalogue; the older guide: bus mastering was off in PCI config space
19|ROBUST_CHANNEL_DISP_MISSED_NOTIFIER|UNUSED|unused|WARN|INVESTIGATE|Display Engine error|no longer in NVIDIA's catalogue
20|ROBUST_CHANNEL_MPEG_ERROR_SW_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted Mpeg push buffer|no longer in NVIDIA's catalogue
21|ROBUST_CHANNEL_ME_ERROR_SW_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted Motion Estimation push buffer|no longer in NVIDIA's catalogue
22|ROBUST_CHANNEL_VP_ERROR_SW_METHOD|UNUSED|unused|WARN|INVESTIGATE|Invalid or corrupted Video Processor push buffer|no longer in NVIDIA's catalogue
23|ROBUST_CHANNEL_RC_LOGGING_ENABLED|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
24|ROBUST_CHANNEL_GR_SEMAPHORE_TIMEOUT|UNUSED|unused|WARN|INVESTIGATE|GPU semaphore timeout|no longer in NVIDIA's catalogue
25|ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY|RESTART_APP|application|INFO|RESTART_APP|Invalid or illegal push buffer stream|
26|ROBUST_CHANNEL_FIFO_ERROR_FBISTATE_TIMEOUT|UNUSED|memory|FAIL|RESET_GPU|Framebuffer timeout|no longer in NVIDIA's catalogue; the older guide: the framebuffer did not answer
27|ROBUST_CHANNEL_VP_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
28|ROBUST_CHANNEL_VP2_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
29|ROBUST_CHANNEL_BSP_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
30|ROBUST_CHANNEL_BAD_ADDR_ACCESS|UNUSED|unused|WARN|INVESTIGATE|GPU semaphore access error|no longer in NVIDIA's catalogue
31|ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT|RESTART_APP|application|INFO|RESTART_APP|GPU memory page fault (MMU)|an application error; hardware only when it keeps coming on one GPU
32|ROBUST_CHANNEL_PBDMA_ERROR|RESTART_APP|application_or_pcie|WARN|INVESTIGATE|Invalid or corrupted push buffer stream (PBDMA)|older NVIDIA guides put it down to PCIe signal quality; a repeat on one GPU is a hardware hint
33|ROBUST_CHANNEL_SEC_ERROR|UNUSED|gpu_hang|FAIL|RESET_GPU|Internal micro-controller error|no longer in NVIDIA's catalogue; the older guide: a micro-controller failed, as 169
34|ROBUST_CHANNEL_MSVLD_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
35|ROBUST_CHANNEL_MSPDEC_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
36|ROBUST_CHANNEL_MSPPP_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
37|ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD|IGNORE|application|INFO|NONE|Driver firmware error|
38|ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT|IGNORE|application|INFO|NONE|Driver firmware error|
39|ROBUST_CHANNEL_CE0_ERROR|RESTART_APP|application|INFO|RESTART_APP|Copy Engine Exception|
40|ROBUST_CHANNEL_CE1_ERROR|RESTART_APP|application|INFO|RESTART_APP|Copy Engine Exception|
41|ROBUST_CHANNEL_CE2_ERROR|RESTART_APP|application|INFO|RESTART_APP|Copy Engine Exception|
42|ROBUST_CHANNEL_VIC_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
43|ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR|IGNORE|application|INFO|NONE|GPU stopped processing (channel reset verification)|the application's channel was reset, the GPU stays healthy
44|ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW|IGNORE|application|INFO|NONE|Graphics Engine fault during context switch|
45|ROBUST_CHANNEL_PREEMPTIVE_REMOVAL|WORKFLOW_XID_45|secondary|INFO|NONE|Preemptive cleanup caused by an earlier error|clean-up after another error: look at the Xid before it; alone: restart the fabric manager
46|ROBUST_CHANNEL_GPU_TIMEOUT_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|GPU stopped processing|
47|ROBUST_CHANNEL_NVENC0_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
48|ROBUST_CHANNEL_GPU_ECC_DBE|WORKFLOW_XID_48|memory|FAIL|RESET_GPU|Double Bit ECC Error|drain and reset; with 63 or 64 the bad row is remapped by the reset; replace when SRAM errors pass the threshold
49|SILENT_RUNNING_CONSTANT_LEVEL_SET_BY_REGISTRY|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
50|SILENT_RUNNING_LEVEL_TRANSITION_DUE_TO_RC_ERROR|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
51|SILENT_RUNNING_STRESS_TEST_FAILURE|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
52|SILENT_RUNNING_LEVEL_TRANS_DUE_TO_TEMP_RISE|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
53|SILENT_RUNNING_TEMP_REDUCED_CLOCKING|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
54|SILENT_RUNNING_PWR_REDUCED_CLOCKING|CHECK_MECHANICALS|power|FAIL|REPLACE|Auxiliary power is not connected to the GPU board|the board's power cannot be seen to on EC2: replace the instance
55|SILENT_RUNNING_TEMPERATURE_READ_ERROR|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
56|DISPLAY_CHANNEL_EXCEPTION|UNUSED|unused|WARN|INVESTIGATE|Display Engine error|no longer in NVIDIA's catalogue
57|FB_LINK_TRAINING_FAILURE_ERROR|UNUSED|memory|FAIL|RESET_GPU|Error programming video memory interface|no longer in NVIDIA's catalogue; the older guide: hardware, the memory interface could not be trained
58|FB_MEMORY_ERROR|UNUSED|memory|FAIL|RESET_GPU|Unstable video memory interface detected / EDC error|no longer in NVIDIA's catalogue; the older guide: hardware, the memory interface is unstable
59|PMU_ERROR|UNUSED|gpu_hang|FAIL|RESET_GPU|Internal micro-controller error (older drivers)|no longer in NVIDIA's catalogue; the older guide: the PMU failed, as 62
60|ROBUST_CHANNEL_SEC2_ERROR|RESTART_APP|application|INFO|RESTART_APP|Video processor exception|
61|PMU_BREAKPOINT|UNUSED|gpu_hang|FAIL|RESET_GPU|Internal micro-controller breakpoint/warning (newer drivers)|no longer in NVIDIA's catalogue; the older guide: the PMU stopped, as 62; such GPUs are seen to stay at low clocks
62|PMU_HALT_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|Internal micro-controller halt (newer drivers)|reset; replace if it comes back
63|INFOROM_DRAM_RETIREMENT_EVENT|IGNORE|memory|FAIL|RESET_GPU|GPU memory remapping event|a bad row was found and is remapped by the next reset, or a page was retired; AWS replaces the node
64|INFOROM_DRAM_RETIREMENT_FAILURE|RESET_GPU|memory|FAIL|RESET_GPU|GPU memory remapping failure|remapping failed: reset, replace if the row remap failure flag stays set
65|ROBUST_CHANNEL_NVENC1_ERROR|UNUSED|unused|WARN|INVESTIGATE|Video processor exception|no longer in NVIDIA's catalogue
66|ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION|IGNORE|application|INFO|NONE|Illegal access by driver|
67|ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION|IGNORE|application|INFO|NONE|Illegal access by driver|
68|ROBUST_CHANNEL_NVDEC0_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC0 Exception|
69|ROBUST_CHANNEL_GR_CLASS_ERROR|RESTART_APP|application|INFO|RESTART_APP|Graphics Engine class error|
70|ROBUST_CHANNEL_CE3_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE3: Unknown Error|
71|ROBUST_CHANNEL_CE4_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE4: Unknown Error|
72|ROBUST_CHANNEL_CE5_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE5: Unknown Error|
73|ROBUST_CHANNEL_NVENC2_ERROR|UNUSED|unused|WARN|INVESTIGATE|NVENC2 Error|no longer in NVIDIA's catalogue
74|NVLINK_ERROR|WORKFLOW_NVLINK_ERR|nvlink|FAIL|RESET_GPU|NVLINK Error|reset both ends of the link; replace if it comes back
75|ROBUST_CHANNEL_CE6_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE6: Unknown Error|
76|ROBUST_CHANNEL_CE7_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE7: Unknown Error|
77|ROBUST_CHANNEL_CE8_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE8: Unknown Error|
78|VGPU_START_ERROR|UPDATE_SWFW|vgpu|FAIL|UPDATE_SOFTWARE|vGPU Start Error|upgrade the driver
79|ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS|RESTART_BM|bus|FAIL|REBOOT|GPU has fallen off the bus|reboot; replace if it comes back
80|PBDMA_PUSHBUFFER_CRC_MISMATCH|RESTART_APP|application|INFO|RESTART_APP|Corrupted data sent to GPU|
81|ROBUST_CHANNEL_VGA_SUBSYSTEM_ERROR|UNUSED|unused|WARN|INVESTIGATE|VGA Subsystem Error|no longer in NVIDIA's catalogue
82|ROBUST_CHANNEL_NVJPG0_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG0 Error|
83|ROBUST_CHANNEL_NVDEC1_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC1 Error|
84|ROBUST_CHANNEL_NVDEC2_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC2 Error|
85|ROBUST_CHANNEL_CE9_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE9: Unknown Error|
86|ROBUST_CHANNEL_OFA0_ERROR|RESTART_APP|application|INFO|RESTART_APP|OFA Exception|
87|NVTELEMETRY_DRIVER_REPORT|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
88|ROBUST_CHANNEL_NVDEC3_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC3 Error|
89|ROBUST_CHANNEL_NVDEC4_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC4 Error|
90|LTC_ERROR|UNUSED|memory|FAIL|RESET_GPU||no longer in NVIDIA's catalogue; by its name an error of the L2 cache
91|RESERVED_XID|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
92|EXCESSIVE_SBE_INTERRUPTS|IGNORE|memory|WARN|INVESTIGATE|High single-bit ECC error rate|watch the correctable rate
93|INFOROM_ERASE_LIMIT_EXCEEDED|IGNORE|memory|WARN|INVESTIGATE|Non-fatal violation of provisioned InfoROM wear limit|InfoROM wear: no effect on jobs
94|ROBUST_CHANNEL_CONTAINED_ERROR|RESTART_APP|memory|FAIL|RESET_GPU|Contained memory error|only the faulting process died; the bad row is remapped by the next reset
95|ROBUST_CHANNEL_UNCONTAINED_ERROR|RESET_GPU|memory|FAIL|RESET_GPU|Uncontained memory error|uncontained: memory of other processes may be hit
96|ROBUST_CHANNEL_NVDEC5_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC5 Error|
97|ROBUST_CHANNEL_NVDEC6_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC6 Error|
98|ROBUST_CHANNEL_NVDEC7_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVDEC7 Error|
99|ROBUST_CHANNEL_NVJPG1_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG1 Error|
100|ROBUST_CHANNEL_NVJPG2_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG2 Error|
101|ROBUST_CHANNEL_NVJPG3_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG3 Error|
102|ROBUST_CHANNEL_NVJPG4_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG4 Error|
103|ROBUST_CHANNEL_NVJPG5_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG5 Error|
104|ROBUST_CHANNEL_NVJPG6_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG6 Error|
105|ROBUST_CHANNEL_NVJPG7_ERROR|RESTART_APP|application|INFO|RESTART_APP|NVJPG7 Error|
106|SMBPBI_TEST_MESSAGE|IGNORE|informational|INFO|NONE|SMBPBI Test Message|
107|SMBPBI_TEST_MESSAGE_SILENT|IGNORE|informational|INFO|NONE|SMBPBI Test Message Silent|
108|NVLINK_REMOTE_TRANSLATION_ERROR|IGNORE|application|INFO|NONE|Unused|
109|ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|Context Switch Timeout Error|the GPU did not switch contexts in time
110|SEC_FAULT_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|Security Fault Error|
111|BUNDLE_ERROR_EVENT|UNUSED|unused|WARN|INVESTIGATE|Display Bundle Error Event|no longer in NVIDIA's catalogue
112|DISP_SUPERVISOR_ERROR|UNUSED|unused|WARN|INVESTIGATE|Display Supervisor Error|no longer in NVIDIA's catalogue
113|DP_LT_FAILURE|UNUSED|unused|WARN|INVESTIGATE|DP Link Training Error|no longer in NVIDIA's catalogue
114|HEAD_RG_UNDERFLOW|UNUSED|unused|WARN|INVESTIGATE|Display Pipeline Underflow Error|no longer in NVIDIA's catalogue
115|CORE_CHANNEL_REGS|UNUSED|unused|WARN|INVESTIGATE|Display Core Channel Error|no longer in NVIDIA's catalogue
116|WINDOW_CHANNEL_REGS|UNUSED|unused|WARN|INVESTIGATE|Display Window Channel Error|no longer in NVIDIA's catalogue
117|CURSOR_CHANNEL_REGS|UNUSED|unused|WARN|INVESTIGATE|Display Cursor Channel Error|no longer in NVIDIA's catalogue
118|HEAD_REGS|UNUSED|unused|WARN|INVESTIGATE|Display Pixel Pipeline Error|no longer in NVIDIA's catalogue
119|GSP_RPC_TIMEOUT|RESET_GPU|gpu_hang|FAIL|RESET_GPU|GSP RPC Timeout|the GPU's firmware stopped answering
120|GSP_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|GSP Error|the GPU's firmware failed
121|C2C_ERROR|IGNORE|c2c|WARN|INVESTIGATE|C2C Error|corrected link errors; a reset at a quiet time retrains the link
122|SPI_PMU_RPC_READ_FAIL|UNUSED|gpu_hang|FAIL|RESET_GPU|SPI PMU RPC Read Failure|no longer in NVIDIA's catalogue; the PMU could not use the flash that keeps remapped rows
123|SPI_PMU_RPC_WRITE_FAIL|UNUSED|gpu_hang|FAIL|RESET_GPU|SPI PMU RPC Write Failure|no longer in NVIDIA's catalogue; the PMU could not write the flash that keeps remapped rows; GKE takes the node out
124|SPI_PMU_RPC_ERASE_FAIL|UNUSED|gpu_hang|FAIL|RESET_GPU|SPI PMU RPC Erase Failure|no longer in NVIDIA's catalogue; the PMU could not use the flash that keeps remapped rows
125|INFOROM_FS_ERROR|UNUSED|memory|FAIL|RESET_GPU|Inforom FS Failure|no longer in NVIDIA's catalogue; the InfoROM keeps the remapped rows
126|ROBUST_CHANNEL_CE10_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE10: Unknown Error|
127|ROBUST_CHANNEL_CE11_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE11: Unknown Error|
128|ROBUST_CHANNEL_CE12_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE12: Unknown Error|
129|ROBUST_CHANNEL_CE13_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE13: Unknown Error|
130|ROBUST_CHANNEL_CE14_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE14: Unknown Error|
131|ROBUST_CHANNEL_CE15_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE15: Unknown Error|
132|ROBUST_CHANNEL_CE16_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE16: Unknown Error|
133|ROBUST_CHANNEL_CE17_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE17: Unknown Error|
134|ROBUST_CHANNEL_CE18_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE18: Unknown Error|
135|ROBUST_CHANNEL_CE19_ERROR|RESTART_APP|application|INFO|RESTART_APP|CE19: Unknown Error|
136|ALI_TRAINING_FAIL|RESET_GPU|nvlink|FAIL|RESET_GPU|Link Training Failed|reset retrains the links
137|NVLINK_PRIV_ERR|IGNORE|application|INFO|NONE|NVLink Privilege Error|
138|ROBUST_CHANNEL_DLA_ERROR|UNUSED|unused|UNKNOWN|INVESTIGATE||nobody says what it means
139|ROBUST_CHANNEL_OFA1_ERROR|RESTART_APP|application|INFO|RESTART_APP|OFA1 Error|
140|UNRECOVERABLE_ECC_ERROR_ESCAPE|RESET_GPU|memory|FAIL|RESET_GPU|ECC Unrecovered Error|reset before the next job
141|ROBUST_CHANNEL_FAST_PATH_ERROR|IGNORE|application|INFO|NONE|CUDA Fast Path Error|
142|ROBUST_CHANNEL_NVENC3_ERROR|CONTACT_SUPPORT|video|FAIL|CONTACT_SUPPORT|NVENC3 Error|open a case
143|GPU_INIT_ERROR|RESET_GPU|gpu_hang|FAIL|RESET_GPU|GPU Initialization Error|reset; reboot if it comes back
144|NVLINK_SAW_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: SAW Error|
145|NVLINK_RLW_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: RLW Error|
146|NVLINK_TLW_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: TLW Error|
147|NVLINK_TREX_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: TREX Error|
148|NVLINK_NVLPW_CTRL_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: NVLPW_CTRL Error|
149|NVLINK_NETIR_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: NETIR Error|
150|NVLINK_MSE_ERROR|WORKFLOW_NVLINK5_ERR|nvlink|DECODE|INVESTIGATE|NVLINK: MSE Error|
151|ROBUST_CHANNEL_KEY_ROTATION_ERROR|RESTART_VM|cc|FAIL|REBOOT|Key rotation error (CC)|reboot the instance
152|ROBUST_CHANNEL_DLA_SMMU_ERROR|IGNORE|informational|INFO|NONE|DLA SMMU Error|
153|ROBUST_CHANNEL_DLA_TIMEOUT|IGNORE|informational|INFO|NONE|DLA timeout Error|
154|GPU_RECOVERY_ACTION_CHANGED|XID_154|recovery|TEXT|INVESTIGATE|GPU Recovery Action Changed|the driver names the recovery action
155|NVLINK_SW_DEFINED_ERROR|RESET_GPU|nvlink|FAIL|RESET_GPU|NVLINK: SW Defined Error|expected only during a reset or a partition change
156|RESOURCE_RETIREMENT_EVENT|RESET_GPU|memory|FAIL|RESET_GPU|Resource Retirement Event|a part of the GPU was retired: the reset puts the spare to work
157|RESOURCE_RETIREMENT_FAILURE|IGNORE|memory|WARN|INVESTIGATE|Resource Retirement Failure|no spare parts left: plan a replacement
158|GPU_FATAL_TIMEOUT|RESET_GPU|gpu_hang|FAIL|RESET_GPU|GPU Fatal Timeout|reset; replace if it comes back
159|ROBUST_CHANNEL_CHI_NON_DATA_ERROR|CHECK_UVM|c2c|WARN|INVESTIGATE|CHI Non-Data Error|reset when unified memory is in use
160|CHANNEL_RETIREMENT_EVENT|IGNORE|memory|WARN|INVESTIGATE|Channel Retirement Event|since R575 Xid 154 says whether the GPU must recover; NVSentinel reboots
161|CHANNEL_RETIREMENT_FAILURE|IGNORE|memory|WARN|INVESTIGATE|Channel Retirement Failure|since R575 Xid 154 says whether the GPU must recover
162|PSHC_REENGAGED|NONE|power_smoothing|INFO|NONE|Power-smoothing circuit re-engaged|
163|PSHC_DISENGAGED|NONE|power_smoothing|INFO|NONE|Power-smoothing circuit disengaged|
164|PSHC_LOW_LIFETIME|NONE|power_smoothing|WARN|INVESTIGATE|Power-smoothing circuit low lifetime|power smoothing hardware is near its end of life
165|PSHC_ZERO_LIFETIME|NONE|power_smoothing|WARN|INVESTIGATE|Power-smoothing circuit lifetime exhausted|power smoothing hardware is at its end of life: replace where it is used
166|NVLINK_SECURE_CRYPTO_ERR|NONE|nvlink|WARN|INVESTIGATE|Encrypted-link traffic before configuration (CC mode)|confidential computing only
167|PCIE_FATAL_TIMEOUT|NONE|bus|FAIL|RESET_GPU|PCIe fatal timeout|no NVIDIA action published: treated like 158
168|REDUCED_GPU_MEMORY_CAPACITY|NONE|memory|FAIL|REBOOT|Reduced GPU memory capacity (errors in write-protected region)|seen only with ECC off: reboot and switch ECC on
169|SEC2_HALT_ERROR|NONE|gpu_hang|FAIL|RESET_GPU|Internal micro-controller halt|no NVIDIA action published: treated like 62
170|NVLINK_SECURE_OTHER|NONE|nvlink|WARN|INVESTIGATE|Secure NVLink interrupt (CC mode)|confidential computing only
171|UNCORRECTABLE_DRAM_ERROR|NONE|memory|FAIL|RESET_GPU|DRAM detail for Xid 48|DRAM detail of 48
172|UNCORRECTABLE_SRAM_ERROR|NONE|memory|FAIL|RESET_GPU|SRAM detail for Xid 48|SRAM detail of 48: replace when the SRAM threshold is exceeded
173|C2C_FATAL_LINK_FAILURE|NONE|c2c|FAIL|RESET_GPU|C2C fatal link failure|no NVIDIA action published
174|ROBUST_CHANNEL_RESETCHANNEL_KILL_PROCESS_SILENT|NONE|application|INFO|NONE|Channel reset with silent process kill|
175|MEMORY_SUBSYSTEM_ERROR|NONE|memory|FAIL|RESET_GPU|Memory subsystem error|no NVIDIA action published; the driver itself marks the GPU for reset (kernel_gsp.c, 595.45.04)
176|PCIE_CORRECTABLE_ERROR_FAULT|NONE|bus|INFO|NONE|PCIe correctable error|
"""
