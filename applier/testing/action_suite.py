# SPDX-License-Identifier: Apache-2.0
"""The contract of action types, as tests that any project can run on its own types.

In a test module, with pytest::

    from applier.testing.action_suite import ActionContract

    @pytest.fixture
    def action():
        return MyAction

    class TestMyAction(ActionContract):
        def make_context(self, folder):
            return ActionContext(cloud=my_cloud, output=print)

The tests use the ``examples`` of the action's schema. ``execute`` is called only with a stop signal
that is already set: an action that obeys it does not begin its work.
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
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema

from applier.clouds.simulated import SimulatedCloud
from applier.configuration.plugin_options import of_action_type
from applier.contracts import ActionContext, ActionPlugin, Verified
from applier.errors import ActionFailed, AlreadyDone
from applier.machines.open_machines import OpenMachines
from planner.plan.model import JOIN, Effect, Touch
from planner.plan.states import Outcome

#: Seconds in which an action must end once its stop signal is set.
SOON_S = 5.0
#: Values that a parameter may have in a document that was not validated.
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


def examples_of(action: type[ActionPlugin]) -> list[dict[str, Any]]:
    """Return copies of the examples of a schema; raise AssertionError if it has none."""
    examples = copy.deepcopy(list(action.SCHEMA.get("examples", ())))
    assert examples, f"the schema of {action.TYPE} has no examples to work on"
    return examples


def odd_parameters(
    action: type[ActionPlugin], example: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield an example without each of its parameters, and with each odd value for each."""
    for key in action.SCHEMA.get("properties", {}):
        yield {k: v for k, v in example.items() if k != key}
        for odd in ODDITIES:
            yield {**example, key: odd}


#: The schema of schemas; what is no keyword, or one of older drafts only, is a mistake.
_STRICT = jsonschema.Draft202012Validator(
    {
        "$id": "urn:actionplan:schema",
        "$dynamicAnchor": "meta",
        "$ref": jsonschema.Draft202012Validator.META_SCHEMA["$id"],
        "properties": dict.fromkeys(("definitions", "dependencies"), False),
        "unevaluatedProperties": False,
    }
)


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
        assert json.loads(json.dumps(action.SCHEMA)) == action.SCHEMA, "SCHEMA is not plain JSON"
        wrong = [f"{e.json_path}: {e.message}" for e in _STRICT.iter_errors(action.SCHEMA)]
        assert not wrong, "\n".join(wrong)

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


class PlanningChecks:
    """Checks of the touches, the estimate, the description and the waiting time of a type."""

    def test_planning_with_it_is_pure(self, action: type[ActionPlugin]) -> None:
        """Equal parameters produce equal touches, estimate and description, and are not changed."""
        for example in examples_of(action):
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
        for example in examples_of(action):
            for odd in odd_parameters(action, example):
                _plan(action, odd)

    def test_an_action_that_only_waits_says_for_how_long(self, action: type[ActionPlugin]) -> None:
        """``waits_s`` returns seconds or None for valid parameters, and never raises an error."""
        for example in examples_of(action):
            seconds = action.waits_s(example)
            fits = seconds is None or (isinstance(seconds, int | float) and 0 <= seconds < math.inf)
            assert fits, f"{example}: waits {seconds!r}"
            for odd in odd_parameters(action, example):
                action.waits_s(odd)


def _plan(action: type[ActionPlugin], parameters: Mapping[str, Any]) -> tuple[object, ...]:
    """Return touches, estimate and description of an action, after checking their types."""
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
    for flag in (action.uses_cloud(parameters), action.works_outside(parameters)):
        assert isinstance(flag, bool), f"{dict(parameters)}: {flag!r} is not True or False"
    words = action.describe(parameters)
    assert isinstance(words, str), f"{dict(parameters)}: described by {words!r}, not text"
    assert words.strip(), f"{dict(parameters)}: described by nothing"
    assert words.isprintable(), f"{dict(parameters)}: described by more than a line: {words!r}"
    return touches, estimate, words


def default_options(action: type[ActionPlugin]) -> dict[str, Any]:
    """Return the values of ``context.options`` when nothing is configured."""
    return {option.dest: option.default for option in action.OPTIONS}


