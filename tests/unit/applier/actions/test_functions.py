# SPDX-License-Identifier: Apache-2.0
"""Action types that are made of functions."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

import pytest

from applier.actions.functions import FunctionAction, action
from applier.contracts import ActionContext, StopSignal
from applier.testing.action_suite import ActionContract
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

Password = Annotated[str, {"writeOnly": True}]


@action(touches=["leaves node:{host}"], examples=[{"host": "c1", "password": "p"}])
def empty(
    context: ActionContext,
    stop: StopSignal,
    host: str,
    password: Password,
    mode: Literal["live", "cold"] = "live",
    names: list[str] | None = None,
) -> Outcome:
    """Empty a host."""
    context.output(f"{host} {password} {mode} {names} {stop.is_set()}")
    return Outcome.OK


class TestContract(ActionContract):
    @pytest.fixture
    def action(self) -> type[FunctionAction]:
        return empty


def test_the_schema_follows_from_the_annotations() -> None:
    properties = empty.SCHEMA["properties"]
    assert set(properties) == {"host", "password", "mode", "names"}
    assert empty.SCHEMA["required"] == ["host", "password"]
    assert (properties["host"]["type"], properties["password"]["writeOnly"]) == ("string", True)
    assert properties["mode"] == {"enum": ["live", "cold"], "default": "live"}
    assert properties["names"]["anyOf"][1] == {"type": "null"}


def test_the_function_is_passed_its_parameters_the_context_and_the_stop_signal(
    context: ActionContext, printed: list[str]
) -> None:
    given = {"host": "c1", "password": "p", "resource_id": "stored beside them"}
    assert empty(given, context).execute(threading.Event()) is Outcome.OK
    assert printed == ["c1 p live None False"]


def test_planners_learn_what_it_touches_and_no_secret() -> None:
    given = {"host": "c1", "password": "p"}
    assert empty.touches(given) == (Touch("node:c1", Effect.LEAVES),)
    assert empty.touches({"password": "p"}) == ()
    assert empty.describe(given) == "empty c1"


def test_a_function_with_one_parameter_that_is_needed_has_a_main_parameter() -> None:
    @action(runs_on=["address", None])
    def restart(node: str, address: str = "") -> None: ...

    assert (restart.MAIN, empty.MAIN) == ("node", None)
    assert restart.runs_on({"node": "n", "address": "192.0.2.1"}) == ["192.0.2.1", None]
    assert not restart.USES_MACHINES


def test_what_cannot_be_an_action_type_is_refused_where_it_is_written() -> None:
    def bare(x) -> None: ...  # type: ignore[no-untyped-def]

    def odd(x: complex) -> None: ...

    def many(*x: str) -> None: ...

    def good(x: str) -> None: ...

    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (bare, {}, TypeError, "parameter x"),
        (odd, {}, TypeError, "annotation of x"),
        (many, {}, TypeError, "parameter x"),
        (good, {"touches": ["node:{y}"]}, TypeError, "no parameter y"),
        (good, {"runs_on": ["y"]}, TypeError, "no parameter y"),
        (good, {"touches": ["{x}"]}, ValueError, "is not a touch"),
    ]
    for function, options, error, fact in wrong:
        with pytest.raises(error, match=fact):
            action(**options)(function)
