"""What images bring (tests/integration/images.yml, each with its source) meets what roles refuse and what compliance looks at."""

from pathlib import Path

import pytest
import yaml

from flightline.configure.node_software import software
from flightline_host.software.efa_matrix import Stack, conflicts
from flightline_host.version import reaches
from tests.compliance.looking import expected
from tests.compliance.looking.ask import Asked
from tests.compliance.looking.strangers import Strangers

IMAGES = yaml.safe_load((Path(__file__).parents[2] / "integration" / "images.yml").read_text())
KNOWN = yaml.safe_load(expected.SETTINGS.read_text())["compliance_known_files"]
OF_TYPES = [(name, kind) for name, image in IMAGES.items() for kind in image.get("types", [])]


@pytest.mark.parametrize(("name", "kind"), OF_TYPES)
def test_no_role_refuses_what_the_image_brings_for_its_types(name, kind):
    has, least = IMAGES[name]["versions"], software(kind)
    assert reaches(has["driver"], least["driver_minimum"] or "0")
    assert reaches(has["efa"], least["efa_installer_minimum"] or "0")
    if "ofi_nccl" in has:
        assert reaches(has["ofi_nccl"], least["ofi_nccl_minimum"] or "0")
        stack = Stack(efa_driver=None, libfabric="2.4.0", ofi_nccl=has["ofi_nccl"], nccl=None, nvidia_driver=None)
        assert list(conflicts(stack, {})) == []


@pytest.mark.parametrize("name", IMAGES)
def test_the_images_own_files_are_no_strangers_where_the_inventory_names_the_image(name):
    image = IMAGES[name]
    assert image["source"]
    named = Strangers(Asked(None), {"compliance_known_files": KNOWN, "compliance_image": name})
    unnamed = Strangers(Asked(None), {"compliance_known_files": KNOWN})
    paths = [*image.get("files", []), *image.get("edited", [])]
    assert named.unnamed(paths) == []
    assert bool(unnamed.unnamed(paths)) == name.startswith(("eks", "parallelcluster"))
