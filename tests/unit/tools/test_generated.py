"""A generator says what it does when asked, and --check writes nothing."""

import pytest

from tools import catalogue, generated, inputs, registries, roledocs, stack_settings

TOOLS = [catalogue, inputs, registries, roledocs, stack_settings]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_help_has_an_example_and_a_word_too_many_is_refused(tool, capsys):
    for word, status, said in (
        ("--help", 0, "example: .venv/bin/python -m "),
        ("--nonsense", 2, "unrecognized arguments"),
    ):
        with pytest.raises(SystemExit) as ended:
            tool.main([word])
        out, err = capsys.readouterr()
        assert ended.value.code == status and said in out + err


def test_check_names_an_old_page_and_leaves_it(tmp_path, monkeypatch, capsys):
    page = tmp_path / "docs" / "checks.md"
    page.parent.mkdir()
    page.write_text("old")
    monkeypatch.setattr(catalogue, "PAGE", page)
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    assert catalogue.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/checks.md\n" and page.read_text() == "old"
