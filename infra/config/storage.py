"""FSx for Lustre, S3 Express, and whether data outlives the stack."""

import re
from dataclasses import replace

from infra.config.model import NO_EXPORT, OWN_BUCKET, FsxSettings, NodesSettings, StorageSettings
from infra.config.values import Values
from infra.planning import fsx
from infra.planning.instance_types import facts

NID, MOST_NIDS = r"([0-9\[\]-]{1,9}\.){3}[0-9\[\]-]{1,9}@tcp", 64
"""Source: FSx API reference, LustreRootSquashConfiguration."""


def read(values: Values, nodes: NodesSettings) -> StorageSettings:
    """The storage settings."""
    wanted = values.number("fsxSizeGib") != 0 or bool(values.text("fsxId"))
    _squash(values)
    if not wanted:
        _nothing_for_fsx(values)
    return StorageSettings(fsx=_fsx(values, nodes) if wanted else None, **values.section(StorageSettings))


def _squash(values: Values) -> None:
    given = values.items("fsxNoSquash")
    if given and not values.text("fsxRootSquash"):
        values.refuse("fsxNoSquash", "nothing, or fsxRootSquash: root is root everywhere")
    if len(given) > MOST_NIDS:
        values.refuse("fsxNoSquash", f"at most {MOST_NIDS} entries")
    for nid in given:
        if not re.fullmatch(NID, nid):
            values.refuse("fsxNoSquash", "a Lustre NID such as 10.0.101.7@tcp", nid)


def _nothing_for_fsx(values: Values) -> None:
    if values.flag("fsxEfa"):
        values.refuse("fsxEfa", "false, or a size in fsxSizeGib: there is no file system")
    for name in ("fsxDataRepository", "fsxRootSquash"):
        if values.text(name):
            values.refuse(name, "nothing, or a size in fsxSizeGib: there is no file system")
    if values.text("fsxExport") != NO_EXPORT:
        values.refuse("fsxExport", f"{NO_EXPORT}, or a size in fsxSizeGib: there is no file system")


def _fsx(values: Values, nodes: NodesSettings) -> FsxSettings:
    given = FsxSettings(**values.section(FsxSettings))
    if not values.refused("fsxThroughput") and not given.file_system_id:
        _size(values, given)
    if given.efa and not values.refused("gpuInstanceType", "efa"):
        if not nodes.efa:
            values.refuse("fsxEfa", f"false: the nodes ({nodes.instance_type}) have no EFA interface")
        elif not facts(nodes.instance_type).fsx_efa:
            values.refuse("fsxEfa", f"false: FSx does not serve {nodes.instance_type} over EFA")
    return replace(given, export_events=_export(values, given.data_repository))


def _export(values: Values, repository: str | None) -> tuple[str, ...]:
    choice = values.checked("fsxExport")
    if choice in fsx.EXPORT_EVENTS and choice != NO_EXPORT and repository != OWN_BUCKET:
        # A file that is written anew replaces its object; only of the stack's own bucket are old versions surely kept.
        values.refuse("fsxExport", f"{NO_EXPORT}, or fsxDataRepository {OWN_BUCKET}: no other bucket is written to")
    return fsx.EXPORT_EVENTS.get(choice, ())


def _size(values: Values, given: FsxSettings) -> None:
    size, throughput, efa = given.size_gib, given.throughput_mb_s_per_tib, given.efa
    if fsx.valid_size(size, throughput, efa):
        return
    low, high = fsx.nearest(size, throughput, efa)
    if efa and size < fsx.efa_minimum_gib(throughput):
        wanted = f"at least {low} GiB for EFA at {throughput} MB/s per TiB; the smallest sizes are {low} and {high}"
    else:
        wanted = f"a size FSx sells; the nearest are {low} and {high} GiB"
    values.refuse("fsxSizeGib", wanted)
