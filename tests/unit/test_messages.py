"""Every message of tests/messages/data, behind every head, has the answer that its class wants."""

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


@pytest.mark.parametrize("change", ['class: "fine"', 'check: "nothing_known"', 'reason: ""', 'colour: "red"'])
def test_a_message_that_cannot_be_understood_is_refused(tmp_path, change):
    given = {"sample": "x", "class": "nothing", "check": "kernel_errors", "reason": "y"}
    key, _, value = change.partition(": ")
    given[key] = value.strip('"')
    path = tmp_path / "x.yml"
    listed = ", ".join(f'{name}: "{text}"' for name, text in given.items())
    path.write_text(f"tool: x\nversion: 1\nsource: y\nfile: kernel.log\nmessages:\n  - {{{listed}}}\n")
    with pytest.raises(SettingsError):
        catalogue.load(path)


def _samples(tmp_path, template):
    path = tmp_path / "x.yml"
    one = f'{{sample: "{template}", class: nothing, check: kernel_errors, reason: "y"}}'
    path.write_text(f"tool: x\nversion: 1\nsource: y\nfile: kernel.log\nmessages:\n  - {one}\n")
    return [message.sample for message in catalogue.load(path)]


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("ena {pci}: didn't turn {on | off}", ["ena {pci}: didn't turn on", "ena {pci}: didn't turn off"]),
        ("{a | b} of {c|\n      d {n}}!", ["a of c!", "a of d {n}!", "b of c!", "b of d {n}!"]),
        ("{ 7} {(a|b}", ["{ 7} (a", "{ 7} b"]),
        ("{ 7} (a|b)", ["{ 7} (a|b)"]),
    ],
)
def test_a_template_stands_for_each_of_its_messages(tmp_path, template, wanted):
    assert _samples(tmp_path, template) == wanted


@pytest.mark.parametrize("template", ["a {b | c", "a {b | {c | d} e | f", "{a | b} {a | a}"])
def test_a_template_that_is_not_closed_or_says_a_message_twice_is_refused(tmp_path, template):
    with pytest.raises(SettingsError):
        _samples(tmp_path, template)
