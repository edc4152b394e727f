"""A site's settings are checked whole, with every mistake named."""

from dataclasses import fields

import pytest

from flightline.healing.site import WHAT, SitePolicy, from_environment, settings
from flightline_node.model import SettingsError


def test_every_setting_says_what_it_means():
    assert set(WHAT) == {item.name for item in fields(SitePolicy)}


def test_values_come_as_text():
    assert settings({"need": "60", "budget_percent": "5"}) == SitePolicy(need=60, budget_percent=5.0)


def test_requeueing_is_off_by_default():
    assert SitePolicy().requeue_after_min == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": 5}, "budget: no such setting"),
        ({"need": "many"}, "need: saw 'many', wanted a number"),
        ({"need": -1}, "need: saw -1"),
        ({"budget_percent": 101}, "wanted at most 100"),
        ({"window_h": "nan"}, "window_h: saw 'nan'"),
        ({"lease_s": 0}, "lease_s: saw 0, wanted more"),
    ],
)
def test_mistakes_are_named(given, said):
    with pytest.raises(SettingsError) as error:
        settings(given)
    assert said in str(error.value)


def test_all_mistakes_at_once():
    with pytest.raises(SettingsError) as error:
        settings({"need": "x", "nope": 1})
    assert len(error.value.mistakes) == 2


def test_the_environment_gives_pairs(monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_REMEDIATE", "need=4, window_h=24")
    assert settings(from_environment()) == SitePolicy(need=4, window_h=24)
