# SPDX-License-Identifier: Apache-2.0
"""Makes an action type of a function with annotations."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from applier.actions.parameters import one_line
from applier.contracts.actions import ActionContext, ActionPlugin
from applier.contracts.machines import StopSignal
from applier.errors import ActionFailed
from planner.plan.model import PARAMETER, Touch
from planner.plan.states import Outcome
from planner.schemas import ranges

Schema = dict[str, Any]
_SIMPLE: Mapping[Any, Schema] = {
    str: ranges.TEXT,
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
_ACCEPTED = (
    "str, int, float, bool, Literal, list[X], dict[str, X], X | None, and Annotated[X, KEYWORDS]"
)
#: What a function may be passed besides the parameters of the action.
_PASSED = (ActionContext, StopSignal)


class FunctionAction(ActionPlugin):
    """Base class of the types that :func:`action` makes: their work is one call of a function."""

    FUNCTION: ClassVar[Callable[..., Outcome | None]]
    #: The parameters of the function that are the context or the stop signal.
    PASSED: ClassVar[Mapping[str, Any]]
    TOUCHES: ClassVar[Sequence[str]]
    RUNS_ON: ClassVar[Sequence[str | None]]

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return Touch.fill(cls.TOUCHES, parameters)

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        return [None if name is None else parameters.get(name) for name in cls.RUNS_ON]

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        known: Mapping[str, Schema] = cls.SCHEMA["properties"]
        shown = [
            str(parameters[name])
            for name in cls.SCHEMA["required"]
            if isinstance(parameters.get(name), str | int) and not known[name].get("writeOnly")
        ]
        return one_line(" ".join([cls.TYPE, *shown]))

    def execute(self, stop: StopSignal) -> Outcome:
        if stop.is_set():
            raise ActionFailed("stopped before it began")
        known = self.SCHEMA["properties"]
        given = {name: value for name, value in self.parameters.items() if name in known}
        for name, kind in self.PASSED.items():
            given[name] = self.context if kind is ActionContext else stop
        return type(self).FUNCTION(**given) or Outcome.CHANGED


def action(
    *,
    touches: Sequence[str] = (),
    runs_on: Sequence[str | None] = (),
    rerun_safe: bool = False,
    examples: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Callable[..., Outcome | None]], type[FunctionAction]]:
    """Make an action type of the function below: its name is the type's, its parameters are those
    of the action, and the first paragraph of its docstring describes it.

    The schema of a parameter follows from its annotation; a parameter with a default need not be
    given. ``Annotated[str, {"writeOnly": True}]`` adds keywords of JSON Schema. A parameter that is
    annotated with ActionContext or StopSignal is passed to the function by the applier. The
    function returns an Outcome, or None for CHANGED, and raises ActionFailed or AlreadyDone.

    ``touches`` are texts such as ``leaves node:{host}``, in which a name in braces stands for the
    value of a parameter; one whose parameter is missing is left out. ``runs_on`` names the
    parameters that hold the addresses of the machines on which it runs commands, None for this
    machine. ``rerun_safe`` says that it may be run again after an interrupted attempt; otherwise
    such an action is UNKNOWN. ``examples`` are parameters, used by the contract suite.

    Raises TypeError for a parameter without an annotation, or with one that is not accepted, and
    for names in ``touches`` and ``runs_on`` that are no parameters; ValueError for a text that is
    no touch.

    >>> @action(touches=["node:{host}"])
    ... def restart(host: str, service: str = "nova-compute") -> None:
    ...     "Restart a service of a host."
    >>> restart.TYPE, restart.SCHEMA["required"], restart.touches({"host": "c1"})[0].resource
    ('restart', ['host'], 'node:c1')
    """

    def made(function: Callable[..., Outcome | None]) -> type[FunctionAction]:
        passed, schema = _signature(function)
        known = schema["properties"]
        named = {p for text in touches for p in PARAMETER.findall(text)} | {*runs_on} - {None}
        if unknown := sorted(map(str, named - known.keys())):
            text = f"{function.__name__} has no parameter {', '.join(unknown)}; it has "
            raise TypeError(text + ", ".join(known))
        for text in touches:
            Touch.parse(PARAMETER.sub("x", text))
        body = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "TYPE": function.__name__,
            "SCHEMA": {**schema, "examples": list(examples)},
            "MAIN": schema["required"][0] if len(schema["required"]) == 1 else None,
            "RERUN_SAFE": rerun_safe,
            "USES_MACHINES": ActionContext in passed.values(),
            "FUNCTION": staticmethod(function),
            "PASSED": passed,
            "TOUCHES": tuple(touches),
            "RUNS_ON": tuple(runs_on),
        }
        return type(function.__name__, (FunctionAction,), body)

    return made


def _signature(function: Callable[..., Any]) -> tuple[dict[str, Any], Schema]:
    """Return what the applier passes to a function, and the schema of its other parameters."""
    hints = get_type_hints(function, include_extras=True)
    passed = {name: kind for name, kind in hints.items() if kind in _PASSED}
    given = [
        one for one in inspect.signature(function).parameters.values() if one.name not in passed
    ]
    return passed, {
        "type": "object",
        "additionalProperties": False,
        "required": [one.name for one in given if one.default is one.empty],
        "properties": {one.name: _schema_of(function.__name__, one, hints) for one in given},
    }


def _schema_of(name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Schema:
    if parameter.name not in hints or parameter.kind in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
        parameter.POSITIONAL_ONLY,
    ):
        raise TypeError(
            f"{name}: parameter {parameter.name} has no annotation, or has no name that a document "
            "can give"
        )
    try:
        schema = _of_annotation(hints[parameter.name])
    except TypeError:
        text = f"{name}: the annotation of {parameter.name} is not accepted; use {_ACCEPTED}"
        raise TypeError(text) from None
    if parameter.default is parameter.empty or parameter.default is None:
        return schema
    return {**schema, "default": parameter.default}


def _of_annotation(kind: Any) -> Schema:
    """Return the JSON Schema of an annotation; raises TypeError for one that is not accepted.

    >>> _of_annotation(list[int] | None)
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    >>> _of_annotation(Annotated[int, {"minimum": 1}])
    {'type': 'integer', 'minimum': 1}
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        keywords = [one for one in inner[1:] if isinstance(one, Mapping)]
        return {**_of_annotation(inner[0]), **{k: v for one in keywords for k, v in one.items()}}
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    if kind is type(None):
        return {"type": "null"}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _of_annotation(inner[0])}
    if origin is dict and inner[0] is str:
        return {"type": "object", "additionalProperties": _of_annotation(inner[1])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of_annotation(one) for one in inner]}
    raise TypeError(str(kind))
