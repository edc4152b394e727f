"""The packers: asked for help they say how they are called, and make nothing."""

import sys

import pytest

from tools import collection, nodepackage


@pytest.mark.parametrize(("tool", "place"), [(collection, "OUT_DIR"), (nodepackage, "OUT.pyz")])
@pytest.mark.parametrize(
    ("words", "status"), [(["--help"], 0), (["-h"], 0), ([], 2), (["--quick"], 2), (["a", "b"], 2)]
)
def test_only_what_is_named_is_built(tool, place, words, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tool", *words])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    said = capsys.readouterr()
    assert ended.value.code == status and place in said.out + said.err
    assert list(tmp_path.iterdir()) == []
