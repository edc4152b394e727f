"""Of every check's test file: it draws a pass, a finding and an UNKNOWN from its check."""

from pathlib import Path

import pytest

from flightline_node.judge import judgement
from flightline_node.judge.checks import CHECKS
from tests.gatekeeper import undrawn


@pytest.fixture(scope="module", autouse=True)
def answers(request):
    """Listens to every judgement of the file, and fails at its end; a part of a file may draw a part."""
    check_id, heard, original = Path(request.fspath).stem.removeprefix("test_"), set(), judgement._judge_check

    def listening(*arguments):
        findings = original(*arguments)
        heard.update(finding.status for finding in findings if finding.check == check_id)
        return findings

    judgement._judge_check = listening
    yield
    judgement._judge_check = original
    if check_id in CHECKS and not (request.config.option.keyword or "::" in " ".join(request.config.args)):
        assert undrawn(check_id, heard) == []
