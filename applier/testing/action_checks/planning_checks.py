# SPDX-License-Identifier: Apache-2.0
"""Checks of the methods that planners call: pure, and without errors for any parameters."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from applier.contracts import ActionPlugin
from applier.testing.action_checks.odd_parameters import examples_of, odd_parameters
from planner.plan.model import Effect, Touch


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
