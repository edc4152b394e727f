"""Every module of library/ that changes hosts, case by case from the .yml files beside this one."""

import json

import pytest

from .harness import HERE, ROOT, cases, load, run_case


@pytest.mark.parametrize(("name", "case"), cases())
def test_case(name, case, tmp_path, monkeypatch):
    answer = run_case(name, case, tmp_path, monkeypatch)
    expected = case["output"]
    assert answer["failed"] is expected.get("failed", False), answer.get("msg")
    for words in expected.get("msg_has", []):
        assert words in answer["msg"]
    for words in expected.get("msg_lacks", []):
        assert words not in answer["msg"]
    if not answer["failed"]:
        assert answer["changed"] is expected["changed"]
        assert expected.get("facts", {}).items() <= answer["facts"].items()
    if "commands" in expected:
        ran = [[str(word).replace(str(tmp_path), "{root}") for word in argv] for argv in answer["commands"]]
        assert ran == expected["commands"]
    if "diff" in expected:
        assert {side: json.loads(text) for side, text in answer["diff"].items()} == expected["diff"]
    if "problems" in expected:
        assert len(answer["problems"]) == expected["problems"]
    for path, text in case.get("left", {}).items():
        file = tmp_path / path.lstrip("/")
        assert (file.read_text() if file.exists() else None) == text


MODULES = sorted(path.stem for path in HERE.glob("*.yml"))


READING = {"flightline_archive_info", "flightline_ask_info"}


@pytest.mark.parametrize("name", sorted(set(MODULES) - READING))
def test_cases_cover_check_mode_diff_change_no_change_and_failure(name):
    mine = [case.values[1] for case in cases() if case.values[0] == name]
    outputs = [case["output"] for case in mine]
    assert any(case.get("flags", {}).get("check") and case["output"].get("changed") for case in mine)
    assert any(case.get("flags", {}).get("diff") for case in mine)
    assert any(output.get("changed") is True for output in outputs)
    assert any(output.get("changed") is False for output in outputs)
    assert any(output.get("failed") for output in outputs)


@pytest.mark.parametrize("name", [*MODULES, "flightline_repair"])
def test_documented_options_are_the_arguments(name):
    import yaml

    module = load(name)
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    spec = module.ARGUMENT_SPEC
    assert set(documented) == set(spec)
    for option, given in spec.items():
        said = documented[option]
        assert said["type"] == given["type"], option
        assert said.get("default") == given.get("default"), option
        assert said.get("required", False) == given.get("required", False), option
        assert said.get("choices") == given.get("choices"), option
        assert said.get("elements") == given.get("elements"), option


@pytest.mark.parametrize("name", [*MODULES, "flightline_repair"])
def test_examples_and_return_parse_and_use_only_documented_options(name):
    import yaml

    module = load(name)
    for task in yaml.safe_load(module.EXAMPLES):
        assert set(task[name]) <= set(module.ARGUMENT_SPEC)
    for value in yaml.safe_load(module.RETURN).values():
        assert {"description", "returned", "type"} <= set(value)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "module_utils/flightline_host").rglob("*.py")), ids=lambda path: path.name
)
def test_what_runs_on_the_host_never_uses_a_shell(path):
    text = path.read_text()
    assert "shell=True" not in text
    assert "os.system" not in text
    assert "os.popen" not in text
