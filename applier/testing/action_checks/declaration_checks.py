# SPDX-License-Identifier: Apache-2.0
"""Checks of the declarations of an action type: its type, docstring, options and schema."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from applier.configuration.plugin_options import of_action_type
from applier.contracts import ActionPlugin
from applier.testing.action_checks.odd_parameters import examples_of
from planner.plan.model import JOIN

#: Keywords whose value is, in this order: a mapping to schemas, a list of schemas, one schema.
_NAMED = ("properties", "patternProperties", "$defs", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("additionalProperties", "items", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_PLAIN = (
    *("$schema", "$id", "$ref", "$anchor", "$comment", "type", "enum", "const", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minContains", "maxContains", "minProperties", "maxProperties", "required"),
    *("dependentRequired", "title", "description", "default", "examples", "deprecated"),
    *("readOnly", "writeOnly"),
)
#: All keywords of draft 2020-12 that a schema may use.
KEYWORDS = frozenset((*_NAMED, *_LISTED, *_SINGLE, *_PLAIN))


def keywords_of(schema: Any) -> Iterator[str]:
    """Yield every keyword of a schema and of the schemas inside it."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        yield key
        inside: list[Any] = []
        if key in _NAMED:
            inside = list(value.values())
        elif key in _LISTED:
            inside = list(value)
        elif key in _SINGLE:
            inside = [value]
        for part in inside:
            yield from keywords_of(part)


class DeclarationChecks:
    """Type, docstring, flags, options and schema of an action type."""

    def test_its_type_is_a_plain_word(self, action: type[ActionPlugin]) -> None:
        """``TYPE``, for documents, options and tokens, is a lower-case identifier, not ``join``."""
        assert re.fullmatch(r"[a-z][a-z0-9_]*", action.TYPE), f"{action.TYPE!r} is no plain word"
        assert action.TYPE != JOIN, f"{JOIN!r} is no plugin's type"

    def test_it_says_what_it_does(self, action: type[ActionPlugin]) -> None:
        """The class has a docstring of its own, which ``action type show`` prints."""
        assert (action.__doc__ or "").strip(), f"{action.__name__} has no docstring"
        assert action.__doc__ != ActionPlugin.__doc__, (
            f"{action.__name__} has no docstring of its own"
        )

    def test_it_says_whether_running_it_twice_does_harm(self, action: type[ActionPlugin]) -> None:
        """RERUN_SAFE and JOINS_WORK are bools; they decide whether it may run again, and when."""
        assert isinstance(action.RERUN_SAFE, bool), "RERUN_SAFE is True or False"
        assert isinstance(action.JOINS_WORK, bool), "JOINS_WORK is True or False"

    def test_it_says_whether_it_uses_the_cloud(self, action: type[ActionPlugin]) -> None:
        """USES_CLOUD is a bool; if it is true, the type runs only on the cloud of its plan."""
        assert isinstance(action.USES_CLOUD, bool), "USES_CLOUD is True or False"

    def test_its_options_can_be_configured(self, action: type[ActionPlugin]) -> None:
        """Each option has a help text, which the sample configuration shows."""
        for option in of_action_type(action.TYPE, action):
            assert option.help, f"option {option.name} has no help"

    def test_its_schema_is_one(self, action: type[ActionPlugin]) -> None:
        """``SCHEMA`` is valid, plain JSON without unknown keywords, which JSON Schema ignores."""
        jsonschema.Draft202012Validator.check_schema(action.SCHEMA)
        assert json.loads(json.dumps(action.SCHEMA)) == action.SCHEMA, "SCHEMA is not plain JSON"
        unknown = {key for key in keywords_of(action.SCHEMA) if key not in KEYWORDS}
        assert not unknown, f"{', '.join(sorted(unknown))}: no keyword of JSON Schema"

    def test_its_schema_refuses_unknown_parameters(self, action: type[ActionPlugin]) -> None:
        """A misspelled parameter must be refused, not ignored."""
        assert action.SCHEMA.get("type") == "object", "parameters are an object"
        assert action.SCHEMA.get("additionalProperties") is False, "unknown ones are refused"
        for example in examples_of(action):
            with_more = {**example, "no_such_parameter": 1}
            assert not _fits(action, with_more), f"{with_more} is accepted"

    def test_its_examples_satisfy_its_schema(self, action: type[ActionPlugin]) -> None:
        """Users copy the examples, so they must be valid."""
        for example in examples_of(action):
            errors = [e.message for e in _validator(action).iter_errors(example)]
            assert not errors, f"example {example}: {'; '.join(errors)}"


def _validator(action: type[ActionPlugin]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(dict(action.SCHEMA))


def _fits(action: type[ActionPlugin], parameters: Mapping[str, Any]) -> bool:
    return _validator(action).is_valid(dict(parameters))
