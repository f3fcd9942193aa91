# SPDX-License-Identifier: Apache-2.0
"""Evaluates the yaql expressions of tasks: ``{yaql_exp: "$.storage.ceph and changed($.storage)"}``.

``$`` are the settings of the document, and ``uid`` and ``roles`` of the node; ``$node`` are these
two, ``$common`` the settings. What Fuel calls the old data, the facts of the last successful run,
is not in a document: it is empty, as for a first deployment. An expression that fails on it counts
as changed, as in Fuel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeGuard

from planner.planners.deployment.name_patterns import compiled

#: How much an expression may compute, as in Fuel: values that it goes through, and bytes.
_LIMITS = {"yaql.limitIterators": 10_000, "yaql.memoryQuota": 100 * 1024 * 1024}
#: The most calls of functions and operators in all expressions of a document: half a minute. The
#: sets of Fuel need less than 100,000 for 100 nodes.
MOST_CALLS = 500_000
#: Functions whose results have no end, or are others each time: to expressions they do not exist.
_HIDDEN = frozenset(["cycle", "generate", "generateMany", "pow", "random", "repeat", "sequence"])
_UNDEFINED = object()


def is_expression(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is ``{yaql_exp: TEXT}``."""
    return isinstance(value, Mapping) and set(value) == {"yaql_exp"}


def has_expressions(value: Any) -> bool:
    """Return whether there is an expression in a value."""
    if isinstance(value, Mapping):
        return is_expression(value) or any(map(has_expressions, value.values()))
    return isinstance(value, list) and any(map(has_expressions, value))


class Unknown(ValueError):
    """An expression has no value here; the text says why."""


