"""The small JSON Schema validator agrees with the full one, and refuses what it does not know."""

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import given, settings

from flightline_host.software import jsonschema as ours

SCHEMAS = {
    "types": {"type": ["object", "null"], "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}, "required": ["a"]},
    "closed": {"type": "object", "properties": {"a": {}}, "patternProperties": {"^b": {"type": "string"}}, "additionalProperties": False},
    "open": {"properties": {"a": {"type": "boolean"}}, "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 2}},
    "lists": {"items": {"enum": [1, "a", True, None]}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
    "forms": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}, {"type": "number", "maximum": 3}]},
    "any": {"anyOf": [{"required": ["a"]}, {"type": "array"}], "not": {"required": ["b"]}},
    "all": {"allOf": [{"minProperties": 1}, {"maxProperties": 2}], "definitions": {"n": {"type": "null"}}, "properties": {"a": {"$ref": "#/definitions/n"}}},
    "text": {"pattern": "^a.", "type": "string"},
}  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(-2, 5) | st.sampled_from(["", "a", "ab", "abc", "b"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "bb", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=150, derandomize=True)
@given(value=VALUES)
def test_agrees_with_the_reference(name, value):
    reference = jsonschema.Draft4Validator(SCHEMAS[name])
    # Draft 4 as the reference reads it takes 1 for true in enumerations and in uniqueness; JSON does not.
    mixed = name == "lists" and isinstance(value, list) and any(isinstance(v, (bool, float)) for v in value)
    if not mixed:
        assert bool(ours.errors(value, SCHEMAS[name])) is not reference.is_valid(value)


def test_an_error_names_its_place():
    schema = {"properties": {"a": {"items": {"type": "string"}}}}
    assert ours.errors({"a": ["x", 3]}, schema) == ["$.a[1]: 3 is not of type string"]


def test_a_bound_is_named_with_what_was_seen():
    assert ours.errors({}, {"minProperties": 1}) == ["$: 0 keys, wanted at least 1"]
    assert ours.errors(3, {"maximum": 2}) == ["$: 3, wanted at most 2"]


@pytest.mark.parametrize("schema", [{"dependencies": {}}, {"$ref": "other.json"}, {"$ref": "#/definitions/gone"}])
def test_what_it_does_not_know_is_an_error_and_never_valid(schema):
    with pytest.raises(ours.SchemaError):
        ours.errors({}, schema)
