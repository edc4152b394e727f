"""Are the 2 MiB huge pages that the site wants reserved?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Reason, Remedy
from ..context import Context

NOT_SHOWN = Reason("not_shown", "huge pages are not printed")
OTHER_SIZE = Reason("other_size", "the default huge page has another size", Remedy.FIX_CONFIG)
TOO_FEW = Reason("too_few", "fewer huge pages are reserved than wanted", Remedy.FIX_CONFIG)

PAGE_KIB = 2048


def evaluate(context: Context) -> Iterator[Finding]:
    """Pages reserved against the number declared; more is fine."""
    facts, wanted = context.facts("meminfo"), context.expected.hugepages_2m or 0
    total, size = facts.get("hugepages_total"), facts.get("hugepage_kib")
    if total is None or size is None:
        yield context.unknown(NOT_SHOWN, "huge pages are not printed in /proc/meminfo")
    elif size != PAGE_KIB and wanted:
        # /proc/meminfo counts pages of the default size alone.
        yield context.unknown(OTHER_SIZE, f"the default huge page is {size} KiB: 2 MiB pages are not printed")
    else:
        rest = {"measured": total, "expected": wanted, "unit": "pages of 2 MiB"}
        context.measure("hugepages_2m", total, "pages")
        if total < wanted:
            yield context.fail(TOO_FEW, f"{total} huge pages reserved, wanted {wanted}", **rest)
        else:
            yield context.ok(f"{total} huge pages reserved", **rest)


CHECK = Check(
    id="hugepages",
    order=490,
    title="Huge pages",
    what="Reserved 2 MiB huge pages, against the number the inventory declares.",
    why="The EFA provider keeps its buffers in huge pages; too few cost bandwidth, or end a job that demands them.",
    remedy="Set vm.nr_hugepages (at boot, before memory fragments) and reboot if the kernel cannot find enough.",
    out_of_service="Yes where the site declares a number; nothing is expected by default.",
    source="libfabric EFA provider documentation; Linux Documentation/admin-guide/mm/hugetlbpage.rst",
    needs=("meminfo",),
    expects=("hugepages_2m",),
    tags=("host", "mem"),
    evaluate=evaluate,
)
