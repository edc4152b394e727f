"""Which finding explains which: data and a pure reading of it, that never folds what names another part."""

import itertools
import time

import pytest

from flightline.fleet import causes
from flightline.fleet.cause_table import CAUSES
from flightline.fleet.checks import FLEET_CHECKS
from flightline.fleet.remedies import advice, how
from flightline_node.judge.checks import CHECKS
from flightline_node.model import Remedy, Status
from tests.unit.made import finding

LOST = {"pci": "0000:86:00.0"}
HUNG = "silent.nvidia_smi"
"""Of a check whose input nvidia-smi -q -x did not give within its time."""


def fail(check, reason, remedy="REBOOT", **rest):
    return finding(check, "FAIL", reason=reason, remedy=remedy, **rest)


def unknown(check, reason, **rest):
    return finding(check, "UNKNOWN", reason=reason, remedy="INVESTIGATE", **rest)


def off_bus():
    """The findings of a node that lost one of eight GPUs."""
    return [
        fail("gpu_count", "too_few", measured=7, expected=8),
        fail("gpu_lost", "lost", device=LOST, message="nvidia-smi: a GPU is lost"),
        fail("gpu_lost", "off_bus", device=LOST),
        fail("gpu_lost", "fewer_answer", measured=7, expected=8),
        fail("xid", "xid.79", device={"pci": "0000:86:00", "uuid": "GPU-1"}),
        unknown("nvlink_links", "said.lost", evidence=["Unable to determine the device handle for GPU3: 0000:86:00.0: Unknown"]),
        unknown("nvlink_links", "status_missing", measured=7, expected=8),
        unknown("gpu_topology", "pairs_unread", measured="21 x NV18, 7 x ERR!", expected="28 pairs"),
        unknown("dcgm_diag", "untested", measured=7, expected=8),
        fail("dcgm_diag", "failed.lost", device={"pci": "00000000:86:00.0", "index": 3}),
        fail("pci_devices", "off_bus", device=LOST),
    ]  # fmt: skip


def roots(findings):
    return [(one.root["check"], one.cause, len(one.explained)) for one in causes.troubles(findings)]


def test_a_gpu_off_the_bus_explains_its_count_links_topology_xid_and_dcgm():
    assert roots(off_bus()) == [("gpu_lost", "gpu_off_bus", 10)]


def test_the_order_of_the_findings_does_not_matter():
    assert roots(off_bus()[::-1]) == [("gpu_lost", "gpu_off_bus", 10)]


@pytest.mark.parametrize(
    "other",
    [
        fail("gpu_lost", "lost", device={"index": 5, "pci": "00000000:A8:00.0"}),
        fail("xid", "xid.79", device={"pci": "0000:a8:00.0"}),
        unknown("nvlink_links", "said.lost", evidence=["Unable to determine the device handle for GPU5: 0000:a8:00.0: Error"]),
        fail("pci_devices", "off_bus", device={"pci": "0000:a8:00.0"}),
        fail("recovery_action", "asked", "RESET_GPU", device={"index": 5}),
        fail("dcgm_diag", "failed.lost", device={"index": 5}),
    ],
)  # fmt: skip
def test_a_finding_that_names_another_gpu_is_never_folded(other):
    found = causes.troubles([*off_bus(), other])
    assert all(other is not one for trouble in found if trouble.root["device"] == LOST for one in trouble.explained)
    assert any(trouble.root is other for trouble in found)


def test_more_missing_than_the_cause_accounts_for_stands_alone():
    findings = [
        fail("gpu_lost", "lost", device=LOST),
        fail("gpu_count", "too_few", measured=6, expected=8),
        unknown("gpu_topology", "pairs_unread", measured="15 x NV18", expected="28 pairs"),
    ]
    assert sorted(roots(findings)) == [("gpu_count", "", 0), ("gpu_lost", "gpu_off_bus", 0), ("gpu_topology", "", 0)]
    second = fail("gpu_lost", "lost", device={"pci": "0000:97:00.0"})
    assert sorted(roots([*findings, second])) == [("gpu_lost", "gpu_off_bus", 0), ("gpu_lost", "gpu_off_bus", 2)]


def test_a_hung_tool_explains_what_it_left_unknown_and_nothing_else():
    findings = [unknown(check, HUNG) for check in ("gpu_count", "row_remap")]
    findings += [unknown("gpu_topology", "silent.nvidia_smi_topo")]
    findings += [unknown("xid", "unreadable.kernel_log"), fail("disk_space", "full")]
    assert roots(findings) == [("disk_space", "", 0), ("gpu_count", "smi_silent", 2), ("xid", "", 0)]
    stuck = fail("stuck_processes", "stuck.nvidia_smi", device={"name": "nvidia-smi"})
    assert roots([*findings, stuck])[0] == ("stuck_processes", "smi_silent", 3)


def test_what_one_output_leaves_unknown_is_one_trouble():
    said = "unreadable.kernel_log"
    assert roots([unknown(check, said) for check in ("xid", "sxid", "pcie_aer")]) == [("xid", "not_measured", 2)]
    doubted = [unknown(check, "not_trusted.kernel_log", message=f"it printed: {check}") for check in ("xid", "sxid")]
    assert roots(doubted) == [("xid", "not_measured", 1)]
    named = [unknown("ecc_mode", "value_unread", device={"index": n}) for n in (1, 2)]
    assert len(roots(named)) == 2, "two devices are two troubles"


