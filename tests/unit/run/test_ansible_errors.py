"""Ansible's own words about an inventory that it cannot read, boiled down. The outputs are shortened by hand."""

from flightline.run.ansible_errors import NO_OUTPUTS, why

TAB = """\
[WARNING]: Deprecation warnings can be disabled by setting `deprecation_warnings=False` in ansible.cfg.
[WARNING]: Failed to parse inventory with 'auto' plugin: YAML parsing failed: Tabs are usually invalid in YAML.

Failed to parse inventory with 'auto' plugin.

<<< caused by >>>

YAML parsing failed: Tabs are usually invalid in YAML.
Origin: /site/hosts.yml:3:1

1 all:
[WARNING]: Failed to parse inventory with 'ini' plugin: Failed to parse inventory: Invalid host pattern 'all:' supplied
Origin: /site/hosts.yml

[ERROR]: Completely failed to parse inventory source /site/hosts.yml
"""
NO_STACK = """\
[WARNING]: Failed to parse inventory with 'auto' plugin: The lookup plugin 'ansible.builtin.file' failed: Unable to \
access the file 'inventory/group_vars/aws_ec2/stack.json': File not found. Use -vvvvv to see paths searched.
[ERROR]: Completely failed to parse inventory source /repo/inventory/aws_ec2.yml
"""


def test_the_error_comes_first_and_the_line_of_the_mistake_is_named():
    said = why(TAB.splitlines())
    assert said.startswith("Completely failed to parse inventory source /site/hosts.yml; ")
    assert said.endswith("Tabs are usually invalid in YAML. (/site/hosts.yml:3:1)")
    assert "'ini' plugin" not in said and "Deprecation" not in said


def test_outputs_that_are_not_there_are_named_with_what_makes_them():
    assert why(NO_STACK.splitlines()) == NO_OUTPUTS and "make outputs" in NO_OUTPUTS


def test_an_error_before_ansibles_display_is_there_counts():
    text = "Ansible requires the locale encoding to be UTF-8; Detected None."
    assert why([f"ERROR: {text}"]) == text and why([]) == ""


def test_a_yaml_error_without_a_place_says_where_to_look():
    assert "group_vars" in why(["[ERROR]: YAML parsing failed: month must be in 1..12"])
