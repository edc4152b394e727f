"""retired_pages: counts and pending retirement of Turing, nothing on later GPUs."""

from . import gpus
from .table import FAIL, INFO, PASS, REPLACE, RESET_GPU, SKIP, UNKNOWN, judging, row, table


def judge(**pages):
    facts = gpus.node(gpus.T4, 4)
    for name, value in pages.items():
        gpus.put(facts, 3, f"retired_pages.{name}", value)
    return judging("retired_pages", facts, "g4dn.12xlarge")


test_retired_pages = table(
    row("none retired", judge(), PASS, count=1),
    *(row("faults", judge(**pages), FAIL, index=3, remedy=remedy)
        for pages, remedy in (
            ({"pending": True}, RESET_GPU), ({"single_bit": 58, "double_bit": 2}, REPLACE),
            ({"pending": True, "double_bit": 60}, REPLACE),
        )),
    row("some retired is information", judge(double_bit=4), INFO, measured=4),
    *(row("unreadable is unknown", judge(**pages), UNKNOWN, index=3)
        for pages in ({"pending": "ERR!"}, {"pending": None}, {"single_bit": None}, {"double_bit": "ERR!"})),
    *(row("ampere and later have none", judging("retired_pages", facts), SKIP)
        for facts in (gpus.node(),
        gpus.every("retired_pages", {"single_bit": None, "double_bit": None, "pending": None}),
        gpus.silent("retired_pages"))),
)  # fmt: skip
