"""FSx for Lustre, S3 Express, and whether data outlives the stack."""

from __future__ import annotations

import re

from infra.config.draft import Draft
from infra.config.model import Fsx, Nodes, Storage
from infra.planning import fsx

OWN_BUCKET = "data"
NO_EXPORT = "none"
S3_URL = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s]*)?"
# FSx user guide, EFA-enabled file systems: clients on Nitro v4 or later, not Trainium2. These carry EFA v1 (Nitro v3).
NO_FSX_EFA = ("p3dn.", "p4d.", "p4de.", "g4dn.", "g5.", "trn2.", "trn2u.")


def read(draft: Draft, nodes: Nodes) -> Storage:
    """The storage settings."""
    wanted = draft.number("fsxSizeGib") != 0
    if not wanted:
        _nothing_for_fsx(draft)
    return Storage(
        fsx=_fsx(draft, nodes) if wanted else None,
        s3_express=draft.flag("s3Express"),
        keep_data=draft.flag("keepData"),
    )


def _nothing_for_fsx(draft: Draft) -> None:
    if draft.flag("fsxEfa"):
        draft.refuse("fsxEfa", "false, or a size in fsxSizeGib: there is no file system")
    if draft.text("fsxDataRepository"):
        draft.refuse("fsxDataRepository", "nothing, or a size in fsxSizeGib: there is no file system")
    if draft.text("fsxExport") != NO_EXPORT:
        draft.refuse("fsxExport", f"{NO_EXPORT}, or a size in fsxSizeGib: there is no file system")


def _fsx(draft: Draft, nodes: Nodes) -> Fsx:
    size, throughput, efa = draft.number("fsxSizeGib"), draft.number("fsxThroughput"), draft.flag("fsxEfa")
    if throughput in fsx.THROUGHPUTS_MB_S_PER_TIB:
        _size(draft, size, throughput, efa)
    else:
        choices = ", ".join(map(str, fsx.THROUGHPUTS_MB_S_PER_TIB))
        draft.refuse("fsxThroughput", f"one of {choices} MB/s per TiB")
    if efa and not draft.refused("gpuInstanceType", "efa"):
        if not nodes.efa:
            draft.refuse("fsxEfa", f"false: the nodes ({nodes.instance_type}) have no EFA interface")
        elif nodes.instance_type.startswith(NO_FSX_EFA):
            draft.refuse("fsxEfa", f"false: FSx does not serve {nodes.instance_type} over EFA")
    repository = draft.text("fsxDataRepository")
    if repository not in ("", OWN_BUCKET) and not re.fullmatch(S3_URL, repository):
        draft.refuse("fsxDataRepository", f"{OWN_BUCKET} (the stack's own bucket), s3://bucket/prefix, or nothing")
    return Fsx(size, throughput, efa, repository or None, _export(draft, repository))


def _export(draft: Draft, repository: str) -> tuple[str, ...]:
    choice = draft.one_of("fsxExport", fsx.EXPORT_EVENTS)
    if choice in fsx.EXPORT_EVENTS and choice != NO_EXPORT and repository != OWN_BUCKET:
        # A file that is written anew replaces its object; only of the stack's own bucket are old versions surely kept.
        draft.refuse("fsxExport", f"{NO_EXPORT}, or fsxDataRepository {OWN_BUCKET}: no other bucket is written to")
    return fsx.EXPORT_EVENTS.get(choice, ())


def _size(draft: Draft, size: int, throughput: int, efa: bool) -> None:
    if fsx.valid_size(size, throughput, efa):
        return
    low, high = fsx.nearest(size, throughput, efa)
    if efa and size < fsx.efa_minimum_gib(throughput):
        wanted = f"at least {low} GiB for EFA at {throughput} MB/s per TiB; the smallest sizes are {low} and {high}"
    else:
        wanted = f"a size FSx sells; the nearest are {low} and {high} GiB"
    draft.refuse("fsxSizeGib", wanted)
