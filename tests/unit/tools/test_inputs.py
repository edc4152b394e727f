"""What Ansible wants as text is what the list of inputs says."""

import yaml

from flightline_node.inputs import ARGUMENTS, INPUTS
from tools import inputs
from tools.generated import ROOT


def test_every_block_is_as_the_list_says():
    assert inputs.old() == {}, "run: python -m tools.inputs"


def test_the_module_s_documentation_has_every_argument_as_it_is():
    source = (ROOT / "library/flightline_node.py").read_text()
    text = source.partition('DOCUMENTATION = r"""')[2].partition('"""')[0]
    options = yaml.safe_load(text)["options"]
    assert {
        name: {k: v for k, v in entry.items() if k != "description"} for name, entry in options.items()
    } == ARGUMENTS


def test_a_file_without_its_block_is_said(tmp_path):
    for name in inputs.BLOCKS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("nothing\n")
    try:
        inputs.old(tmp_path)
    except ValueError as error:
        assert "wanted one block" in str(error)
    else:
        raise AssertionError("nothing was said")


def test_what_is_stored_can_be_read_from_json():
    assert {one.kind for one in INPUTS if one.stored} <= {"str", "list", "dict"}
