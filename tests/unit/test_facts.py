"""The measure of facts (tests/corpus/facts.py): what is read alike agrees, whatever else is said does not."""

import json

import pytest

from tests.corpus.facts import compare, main
from tests.harness import sample

SMI = {"text": sample("nvidia_smi/h100-550-faulty.txt").decode(), "kind": "nvidia-smi -q"}
XID = {"text": "[1.0] NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus."}
LINKS = {
    "text": "GPU 1: H100 (UUID: GPU-1)\n\t Link 0: 26.5 GB/s\n\t Link 4: <inactive>\n",
    "kind": "nvidia-smi nvlink -s",
}


@pytest.mark.parametrize(
    ("item", "facts", "wanted"),
    [
        (XID, {"xid": [[79, "0000:5d:00"]]}, True),
        (XID, {"Xids": [{"code": 79, "device": "5d:00.0"}], "xid": 79, "fallen_off_bus": ["0000:5D:00"]}, True),
        (XID, {"xid": [[79, "0000:5e:00"]]}, False),
        (SMI, {"gpus": 2, "driver": "550.127.05", "ecc_uncorrected": {"GPU 1": 6}, "ecc-corrected": {"GPU 1": 11}}, True),
        (SMI, {"remapped_rows_pending": ["GPU 1"], "remapped_rows": {"GPU 1": {"uncorrectable": 5, "pending": "Yes"}}}, True),
        (SMI, {"gpus": 8}, False),
        (SMI, {"driver": "550.127.5"}, False),
        (SMI, {"remapped_rows_pending": ["GPU 0"]}, False),
        (SMI, {"remapped_rows_pending": []}, False),
        (LINKS, {"nvlink_inactive": [["GPU 1", 4]]}, True),
        (LINKS, {"nvlink_inactive": ["GPU 1 link 4"], "nvlink_links": {"GPU 1": 1}}, True),
        (LINKS, {"nvlink_inactive": {"GPU 1": [0]}}, False),
        (LINKS, {"colour": "green"}, None),
        (LINKS, [{"fact": "nvlink_inactive", "value": 4, "device": "GPU 1"}], True),
    ],
)  # fmt: skip
def test_a_fact_agrees_by_its_value_alone(item, facts, wanted):
    assert {agrees for _, _, agrees in compare({**item, "facts": facts})} == {wanted}


def test_the_share_is_told_and_unknown_keys_do_not_count(tmp_path, capsys):
    lines = [{**XID, "facts": {"xid": 79, "colour": "green"}}, {**XID, "id": "b", "facts": {"xid": 74}}]
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main([str(tmp_path / "facts.jsonl")]) == 1
    said = capsys.readouterr().out
    assert "b: xid: 74" in said and "colour 1" in said and "1 of 2 facts read alike (50.0%)" in said
