"""Every message of tests/messages/data, behind every head, has the answer that its class wants."""

import json

import pytest

from flightline_node.model import SettingsError
from tests.messages import catalogue, heads


@pytest.mark.parametrize("path", catalogue.files(), ids=lambda path: path.stem)
def test_every_message_has_its_answer(path):
    assert not list(catalogue.trouble(path))


def test_every_file_has_heads_and_every_head_takes_a_line():
    for path in catalogue.files():
        for message in catalogue.load(path)[:1]:
            for head in (*heads.HEADS[message.file], *heads.UNCLEAR.get(message.file, ())):
                assert message.log(head).count("\n") >= 2 - (message.file not in heads.OPENING)


def test_a_message_with_the_wrong_class_is_found():
    ena = catalogue.load(catalogue.DATA / "ena.yml")
    good = next(one for one in ena if one.cls == "condemns" and "Can not reset" in one.sample)
    head = heads.KERNEL[0]
    assert not catalogue.wrong(good, catalogue.judge([good], head))
    for cls in ("degrades", "job", "nothing"):
        bad = catalogue.Message(good.tool, good.file, good.instance_type, good.sample, cls, good.check, "x")
        assert "is " + cls in catalogue.wrong(bad, catalogue.judge([bad], head))


def _loaded(tmp_path, **given):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yml"
    document = {"tool": "x", "version": "1", "source": "y", "file": "kernel.log", "check": "kernel_errors"}
    path.write_text(json.dumps({**document, "status": {"condemns": "FAIL"}, "messages": [{"sample": "x", **given}]}))
    return catalogue.load(path)


def test_a_message_has_the_files_check_and_status_or_its_own(tmp_path):
    (message,) = _loaded(tmp_path, condemns="y")
    assert (message.cls, message.reason, message.check, message.status) == ("condemns", "y", "kernel_errors", "FAIL")
    (message,) = _loaded(tmp_path, condemns="y", check="xid", status="WARN")
    assert (message.check, message.status) == ("xid", "WARN")
    (message,) = _loaded(tmp_path, nothing="y")
    assert message.status == ""


@pytest.mark.parametrize(
    "given",
    [{"fine": "y"}, {}, {"nothing": ""}, {"nothing": "y", "job": "y"},
     {"nothing": "y", "check": "nothing_known"}, {"nothing": "y", "colour": "red"}],
)  # fmt: skip
def test_a_message_that_cannot_be_understood_is_refused(tmp_path, given):
    with pytest.raises(SettingsError):
        _loaded(tmp_path, **given)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("ena {pci}: didn't turn {on | off}", ["ena {pci}: didn't turn on", "ena {pci}: didn't turn off"]),
        ("{a | b} of {c|   d {n}}!", ["a of c!", "a of d {n}!", "b of c!", "b of d {n}!"]),
        ("{ 7} {(a|b}", ["{ 7} (a", "{ 7} b"]),
        ("{ 7} (a|b)", ["{ 7} (a|b)"]),
    ],
)
def test_a_template_stands_for_each_of_its_messages(tmp_path, template, wanted):
    assert [message.sample for message in _loaded(tmp_path, sample=template, nothing="y")] == wanted


def test_each_code_is_a_message_with_the_text_that_is_given_with_it(tmp_path):
    said = [one.sample for one in _loaded(tmp_path, sample="{code}: {text} {pci}", codes={3: "x", 4: "y"}, job="z")]
    assert said == ["3: x {pci}", "4: y {pci}"]
    assert [one.sample for one in _loaded(tmp_path, sample="Xid {code}", codes=[46, 48], job="z")] == [
        "Xid 46",
        "Xid 48",
    ]


@pytest.mark.parametrize("template", ["a {b | c", "a {b | {c | d} e | f", "{a | b} {a | a}"])
def test_a_template_that_is_not_closed_or_says_a_message_twice_is_refused(tmp_path, template):
    with pytest.raises(SettingsError):
        _loaded(tmp_path, sample=template, nothing="y")