class ActionContract(DeclarationChecks, PlanningChecks):
    """Tests of the action type that the fixture ``action`` returns."""

    def make_context(self, folder: Path) -> ActionContext:
        """Return the context of the action; by default with a simulated cloud in ``folder``.

        Commands are run on this machine, with their jobs in ``folder``.
        """
        cloud = SimulatedCloud(folder / "cloud.json")
        machines = OpenMachines(place=folder / "jobs").of_attempt("plan", "action", 1)
        return ActionContext(cloud=lambda: cloud, output=lambda _: None, machines=machines)

    def _context(self, action: type[ActionPlugin], folder: Path) -> ActionContext:
        """Return the context of :meth:`make_context` with the default values of missing options.

        Its machines are None for a type with USES_MACHINES = False, as in a run.
        """
        context = self.make_context(folder)
        options = {**default_options(action), **context.options}
        machines = context.machines if action.USES_MACHINES else None
        return replace(context, options=options, machines=machines)

    def test_its_precheck_refuses_with_a_sentence(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """A precheck returns, or raises AlreadyDone or ActionFailed with the reason."""
        for example in examples_of(action):
            said = "nothing against it"
            try:
                action(example, self._context(action, tmp_path)).precheck()
            except (AlreadyDone, ActionFailed) as refusal:
                said = str(refusal)
            assert said.strip(), f"{example}: the refusal says nothing"

    def test_looking_whether_it_is_done_gives_an_answer(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``verify`` works before ``execute``, as after a crash, and returns the same twice."""
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            found = work.verify()
            assert isinstance(found, Verified), f"{example}: verified as {found!r}"
            assert work.verify() is found, f"{example}: looking changed the answer"

    def test_looking_whether_it_is_undone_gives_an_answer(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``verify_revert`` returns the same twice, and not DONE together with ``verify``."""
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            found = work.verify_revert()
            assert isinstance(found, Verified), f"{example}: verified as {found!r}"
            assert work.verify_revert() is found, f"{example}: looking changed the answer"
            is_done = work.verify() is Verified.DONE
            assert not is_done or found is not Verified.DONE, f"{example}: both done and undone"

    def test_where_its_commands_run_is_said(self, action: type[ActionPlugin]) -> None:
        """``runs_on`` returns the same addresses or None each time; nothing without machines."""
        for example in examples_of(action):
            places = action.runs_on(example)
            assert all(p is None or isinstance(p, str) for p in places), f"{example}: {places!r}"
            assert action.runs_on(example) == places, f"{example}: it names other machines"
            assert action.USES_MACHINES or not places, f"{example}: it says that it uses none"

    def test_an_abort_that_comes_at_any_time_does_no_harm(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``abort`` raises no error before ``execute`` is called, nor after it ended."""
        for example in examples_of(action):
            action(example, self._context(action, tmp_path)).abort()
            work = action(example, self._context(action, tmp_path))
            _execute_with_stop(work)
            work.abort()

    def test_what_cannot_be_undone_says_so(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``revert`` raises ActionFailed with a sentence if the type is not REVERTIBLE."""
        assert isinstance(action.REVERTIBLE, bool), "REVERTIBLE is True or False"
        stop = threading.Event()
        stop.set()
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            ends: list[object] = []
            _note_end(lambda: work.revert(stop), ends)  # noqa: B023 - called at once
            (end,) = ends
            if not action.REVERTIBLE:
                assert isinstance(end, ActionFailed), f"{example}: reverted with {end!r}"
            assert isinstance(end, Outcome | ActionFailed), f"{example}: reverted with {end!r}"
            assert str(end).strip(), f"{example}: the refusal says nothing"

    def test_a_stop_that_is_set_ends_it_soon(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """With the stop signal set, ``execute`` returns an outcome or raises ActionFailed soon."""
        for example in examples_of(action):
            ends = _execute_with_stop(action(example, self._context(action, tmp_path)))
            assert ends, f"{example}: still runs {SOON_S:g} s after its stop was set"
            end = ends[0]
            assert isinstance(end, Outcome | ActionFailed), f"{example}: ended with {end!r}"
            assert str(end).strip(), f"{example}: the failure says nothing"


def _execute_with_stop(work: ActionPlugin) -> list[object]:
    """Call ``execute`` with a stop that is set; return how it ended, or [] if it still runs."""
    stop, ends = threading.Event(), list[object]()
    stop.set()
    call = partial(_note_end, lambda: work.execute(stop), ends)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SOON_S)
    return ends


def _note_end(call: Callable[[], object], ends: list[object]) -> None:
    try:
        ends.append(call())
    except Exception as error:  # noqa: BLE001 -- the suite judges whatever a plugin raises
        ends.append(error)
