"""software_compat: minimums and pins block, combinations warn, what is not known is said."""

from flightline_node.read.parsers import versions
from tests.harness import BROKEN, only, sample

from .table import FAIL, FIX_CONFIG, INFO, PASS, SKIP, UNKNOWN, UPDATE_SOFTWARE, WARN, judging, row, table

GOOD = {
    "efa_installer": "1.44.0", "ofi_nccl": "1.17.1", "efa_driver": "2.17.3", "nvidia_module": "580.95.05",
    "nccl": ["2.28.3"],
}  # fmt: skip
DECIDED = {"name": "gpu-01", "nvidia_module": "580.95.05", "efa_installer": "1.44.0", "nccl": ["2.28.3"]}
CHANGED: list[tuple[dict[str, object], str, str]] = [
    ({"nvidia_module": "595.45.04"}, "NVIDIA driver 595.45.04", "580.95.05"),
    ({"efa_installer": "1.45.0"}, "EFA installer 1.45.0", "1.44.0"),
    ({"nccl": ["2.29.2"]}, "NCCL 2.29.2", "2.28.3"),
    ({"name": "gpu-77"}, "host name gpu-77", "gpu-01"),
]  # fmt: skip


def judge(change=(), kind="p6-b300.48xlarge", provider="203.10", **expected):
    given = {key: value for key, value in {**GOOD, **dict(change)}.items() if value}
    return judging(
        "software_compat", {"versions": given, "fi_info": {"provider_versions": [provider]}}, kind, expected=expected
    )


test_software_compat = table(
    *(row("below the types minimum", judge(change), FAIL, starts=what, remedy=UPDATE_SOFTWARE)
        for change, what in [
            ({"efa_installer": "1.43.3"}, "EFA installer"),
            ({"ofi_nccl": "1.16.3", "nccl": ["2.27.7"]}, "aws-ofi-nccl"),
        ]),
    *(row("libfabric too old for the plugin", judge(provider=provider), FAIL, measured=libfabric)
        for provider, libfabric in (("121.0", "1.21.0"), ("121.90", "1.21.9"), ("100.0", "1.0.0"))),
    *(row("libfabric too old for the plugin", judge(provider=provider), PASS, says=f"libfabric {libfabric}")
        for provider, libfabric in (("122.0", "1.22.0"), ("122", "1.22.0"), ("200.0", "2.0.0"))),
    row("libfabric too old for the plugin", judge(provider="99.0"), PASS, says="not known: libfabric"),
    row("the newest NCCL counts against minimums", judge({"nccl": ["2.15.5", "2.28.3"]}), PASS),
    row("the newest NCCL counts against minimums", judge({"nccl": ["2.15.5"]}), FAIL, measured="2.15.5"),
    # nccl 2.40.0 is newer than the table
    row("not validated", judge({"nccl": ["2.29.2"]}), WARN, says="2.28.3", all=1),
    row("not validated", judge({"nccl": ["2.27.7"]}), INFO, statuses=(INFO, PASS)),
    row("not validated", judge({"ofi_nccl": "1.99.0", "nccl": ["2.40.0"]}), PASS),
    # g5: host memory by design
    row("EFA driver without peer memory for the GPU driver", judge({"efa_driver": "2.17.2"}), WARN, measured="2.17.2",
        expected="2.17.3"),
    row("EFA driver without peer memory for the GPU driver",
        [judge({"efa_driver": "2.17.2", "nvidia_module": "570.172.08"}, "p6-b200.48xlarge"),
        judge({"efa_driver": "2.17.2"}, "g5.48xlarge")], PASS),
    row("pins", judge(efa_version="1.44", nccl_version="2.28.3"), PASS),
    row("pins", judge(efa_version="1.45.0"), FAIL, expected="1.45.0"),
    row("pins", judge(nccl_version="2.27.7"), FAIL, measured="2.28.3"),
    row("what configure decided counts", judge({"decided": DECIDED, "name": "gpu-01.site"}), PASS),
    *(row("what changed since configure", judge({"decided": DECIDED, "name": "gpu-01", **change}), FAIL, says=(seen, wanted),
        remedy=FIX_CONFIG, reason="not_decided")
        for change, seen, wanted in CHANGED),
    row("a name alone", judging("software_compat", {"versions": {"name": "gpu-77", "decided": {"name": "gpu-01"}}}), FAIL, alone=True),
    row("a type without EFA", judge({"decided": DECIDED, "name": "gpu-77"}, "g5.xlarge"), FAIL, says="host name"),
    row("a type without EFA", judge({"decided": DECIDED, "name": "gpu-01"}, "g5.xlarge"), SKIP),
    row("an adopted part has no pin", judge({"decided": {**DECIDED, "adopted": ["efa"]}}, efa_version="1.45.0"), PASS),
    row("an adopted part has no pin", judge({"decided": DECIDED}, efa_version="1.45.0"), FAIL, expected="1.45.0"),
    row("not known is said and no pass",
        judging("software_compat", {"versions": versions.parse({"versions.json": sample("versions/p5.json")})}), PASS,
        says="not known: aws-ofi-nccl"),
    row("not known is said and no pass", judging("software_compat", {"versions": {"kernel": "6.1.0"}}), SKIP,
        says="EFA installer"),
    row("not known is said and no pass", judging("software_compat", {"versions": {"kernel": "6.1.0"}}, "p4d.24xlarge"),
        SKIP),
    row("odd versions", judge({"efa_installer": "unknown", "ofi_nccl": "?", "nccl": ["x"]}, provider="x"), SKIP),
    row("not here unreadable missing", judge(kind="g4dn.xlarge"), SKIP),
    row("not here unreadable missing", judging("software_compat", {"versions": BROKEN}), UNKNOWN),
)  # fmt: skip


def test_good():
    message = only(judge(), PASS).message
    assert "libfabric 2.3.1" in message
    assert "aws-ofi-nccl 1.17.1" in message


def test_a_driver_that_does_not_know_the_gpu():
    old = only(judge({"nvidia_module": "570.172.08"}), FAIL)
    assert (old.measured, old.expected, old.remedy) == ("570.172.08", "580", UPDATE_SOFTWARE)
    given = {"versions": {**GOOD, "nvidia_module": "570.172.08"}, "nvidia_smi": {"driver_version": "570.172.08"}}
    found = judging("software_compat", given, "p6-b300.48xlarge")
    assert [f for f in found if f.status is FAIL] == []  # driver_version says it
