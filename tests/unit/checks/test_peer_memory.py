"""peer_memory: any way will do; none is a warning, never a block."""

from tests.harness import BROKEN

from .table import FIX_CONFIG, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

NEW, OLD = "6.12.46-66.121.amzn2023.x86_64", "5.10.240-238.959.amzn2.x86_64"


def judge(*modules, kernel=None, taint=None, p2p=None, kind="p5.48xlarge", **rest):
    ports = {"rdmap79s0": {"ports": {}, **({"p2p": p2p} if p2p else {})}}
    sysfs = {"efa_ports": ports, **({"nvidia_taint": taint} if taint is not None else {})}
    facts = {"modules": {"names": dict.fromkeys(modules, 1)}, "sysfs": sysfs}
    return judging("peer_memory", {**facts, **({"versions": {"kernel": kernel}} if kernel else {})}, kind, **rest)


test_peer_memory = table(
    *(row("module", judge("nvidia", module, kernel=OLD, taint="POE"), PASS, measured=[module])
        for module in ["efa_nv_peermem", "nvidia_peermem"]),
    row("the drivers word and dmabuf", judge("nvidia", p2p="NVIDIA"), PASS, says="EFA driver"),
    row("the drivers word and dmabuf", judge("nvidia", kernel=NEW, taint="OE", p2p="None"), PASS, says="dma-buf"),
    # gdrdrv copies small messages; it is no way for the network card.
    *(row("no way", judge("nvidia", "gdrdrv", kernel=kernel, taint=taint), WARN, remedy=FIX_CONFIG)
        for kernel, taint in [(NEW, "POE"), (OLD, "OE"), (OLD, None), (None, "POE")]),
    row("not known is no pass", [judge("nvidia", kernel=NEW), judge("nvidia", taint="OE")], INFO),
    row("not known is no pass", judge("efa"), SKIP),
    *(row("types without", judge("nvidia", kernel=OLD, kind=kind), SKIP)
        for kind in ["p3dn.24xlarge", "g5.48xlarge", "g4dn.xlarge", "trn1.32xlarge"]),
    row("without a type", judge("nvidia", kind="none"), SKIP, says="instance type"),
    row("unreadable and missing", judging("peer_memory", {"modules": BROKEN}), UNKNOWN),
    # A single-GPU type, for which nothing says that it has RDMA.
    row("a site that says there is RDMA needs no type",
        judge("nvidia", "efa_nv_peermem", kind="none", expected={"rdma_read": True}), PASS),
    row("a site that says there is RDMA needs no type",
        judge("nvidia", kernel=OLD, kind="none", expected={"rdma_read": True}), WARN),
    row("a site that says there is RDMA needs no type", judge("nvidia", kind="g5.xlarge"), SKIP, says="no RDMA read"),
)  # fmt: skip
