# SPDX-License-Identifier: Apache-2.0
"""The contract of action types, as tests that any project can run on its own types.

In a test module, with pytest::

    from applier.testing.actions import ActionContract

    @pytest.fixture
    def action():
        return MyAction

    class TestMyAction(ActionContract):
        def make_context(self, folder):
            return ActionContext(cloud=my_cloud, output=print)

The tests use the ``examples`` of the action's schema. ``execute`` is called with a stop signal that
is already set, so that an action which obeys it does not begin.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import copy
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema

from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext, ActionPlugin, Verified
from applier.errors import ActionFailed, AlreadyDone
from applier.plugin_options import of_action_type
from planner.model import JOIN, Effect, Touch
from planner.states import Outcome

#: Seconds in which an action must end once its stop signal is set.
SOON_S = 5.0
#: Values of unchecked documents: each replaces each parameter in turn.
ODDITIES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    math.nan,
    "",
    " ",
    "a\n\x1b[2Jb",
    [],
    [1],
    {},
    {"a": 1},
)


def default_options(action: type[ActionPlugin]) -> dict[str, Any]:
    """Return what ``context.options`` holds where nothing is configured."""
    return {option.dest: option.default for option in action.OPTIONS}


class ActionContract:
    """Tests of the action type that the fixture ``action`` returns."""

    def make_context(self, folder: Path) -> ActionContext:
        """Return the context of the action; by default with a simulated cloud in ``folder``."""
        cloud = SimulatedCloud(folder / "cloud.json")
        return ActionContext(cloud=lambda: cloud, output=lambda _: None)

    def _context(self, action: type[ActionPlugin], folder: Path) -> ActionContext:
        """Add the defaults of the action's options to what :meth:`make_context` returns."""
        context = self.make_context(folder)
        return replace(context, options={**default_options(action), **context.options})

    def test_its_type_is_a_plain_word(self, action: type[ActionPlugin]) -> None:
        """Documents, options and tokens use the type; ``join`` is reserved for the engine."""
        assert re.fullmatch(r"[a-z][a-z0-9_]*", action.TYPE), f"{action.TYPE!r} is no plain word"
        assert action.TYPE != JOIN, f"{JOIN!r} is no plugin's type"

    def test_it_says_what_it_does(self, action: type[ActionPlugin]) -> None:
        """The documentation and ``action type show`` print the docstring."""
        assert (action.__doc__ or "").strip(), f"{action.__name__} has no docstring"
        assert action.__doc__ != ActionPlugin.__doc__, (
            f"{action.__name__} has no docstring of its own"
        )

    def test_it_says_whether_running_it_twice_does_harm(self, action: type[ActionPlugin]) -> None:
        """After a crash RERUN_SAFE decides whether an operator must confirm a second run."""
        assert isinstance(action.RERUN_SAFE, bool), "RERUN_SAFE is True or False"

    def test_its_options_can_be_configured(self, action: type[ActionPlugin]) -> None:
        """They stand in the sample configuration, with help, beside those of every type."""
        for option in of_action_type(action.TYPE, action):
            assert option.help, f"option {option.name} has no help"

    def test_its_schema_is_one(self, action: type[ActionPlugin]) -> None:
        """A misspelled keyword would check nothing, so only known keywords are accepted."""
        jsonschema.Draft202012Validator.check_schema(action.SCHEMA)
        assert json.loads(json.dumps(action.SCHEMA)) == action.SCHEMA, "SCHEMA is not plain JSON"
        unknown = {key for key in _keywords(action.SCHEMA) if key not in _KEYWORDS}
        assert not unknown, f"{', '.join(sorted(unknown))}: no keyword of JSON Schema"

    def test_its_schema_refuses_unknown_parameters(self, action: type[ActionPlugin]) -> None:
        """A misspelled parameter must be refused, not ignored."""
        assert action.SCHEMA.get("type") == "object", "parameters are an object"
        assert action.SCHEMA.get("additionalProperties") is False, "unknown ones are refused"
        for example in _examples(action):
            with_more = {**example, "no_such_parameter": 1}
            assert not _fits(action, with_more), f"{with_more} is accepted"

    def test_its_examples_satisfy_its_schema(self, action: type[ActionPlugin]) -> None:
        """Users copy the examples, so they must be valid."""
        for example in _examples(action):
            errors = [e.message for e in _validator(action).iter_errors(example)]
            assert not errors, f"example {example}: {'; '.join(errors)}"

    def test_planning_with_it_is_pure(self, action: type[ActionPlugin]) -> None:
        """Equal parameters produce equal touches, estimate and description, and are not changed."""
        for example in _examples(action):
            before = copy.deepcopy(example)
            assert _plan(action, example) == _plan(action, example), (
                f"{example}: not the same twice"
            )
            assert example == before, f"{example}: parameters were changed"

    def test_planning_with_it_survives_parameters_that_nobody_checked(
        self, action: type[ActionPlugin]
    ) -> None:
        """Planning must not fail on parameters that do not match the schema."""
        _plan(action, {})
        for example in _examples(action):
            for odd in _odd(action, example):
                _plan(action, odd)

    def test_its_precheck_refuses_with_a_sentence(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """A precheck returns, or raises AlreadyDone or ActionFailed with the reason."""
        for example in _examples(action):
            said = "nothing against it"
            try:
                action(example, self._context(action, tmp_path)).precheck()
            except (AlreadyDone, ActionFailed) as refusal:
                said = str(refusal)
            assert said.strip(), f"{example}: the refusal says nothing"

    def test_looking_whether_it_is_done_gives_an_answer(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """After a crash verify is called first: it returns the same answer twice."""
        for example in _examples(action):
            work = action(example, self._context(action, tmp_path))
            found = work.verify()
            assert isinstance(found, Verified), f"{example}: verified as {found!r}"
            assert work.verify() is found, f"{example}: looking changed the answer"

    def test_an_abort_that_comes_at_any_time_does_no_harm(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """An abort may come before the work begins and after it has ended."""
        for example in _examples(action):
            action(example, self._context(action, tmp_path)).abort()

    def test_what_cannot_be_undone_says_so(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """A type that is not REVERTIBLE raises ActionFailed with a sentence; others can revert."""
        assert isinstance(action.REVERTIBLE, bool), "REVERTIBLE is True or False"
        stop = threading.Event()
        stop.set()
        for example in _examples(action):
            work = action(example, self._context(action, tmp_path))
            ends: list[object] = []
            _note_end(lambda: work.revert(stop), ends)  # noqa: B023 - called at once
            (end,) = ends
            if not action.REVERTIBLE:
                assert isinstance(end, ActionFailed), f"{example}: reverted with {end!r}"
            assert isinstance(end, Outcome | ActionFailed), f"{example}: reverted with {end!r}"
            assert str(end).strip(), f"{example}: the refusal says nothing"

    def test_an_action_that_only_waits_says_for_how_long(self, action: type[ActionPlugin]) -> None:
        """It returns seconds for valid parameters, and raises nothing for invalid ones."""
        for example in _examples(action):
            seconds = action.waits_s(example)
            fits = seconds is None or (isinstance(seconds, int | float) and 0 <= seconds < math.inf)
            assert fits, f"{example}: waits {seconds!r}"
            for odd in _odd(action, example):
                action.waits_s(odd)

    def test_a_stop_that_is_set_ends_it_soon(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """Once the stop is set it raises ActionFailed with a sentence, or returns an outcome."""
        for example in _examples(action):
            ends: list[object] = []
            work = action(example, self._context(action, tmp_path))
            thread = threading.Thread(target=_execute, args=(work, ends), daemon=True)
            thread.start()
            thread.join(SOON_S)
            assert ends, f"{example}: still runs {SOON_S:g} s after its stop was set"
            end = ends[0]
            assert isinstance(end, Outcome | ActionFailed), f"{example}: ended with {end!r}"
            assert str(end).strip(), f"{example}: the failure says nothing"


def _execute(work: ActionPlugin, ends: list[object]) -> None:
    stop = threading.Event()
    stop.set()
    _note_end(lambda: work.execute(stop), ends)


def _note_end(call: Callable[[], object], ends: list[object]) -> None:
    try:
        ends.append(call())
    except Exception as error:
        ends.append(error)


def _plan(action: type[ActionPlugin], parameters: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what planners read of an action, after checking its shape."""
    parameters = MappingProxyType(dict(parameters))
    touches = list(action.touches(parameters))
    for touch in touches:
        assert isinstance(touch, Touch), f"{touch!r} is no Touch"
        assert touch.effect in set(Effect), f"{touch!r} has an effect that nobody knows"
        assert re.fullmatch(r"\w+:.+", touch.resource, re.DOTALL), f"{touch!r}: not KIND:ID"
    estimate = action.estimate(parameters)
    if estimate is not None:
        fits = isinstance(estimate, int | float) and 0 <= estimate < math.inf
        assert fits, f"{dict(parameters)}: estimate {estimate!r} is no number of seconds"
    words = action.describe(parameters)
    assert isinstance(words, str), f"{dict(parameters)}: described by {words!r}, not text"
    assert words.strip(), f"{dict(parameters)}: described by nothing"
    assert words.isprintable(), f"{dict(parameters)}: described by more than a line: {words!r}"
    return touches, estimate, words


def _examples(action: type[ActionPlugin]) -> list[dict[str, Any]]:
    examples = copy.deepcopy(list(action.SCHEMA.get("examples", ())))
    assert examples, f"the schema of {action.TYPE} has no examples to work on"
    return examples


def _odd(action: type[ActionPlugin], example: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in action.SCHEMA.get("properties", {}):
        yield {k: v for k, v in example.items() if k != key}
        for odd in ODDITIES:
            yield {**example, key: odd}


def _validator(action: type[ActionPlugin]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(dict(action.SCHEMA))


def _fits(action: type[ActionPlugin], parameters: Mapping[str, Any]) -> bool:
    return _validator(action).is_valid(dict(parameters))


#: Keywords whose value maps names to schemas, holds a list of schemas, or is one.
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
_KEYWORDS = frozenset((*_NAMED, *_LISTED, *_SINGLE, *_PLAIN))


def _keywords(schema: Any) -> Iterator[str]:
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
            yield from _keywords(part)
