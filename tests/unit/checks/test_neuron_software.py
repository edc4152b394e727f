"""neuron_software: the pairs that the release notes name, libraries of different releases, and hosts without any."""

from tests.harness import BROKEN

from .neurons import TRN1, node
from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(driver, runtime, collectives):
    names = {"aws-neuronx-runtime-lib": runtime, "aws-neuronx-collectives": collectives}
    facts = node(neuron_packages={"packages": {name: version for name, version in names.items() if version}})
    facts["neuron_sysfs"]["driver"] = driver
    return judging("neuron_software", facts, TRN1)


test_neuron_software = table(
    *(row("pairs", judge(driver, runtime, collectives), wanted)
        for driver, runtime, collectives, wanted in [
            ("2.24.7.0", "2.28.23.0-dd58", "2.28.27.0-bc30", PASS),
            ("2.29.1.0", "2.33.4.0", "2.33.4.0", PASS),
            ("2.29.1.0", "2.32.31.0", "2.32.28.0", FAIL),
            ("2.26.10.0", "2.32.31.0", "2.32.28.0", FAIL),
            ("2.27.4.0", "2.32.31.0", "2.32.28.0", PASS),
            ("2.26.10.0", "2.31.24.0", "2.31.24.0", PASS),
            ("2.30.2", "2.34.10", "2.31.24.0", WARN),
            ("2.21.37.0", "2.27.23.0", "2.25.65.0", PASS),
            ("2.24.7.0", None, "2.28.27.0", PASS),
            ("2.24.7.0", None, None, SKIP),
            (None, "2.28.23.0", None, PASS),
        ]),
    row("a failure names both", judge("2.29.1.0", "2.31.24.0", None), FAIL, measured="2.31.24.0",
        expected="2.33 or later", says="driver 2.29.1.0"),
    row("a package list that cannot be read is unknown", judging("neuron_software", node(neuron_packages=BROKEN), TRN1),
        UNKNOWN),
    row("what the host has and lacks is said", judge("2.24.7.0", "2.28.23.0", "2.28.27.0"), PASS,
        message="driver 2.24.7.0, runtime 2.28.23.0, collectives 2.28.27.0"),
    row("what the host has and lacks is said", judge("2.24.7.0", None, "2.28.27.0"), PASS,
        message="driver 2.24.7.0, collectives 2.28.27.0; not on the host: runtime"),
)  # fmt: skip