class _Facts(Mapping[str, Any]):
    """The settings and the facts of a node, which override them; ``read`` are those in use."""

    def __init__(self, settings: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        self._settings, self._own = settings, own
        self.read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._own:
            return self._settings[key]
        self.read[key] = self._own[key]
        return self._own[key]

    def __iter__(self) -> Iterator[str]:
        self.read |= self._own
        return iter({**self._settings, **self._own})

    def __len__(self) -> int:
        return len({**self._settings, **self._own})


class Evaluator:
    """Evaluates expressions with the library yaql, which is loaded for the first of them.

    ``roles`` are those of each node, by its uid. An expression that reads nothing of a node, or
    what is equal on another, is evaluated once for both.
    """

    def __init__(
        self, settings: Mapping[str, Any] | None = None, roles: Mapping[str, Sequence[str]] = {}
    ) -> None:
        self._settings, self._roles = settings, roles
        #: What each expression has read of nodes, and its value then.
        self._found: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}

    def value(self, text: str, uid: str | None = None) -> Any:
        """Return the value on a node; None is a node without uid and roles. Raises Unknown."""
        if self._settings is None:
            raise Unknown("the document has no settings")
        own = {"uid": uid, "roles": tuple(self._roles.get(uid or "", ()))}
        for read, value in self._found.get(text, ()):
            if all(own[key] == known for key, known in read.items()):
                return _known(value)
        read, value = self._evaluated(text, own)
        self._found.setdefault(text, []).append((read, value))
        return _known(value)

    def replaced(self, value: Any, uid: str) -> Any:
        """Return a value with the values of all expressions in it. Raises Unknown."""
        if is_expression(value):
            return self.value(str(value["yaql_exp"]), uid)
        if isinstance(value, Mapping):
            return {key: self.replaced(inner, uid) for key, inner in value.items()}
        return [self.replaced(v, uid) for v in value] if isinstance(value, list) else value

    def _evaluated(self, text: str, own: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
        """Return what the expression read of a node, and its value; Unknown stands for none."""
        engine, context = self._engine, self._context.create_child_context()
        everything, node = _Facts(context["$common"], own), _Facts({}, own)
        context["$"] = context["$new"] = everything
        context["$node"] = node
        try:
            value = engine(text).evaluate(context=context)
        except KeyError as missing:
            value = Unknown(f"there is no {missing} in the settings")
        except Exception as reason:  # noqa: BLE001 - an expression may raise anything
            value = Unknown(str(reason))
        return {**everything.read, **node.read}, value

    @cached_property
    def _engine(self) -> Any:
        try:
            import yaql
        except ImportError:
            text = "it needs the extra 'yaql' (pip install '.[yaql]', in a clone of ActionPlan)"
            raise Unknown(text) from None
        lists = {"yaql.convertTuplesToLists": True, "yaql.convertSetsToLists": True}
        return yaql.YaqlFactory().create({**_LIMITS, **lists})

    @cached_property
    def _context(self) -> Any:
        import yaql
        from yaql.language.utils import convert_input_data

        # Without its functions of dates, as the time of planning is not in the document, and of
        # regular expressions, which may take for ever: there are others.
        calls = _Calls()
        base = _limited(calls)
        context = yaql.create_context(context=base, datetime=False, yaqlized=False, regex=False)
        context["$common"] = convert_input_data(self._settings)
        for function in (*_of_history(), *_of_texts(), *_of_patterns(calls)):
            context.register_function(function)
        return context


class _Calls:
    """Counts calls; raises Unknown after MOST_CALLS of them."""

    def __init__(self) -> None:
        self._number = 0

    def add(self, number: int = 1) -> None:
        self._number += number
        if self._number > MOST_CALLS:
            raise Unknown(f"the expressions need more than {MOST_CALLS:,} calls")


def _limited(calls: _Calls) -> Any:
    """Return an empty context that counts calls."""
    from yaql.language import contexts, conventions

    class Limited(contexts.Context):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            calls.add()
            return super().__call__(*arguments, **options)

        def get_functions(self, name: str, *options: Any, **named: Any) -> Any:
            if name.rstrip("_") in _HIDDEN:
                return set(), True
            return super().get_functions(name, *options, **named)

    return Limited(convention=conventions.CamelCaseConvention())


def _known(value: Any) -> Any:
    if isinstance(value, Unknown):
        raise value
    return value


def _of_history() -> Iterator[Any]:
    """Yield the functions by which Fuel compares new and old data: ``changedAny`` and so on."""
    from yaql.language import specs, yaqltypes

    final = specs.inject("final", yaqltypes.Delegate("#finalize"))
    one, several = (specs.parameter(n, yaqltypes.Lambda()) for n in ("expression", "expressions"))

    @one
    def new(expression: Any, context: Any) -> Any:
        return expression(context["$new"])

    @one
    def old(expression: Any) -> Any:
        try:
            return expression({})
        except Exception:  # noqa: BLE001 - an expression may raise anything
            return _UNDEFINED

    @one
    @final
    def changed(final: Any, expression: Any, context: Any) -> bool:
        return bool(final(new(expression, context)) != final(old(expression)))

    @several
    @final
    def changed_any(final: Any, context: Any, *expressions: Any) -> bool:
        return any(changed(final, e, context) for e in expressions)

    @several
    @final
    def changed_all(final: Any, context: Any, *expressions: Any) -> bool:
        return all(changed(final, e, context) for e in expressions)

    @one
    @final
    def added(final: Any, expression: Any, context: Any) -> Any:
        now, before = new(expression, context), old(expression)
        return now if before is _UNDEFINED else _without(final(now), final(before))

    @one
    @final
    def deleted(final: Any, expression: Any, context: Any) -> Any:
        before = final(old(expression))
        return None if before is _UNDEFINED else _without(before, final(new(expression, context)))

    @specs.method
    @final
    def is_undef(final: Any, receiver: Any) -> bool:
        return final(receiver) is _UNDEFINED

    yield from (new, old, changed, changed_any, changed_all, added, deleted, is_undef)


def _of_texts() -> Iterator[Any]:
    """Yield the functions by which Fuel writes data as text: ``toYaml`` and ``toJson``."""
    import yaml
    from yaql.language import specs, yaqltypes

    final = specs.inject("final", yaqltypes.Delegate("#finalize"))

    @specs.method
    @final
    def to_yaml(final: Any, receiver: Any) -> str:
        return str(yaml.safe_dump(final(receiver), default_flow_style=False))

    @specs.method
    @final
    def to_json(final: Any, receiver: Any) -> str:
        return json.dumps(final(receiver))

    yield from (to_yaml, to_json)


def _of_patterns(calls: _Calls) -> Iterator[Any]:
    """Yield what looks for a regular expression in a text; a thousand characters are a call."""
    from yaql.language import specs, yaqltypes

    def found(string: str, pattern: str) -> bool:
        calls.add(len(string) // 1000)
        try:
            return bool(compiled(pattern)(string))
        except re.error as why:
            raise Unknown(f"{pattern!r} is not accepted as a regular expression: {why}") from why

    both = [specs.parameter(name, yaqltypes.String()) for name in ("string", "pattern")]

    @both[0]
    @both[1]
    @specs.method
    def matches(string: str, pattern: str) -> bool:
        return found(string, pattern)

    @both[0]
    @both[1]
    @specs.name("#operator_=~")
    def matches_operator(string: str, pattern: str) -> bool:
        return found(string, pattern)

    @both[0]
    @both[1]
    @specs.name("#operator_!~")
    def differs_operator(string: str, pattern: str) -> bool:
        return not found(string, pattern)

    yield from (matches, matches_operator, differs_operator)


def _without(value: Any, other: Any) -> Any:
    """Return what is in a value and not in another; all of it if they are of different types."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return {k: v for k, v in value.items() if k not in other or other[k] != v}
    if isinstance(value, list) and isinstance(other, list):
        return [v for v in value if v not in other]
    return None if value == other else value
