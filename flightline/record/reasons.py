"""Reasons of the findings that the control side makes itself, by check. Those of a node's checks stand beside them."""

from __future__ import annotations

from collections.abc import Mapping

from flightline_node.model import Reason, Remedy

NO_CONNECTION = Reason("no_connection", "the host could not be reached")
NO_RESULT = Reason("no_result", "the run ended before the host answered")
HOST_LOST = Reason("host_lost", "the scheduler lost the host", Remedy.REBOOT)
NOT_JUDGED = Reason("not_judged", "the checks did not run to their end on the node")
NOT_LISTED = Reason("not_listed", "the stack has the node and the inventory lacks it")
OTHER_TIME = Reason("other_time", "the answer is of another time than its call", Remedy.FIX_CONFIG)
NAMES_LACKING = Reason("names_lacking", "accelerators were counted and not named")
NO_HOSTS = Reason("no_hosts", "the inventory selects no host", Remedy.FIX_CONFIG)
TWICE = Reason("twice", "one identity on two hosts")
DIFFERS = Reason("differs", "a version differs between nodes of a type", Remedy.UPDATE_SOFTWARE)
FAR_OFF = Reason("far_off", "a value is far from its fleet's")
UNCORRECTED_GROWN = Reason("uncorrected_grown", "uncorrectable memory errors since an earlier run", device="GPU")
CORRECTED_GROWN = Reason("corrected_grown", "many corrected memory errors since an earlier run", device="GPU")
EFA_GROWN = Reason("efa_grown", "EFA errors since an earlier run")

BLAMED = Reason("blamed", "the tests over several nodes point at it")
NOT_TESTED = Reason("not_tested", "no test over several nodes was made, or it took no part")
PROCESSES_LEFT = Reason("processes_left", "processes of the test would not end", Remedy.REBOOT)
APART = Reason("apart", "it stands apart in the network", Remedy.REPLACE)
ALL_SLOW = Reason("all_slow", "all nodes together are slow, and no node is to blame")
RECORD_LOST = Reason("record_lost", "the record of the test cannot be read")

WRONG_DATA = Reason("wrong_data", "what was read is not what was written")
NOT_MEASURED = Reason("not_measured", "the file system was not measured from it")
SLOW = Reason("slow", "a client is slow, twice")
SLOW_ONCE = Reason("slow_once", "a client is slow now and was not before")
TOTAL_LOW = Reason("total_low", "the file system gives less than it should")

BEYOND = Reason("beyond", "a measure is beyond those of the known-good nodes")
LACKING = Reason("lacking", "other nodes have a measure that this one lacks")
NOTHING_SHARED = Reason("nothing_shared", "the run measured nothing that the baseline is about")
BAD_BASELINE = Reason("bad_baseline", "the baseline cannot be used", Remedy.FIX_CONFIG)
RANK = Reason("rank", "a training job's rank on the node is to blame")

_OF_GROWTH = {"growth_ecc": (UNCORRECTED_GROWN, CORRECTED_GROWN), "growth_efa": (EFA_GROWN,)}
OF_CHECK: Mapping[str, tuple[Reason, ...]] = {
    "reachable": (NO_CONNECTION, NO_RESULT, HOST_LOST), "node": (NOT_JUDGED,), "absent": (NOT_LISTED,),
    "node_clock": (OTHER_TIME,), "node_identity": (NAMES_LACKING,), "inventory": (NO_HOSTS,),
    "duplicate_instance": (TWICE,), "duplicate_gpu": (TWICE,), "straggler": (FAR_OFF,), "training": (RANK,),
    "fabric": (BLAMED, NOT_TESTED, PROCESSES_LEFT, APART, ALL_SLOW, RECORD_LOST),
    "storage_together": (WRONG_DATA, NOT_MEASURED, SLOW, SLOW_ONCE, TOTAL_LOW),
    "baseline": (BEYOND, LACKING, NOTHING_SHARED, BAD_BASELINE), **_OF_GROWTH,
}  # fmt: skip
"""By check; the checks of versions, uniform_*, have DIFFERS."""
