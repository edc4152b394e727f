"""Where packages come from: what the stack's packageSource makes of the role that adds a vendor's repository."""

import pytest

from .render import Role, tasks

VENDOR = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
MIRROR = "https://mirror.example.internal/cuda"
KEY = "A" * 40
THERE = {"commands": {"fingerprint": {"lines": [f"fpr:::::::::{KEY}:"]}}, "differ": []}
MISSING = {"commands": {"fingerprint": {"lines": []}}, "differ": ["/etc/apt/sources.list.d/flightline-cuda.sources"]}


def refusals(source, url=VENDOR, key_url=VENDOR, found=THERE):
    """Names of the asserts that refuse."""
    given = {
        "package_repository_source": source,
        "package_repository_name": "flightline-cuda",
        "package_repository_url": url,
        "package_repository_key_url": f"{key_url}/key.asc",
        "package_repository_key_fingerprint": KEY,
        "__package_repository_found": {"facts": found},
    }
    role = Role("package_repository", "Debian 12", given)
    asserts = [one for one in tasks("package_repository") if "ansible.builtin.assert" in one and "when" in one]
    due = [one for one in asserts if role.evaluate(one["when"])]
    return [one["name"] for one in due if not role.evaluate(one["ansible.builtin.assert"]["that"])]


@pytest.mark.parametrize("found", [THERE, MISSING])
def test_from_the_internet_or_a_mirror_a_repository_is_added(found):
    assert refusals("internet", found=found) == []
    assert refusals("mirror", MIRROR, MIRROR, found) == []


@pytest.mark.parametrize(
    ("url", "key_url"), [(VENDOR, VENDOR), (MIRROR, "https://nvidia.github.io/x"), (VENDOR, MIRROR)]
)
def test_a_mirror_is_no_address_on_the_internet(url, key_url):
    assert refusals("mirror", url, key_url) == ["Assert that a mirror is inside the network"]


def test_an_image_has_the_repository_already():
    assert refusals("image") == []
    assert refusals("image", found=MISSING) == ["Assert that the image has the repository"]