@pytest.mark.parametrize("remedy", ["REPLACE", "CONTACT_SUPPORT"])
def test_a_finding_that_asks_for_more_than_its_cause_stands_alone(remedy):
    gpu = {"index": 3, "pci": "00000000:86:00.0"}
    findings = [
        fail("row_remap", "pending", "RESET_GPU", device=gpu),
        fail("ecc_uncorrected", "errors", "RESET_GPU", device=gpu),
        fail("dcgm_diag", "failed.memory", remedy, device=gpu),
    ]
    assert roots(findings) == [("dcgm_diag", "", 0), ("row_remap", "gpu_memory", 1)]


def test_the_driver_s_own_trouble_explains_all_that_it_hides():
    findings = [
        fail("gpu_lost", "driver_mismatch"),
        fail("gpu_lost", "fewer_answer", measured=0, expected=8),
        unknown("gpu_count", "not_listed"),
        *(unknown(check, "no_gpu_listed") for check in ("row_remap", "ecc_mode")),
        unknown("nvlink_links", "said.driver_not_loaded"),
        fail("nvme", "too_few", "REPLACE"),
    ]
    assert roots(findings) == [("nvme", "", 0), ("gpu_lost", "driver_mismatch", 5)]


def test_a_wrong_instance_type_takes_the_ground_from_what_was_expected_of_it():
    findings = [
        fail("instance_identity", "other.instance_type", "FIX_CONFIG"),
        fail("memory", "too_little", "REPLACE"),
        fail("row_remap", "failed", "REPLACE", device={"index": 3}),
    ]
    assert roots(findings) == [("row_remap", "gpu_memory", 0), ("instance_identity", "wrong_instance_type", 1)]


def test_nothing_is_lost_or_told_twice():
    kinds = [
        *off_bus(),
        *(unknown(check, HUNG) for check in CHECKS),
        fail("disk_space", "full"),
        finding("cpu", "WARN"),
    ]
    for size in (1, 2, 3):
        for some in itertools.islice(itertools.combinations(kinds, size), 4000):
            found = causes.troubles(some)
            told = [id(one) for trouble in found for one in (trouble.root, *trouble.explained)]
            assert sorted(told) == sorted(id(one) for one in some if one["status"] != "WARN")


def test_what_is_explained_says_by_what():
    findings = off_bus()
    causes.annotate(causes.troubles(findings))
    marked = [one for one in findings if causes.EXPLAINED in one]
    assert len(marked) == 10
    assert marked[0][causes.EXPLAINED] == {
        "cause": "gpu_off_bus", "check": "gpu_lost", "message": "nvidia-smi: a GPU is lost",
    }  # fmt: skip


def test_a_neuron_driver_that_is_not_loaded_explains_what_needs_a_device():
    findings = [
        fail("kernel_modules", "not_loaded.neuron", device={"name": "neuron"}),
        fail("neuron_driver", "not_loaded"),
        fail("neuron_devices", "none_listed"),
        unknown("neuron_ecc", "no_value"),
        unknown("neuron_errors", "monitor_failed"),
        fail("nvme", "too_few"),
    ]
    assert sorted(roots(findings)) == [("neuron_driver", "neuron_driver_missing", 4), ("nvme", "", 0)]


def test_a_hung_neuron_ls_explains_what_it_kept_from_running():
    hung = "silent.neuron_ls"
    idle = "not_run.neuron_ls"
    findings = [unknown("neuron_devices", hung), unknown("neuron_cores", hung), unknown("fs_io", idle)]
    assert roots(findings) == [("neuron_devices", "neuron_ls_silent", 2)]


def test_a_neuron_device_with_memory_errors_explains_its_own_messages_only():
    findings = [
        fail("neuron_ecc", "uncorrectable", device={"name": "neuron3"}),
        fail("neuron_messages", "hardware", device={"name": "neuron3"}),
        fail("neuron_messages", "gone", device={"name": "neuron5"}),
    ]
    assert sorted(found[2] for found in roots(findings)) == [0, 1]


def test_the_table_names_checks_that_exist():
    named = {
        check for cause in CAUSES for says in (*cause.roots, *(e.says for e in cause.effects)) for check in says.checks
    }
    assert named <= {*CHECKS, *FLEET_CHECKS}
    assert len({cause.id for cause in CAUSES}) == len(CAUSES)


def test_long_messages_and_many_findings_take_no_time():
    long = [unknown("xid", "x", message="a" * 5_000_000), fail("sxid", "x", evidence=["0:" * 2_500_000])]
    many = [unknown(f"check{n}", "x", device={"pci": f"0000:{n % 256:02x}:00.0"}) for n in range(1000)]
    started = time.process_time()
    assert len(causes.troubles([*long, *many])) == 1002
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("remedy", "first"),
    [("REPLACE", "replace"), ("REBOOT", "reboot"), ("RESET_GPU", "reset"), ("CONTACT_SUPPORT", "open a case")],
)
def test_what_to_do_follows_from_the_remedy_s_word(remedy, first):
    others = {"replace", "reboot", "reset", "open a case"} - {first}
    for check in (*CHECKS, *FLEET_CHECKS):
        text = advice(check, Remedy(remedy), Status.FAIL).text.lower()
        assert first in text, check
        assert all(text.find(other) < 0 or text.find(other) > text.find(first) for other in others), check


@pytest.mark.parametrize("remedy", [Remedy.FIX_CONFIG, Remedy.UPDATE_SOFTWARE, Remedy.INVESTIGATE])
def test_soft_remedies_never_begin_with_another_s_step(remedy):
    for check in CHECKS:
        text = advice(check, remedy, Status.FAIL).text
        assert text and not text.lower().startswith(("reboot", "replace", "reset the", "do what")), check


def test_a_cause_has_its_own_words():
    assert "modprobe nvidia" in how(fail("gpu_lost", "x", "UPDATE_SOFTWARE"), "driver_not_loaded").text
    assert how(unknown("row_remap", "unreadable.x")).text.startswith("Find out why nothing was measured")
