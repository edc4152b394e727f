"""NVLink5 Xids (144 to 150, Blackwell): what the words of the line say is to be done.

Source: NVIDIA Xid catalogue, sheet "Xid 144-150 Decode", read 2026-11. Columns: xid, unit, intrInfo of drivers
before R575 and of R575 and later (value/mask, hexadecimal), errorStatus (hexadecimal, `*` any), immediate action,
severity. XID_154_EVAL means: a following Xid 154 decides, else the application is restarted.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional

LAYOUT_2_FROM = 575
ORDER = ("IGNORE", "XID_154_EVAL", "RESET_GPU")


class Row(NamedTuple):
    """One row of the sheet for one layout of intrInfo."""

    xid: int
    units: List[str]
    value: int
    mask: int
    statuses: Optional[List[int]]
    action: str
    fatal: bool


def decode(
    xid: int,
    unit: str,
    intr_info: Optional[int],
    error_status: Optional[int],
    driver_major: Optional[int],
    fatal: Optional[bool] = None,
) -> Optional[str]:
    """The strongest action that the sheet gives, or None when no row matches.

    A row with just this errorStatus is NVIDIA's own answer; for several bits at once the sheet has none, so
    each bit is looked up and the strongest action taken. Without a driver version both layouts are tried.
    fatal: the line's own word. A row of fatal errors is not that of a line that says Nonfatal: the driver prints a
    following Xid 154 where such an error needs a reset after all.
    """
    if intr_info is None:
        return None
    layouts = (1, 2) if driver_major is None else (2,) if driver_major >= LAYOUT_2_FROM else (1,)
    rows = [row for layout in layouts for row in _rows(xid, layout) if intr_info & row.mask == row.value]
    rows = [row for row in rows if unit in row.units] or rows
    rows = [row for row in rows if fatal is not False or not row.fatal]
    status = error_status or 0
    exact = [row for row in rows if row.statuses is None or status in row.statuses]
    bits = [
        row
        for row in rows
        for wanted in row.statuses or ()
        if wanted & status == wanted and wanted & (wanted - 1) == 0 < wanted
    ]
    return max((row.action for row in exact or bits), key=ORDER.index, default=None)


def _rows(xid: int, layout: int) -> Iterator[Row]:
    for line in TABLE.splitlines():
        code, units, first, second, statuses, action, severity = line.split("|")
        if int(code) == xid:
            value, mask = (first if layout == 1 else second).split("/")
            wanted = None if statuses == "*" else [int(one, 16) for one in statuses.split(",")]
            yield Row(xid, units.split("/"), int(value, 16), int(mask, 16), wanted, action, severity == "fatal")


TABLE = """\
144|SAW_MVB|00000021/03f003ff|00000001/03f0007f|1,4,8,20|IGNORE|nonfatal
144|SAW_MVB|00000021/03f003ff|00000001/03f0007f|2,10|RESET_GPU|fatal
145|RLW_CTRL|00000062/03f003ff|00000003/03f0007f|80000000|IGNORE|nonfatal
145|RLW_REMAP|00000082/03f003ff|00000004/03f0007f|1,2,4,8,10,20|XID_154_EVAL|nonfatal
145|RLW_REMAP|00000082/03f003ff|00000004/03f0007f|40,80|RESET_GPU|fatal
145|RLW_REMAP|00000082/03f003ff|00000004/03f0007f|100,200,80000000|IGNORE|nonfatal
145|RLW_RSPCOL|000000a2/03f003ff|00000005/03f0007f|1,80000000|IGNORE|nonfatal
145|RLW_RSPCOL|000000a2/03f003ff|00000005/03f0007f|2|RESET_GPU|fatal
145|RLW_RXPIPE|000000c2/03f007ff|00000006/03f000ff|1,2,4|IGNORE|nonfatal
145|RLW_RXPIPE|000004c2/03f007ff|00000086/03f000ff|1,2,4|RESET_GPU|fatal
145|RLW_RXPIPE|000000c2/03f003ff|00000006/03f0007f|8,80000000|IGNORE|nonfatal
145|RLW_SRC_TRACK|000000e2/03f003ff|00000007/03f0007f|1,10,20|RESET_GPU|fatal
145|RLW_SRC_TRACK|000000e2/03f003ff|00000007/03f0007f|2,80000000|IGNORE|nonfatal
145|RLW_SRC_TRACK|000000e2/03f003ff|00000007/03f0007f|4,8|XID_154_EVAL|nonfatal
145|RLW_TAGSTATE|00000102/03f003ff|00000008/03f0007f|1,10000,80000000|IGNORE|nonfatal
145|RLW_TAGSTATE|00000102/03f003ff|00000008/03f0007f|2,20000,100000|RESET_GPU|fatal
146|TLW_CTRL|00000123/03f003ff|00000009/03f0007f|1,2,80000000|IGNORE|nonfatal
146|TLW_CTRL|00000123/03f003ff|00000009/03f0007f|4|RESET_GPU|fatal
146|TLW_RX/TLW_RX_PIPE0|00000143/03f003ff|0000000a/03f0007f|1,2,80000000|IGNORE|nonfatal
146|TLW_RX/TLW_RX_PIPE0|00000143/03f003ff|0000000a/03f0007f|4|RESET_GPU|fatal
146|TLW_RX/TLW_RX_PIPE1|00000143/03f003ff|0000000b/03f0007f|1,2,80000000|IGNORE|nonfatal
146|TLW_RX/TLW_RX_PIPE1|00000143/03f003ff|0000000b/03f0007f|4|RESET_GPU|fatal
146|TLW_TX/TLW_TX_PIPE0|00000163/03f003ff|0000000c/03f0007f|1,2,80000000|IGNORE|nonfatal
146|TLW_TX/TLW_TX_PIPE0|00000163/03f003ff|0000000c/03f0007f|4|RESET_GPU|fatal
146|TLW_TX/TLW_TX_PIPE1|00000163/03f003ff|0000000d/03f0007f|1,2,80000000|IGNORE|nonfatal
146|TLW_TX/TLW_TX_PIPE1|00000163/03f003ff|0000000d/03f0007f|4|RESET_GPU|fatal
147|TREX|00000184/03f003ff|0000000e/03f0007f|1,80000000|IGNORE|nonfatal
148|NVLPW_CTRL/NVLPW|00000005/03f003ff|0000000f/03f0007f|80000000|IGNORE|nonfatal
149|NETIR/NETIR_INT|00000006/03f003ff|00000018/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|000001c6/03f003ff|00000011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|001001c6/03f003ff|00100011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|002001c6/03f003ff|00200011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|004001c6/03f003ff|00400011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|00a001c6/03f003ff|00a00011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|00f001c6/03f003ff|00f00011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|010001c6/03f003ff|01000011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|011001c6/03f003ff|01100011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|012001c6/03f003ff|01200011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|015001c6/03f003ff|01500011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|016001c6/03f003ff|01600011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|020001c6/03f003ff|02000011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|021001c6/03f003ff|02100011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|022001c6/03f003ff|02200011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|023001c6/03f003ff|02300011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|024001c6/03f003ff|02400011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|025001c6/03f003ff|02500011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|026001c6/03f003ff|02600011/03f0007f|*|IGNORE|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|028001c6/03f003ff|02800011/03f0007f|*|IGNORE|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|02a001c6/03f003ff|02a00011/03f0007f|*|RESET_GPU|fatal
149|NETIR_LINK_EVT/NETIR_LINK_DOWN|02b001c6/03f003ff|02b00011/03f0007f|*|RESET_GPU|fatal
149|NETIR_BER_EVENT|00000226/03f003ff|00000013/03f0007f|0,1,2,3|IGNORE|nonfatal
149|NETIR_MFDE_EVENT|00000246/03f003ff|00000014/03f0007f|1,4,5,7|RESET_GPU|fatal
149|NETIR_MFDE_EVENT|00000246/03f003ff|00000014/03f0007f|3|IGNORE|nonfatal
150|MSE Degraded|00000000/03f003ff|00000000/03f0007f|0,ffffffff|RESET_GPU|fatal
150|MSE_WATCHDOG|00000000/03f003ff|00000000/03f0007f|0|RESET_GPU|fatal
"""
