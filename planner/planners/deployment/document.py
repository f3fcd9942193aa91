# SPDX-License-Identifier: Apache-2.0
"""Reads documents of ``kind: deployment``, and collects mistakes and warnings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake, Path
from planner.plan.model import ActionPlan
from planner.planners import node_fields
from planner.planners.deployment import expressions, problem, task_fields
from planner.planners.deployment.conditions import Condition, InvalidCondition
from planner.planners.deployment.name_patterns import Patterns, near
from planner.planners.deployment.schema import ACTION_TYPES, ALIASES, FOREIGN, RUNNABLE, TASK
from planner.planners.deployment.serial import blocks
from planner.planners.deployment.task_fields import ParameterChecker, Placeholders, translated
from planner.schemas.checking import repeated

#: Prefixes in the names of actions that are not the uid of a node: no node may have such a uid.
RESERVED = (problem.SYNC, "join", "null")
#: What has replaced the field ``stage``, by its value up to a slash.
STAGE = (
    "'stage' is of plugins before release 7.0: requires: [{0}_start] and required_for: [{0}_end] "
    "have replaced it"
)

T = TypeVar("T")


class DeploymentReader:
    """Reads one document, which fits the schema."""

    def __init__(self, document: Mapping[str, Any], surroundings: Surroundings) -> None:
        self._document, self._surroundings = document, surroundings
        self._patterns = Patterns(exact=document.get("names") == "exact")
        self._settings = document.get("settings") or {}
        self._placeholders = Placeholders(document.get("placeholders") or {}, self._settings)
        self._checker = ParameterChecker(surroundings)
        self._mistakes: list[Mistake] = []
        self._without_value, self._warnings = problem.Told(), problem.Told()
        self._ignored = problem.Told()

    def deployment(self) -> problem.Deployment:
        """Return the described deployment; raises InvalidInput with all mistakes."""
        raw = self._document.get("tasks") or []
        nodes = self._nodes()
        self._roles = {node.name: node.tags for node in nodes}
        self._evaluator = expressions.Evaluator(self._document.get("settings"), self._roles)
        tasks = [self._task(i, task) for i, task in enumerate(raw)]
        self._mistakes += repeated("id", [t.id for t in tasks], lambda i: ("tasks", i, "id"))
        part, serial = self._part(), self._serial()
        durations = self._document.get("durations") or {}
        known = {task.id for task in tasks}
        for name in durations:
            if name not in known:
                self._warn(
                    f"no task {name!r}{near(name, known, self._warnings)}", ("durations", name)
                )
        mistakes = [*self._mistakes, *self._without_value, *self._checker.mistakes]
        if mistakes:
            raise InvalidInput(mistakes)
        return problem.Deployment(
            name=self._document.get("name"),
            tasks=tasks,
            nodes=nodes,
            patterns=self._patterns,
            part=part,
            serial=serial,
            durations=durations,
            evaluator=self._evaluator,
            warnings=[*self._warnings],
            notes=[*self._checker.notes, *map(self._surroundings.told, self._ignored)],
        )

    def _wrong(self, text: str, path: Path) -> None:
        self._mistakes.append(Mistake(text, path))

    def _warn(self, text: str, path: Path, about: str | None = None) -> None:
        self._warnings.add(text, path, about)

    def _task(self, i: int, raw: Mapping[str, Any]) -> problem.Task:
        path: Path = ("tasks", i)
        raw = {ALIASES.get(field, field): value for field, value in raw.items()}
        self._tell_of_fields(raw, path)
        strategy, most = self._strategy(raw, path)
        kind, given = raw["type"], raw.get("parameters") or {}
        values = self._with_placeholders(translated(raw), path)
        # Those of the task itself take precedence.
        timeout, retries = (
            given.get(key) if raw.get(key) is None else raw[key] for key in ("timeout", "retries")
        )
        skipped, expression = self._condition(raw, path)
        if kind in FOREIGN and not self._checker.offers(kind):
            why = f"no plugin offers the action type {kind!r}"
            self._warn(f"{why}: tasks of this type are skipped", (*path, "type"))
            skipped = skipped or why
        elif kind in RUNNABLE:
            known = {k: v for k, v in values.items() if not expressions.has_expressions(v)}
            self._checker(ACTION_TYPES.get(kind, kind), known, path)
        return problem.Task(
            id=raw["id"],
            type=kind,
            index=i,
            versioned=kind not in RUNNABLE
            or self._read(task_fields.major, raw.get("version"), (*path, "version"), 2) == 2,
            where=self._where(raw, path),
            groups=task_fields.names(raw.get("groups")),
            requires=self._local(raw, "requires", path),
            required_for=self._local(raw, "required_for", path),
            cross_depends=self._cross(raw, "cross-depends", path),
            cross_depended_by=self._cross(raw, "cross-depended-by", path),
            tasks=task_fields.names(raw.get("tasks")),
            strategy=strategy,
            most=most,
            skipped=skipped,
            expression=expression,
            fault_tolerance=raw.get("fault_tolerance", given.get("fault_tolerance")),
            parameters=values,
            timeout_s=self._number(timeout, (*path, "parameters", "timeout")),
            retries=int(self._number(retries, (*path, "parameters", "retries"), True) or 0),
        )

    def _tell_of_fields(self, raw: Mapping[str, Any], path: Path) -> None:
        """Refuse or warn of each field of a task that has no effect."""
        for name in task_fields.ignored(raw):
            inside = (name,) if name in raw else ("parameters", name)
            self._ignored.add(f"{name!r} of {raw['type']} is ignored", (*path, *inside), name)
        for name in raw:
            if name == "stage":
                part = str(raw[name]).partition("/")[0]
                self._wrong(STAGE.format(part), (*path, name))
            elif name not in TASK["properties"]:
                text = f"a task has no {name!r}: it is ignored{near(name, TASK['properties'])}"
                self._warn(text, (*path, name))

    def _with_placeholders(self, values: Mapping[str, Any], path: Path) -> dict[str, Any]:
        def missing(name: str) -> None:
            text = f"{{{name}}} has no value: give it one in 'placeholders'"
            self._without_value.add(text, (*path, "parameters"))

        return {k: self._placeholders.replaced(v, missing) for k, v in values.items()}

    def _read(self, read: Callable[[Any], T], value: Any, path: Path, otherwise: T) -> T:
        """Return what ``read`` makes of a value; append a mistake if it raises ValueError."""
        try:
            return read(value)
        except ValueError as reason:
            self._wrong(str(reason), path)
            return otherwise

    def _number(self, value: Any, path: Path, whole: bool = False) -> float | None:
        """Return a number that is given as such or as text, None for None and for a mistake."""
        read = partial(task_fields.number, whole=whole)
        return None if value is None else self._read(read, value, path, None)

    def _where(self, raw: Mapping[str, Any], path: Path) -> problem.NodeSelector:
        for field in ("tags", "role", "roles", "groups"):
            if raw.get(field) is not None:
                where = self._checked_where(task_fields.where(raw[field]), (*path, field))
                named = field == "groups" and where.kind == "patterns"
                return where._replace(kind="groups") if named else where
        return problem.NOWHERE

    def _checked_where(self, where: problem.NodeSelector, path: Path) -> problem.NodeSelector:
        for pattern in where.patterns:
            self._check_pattern(pattern, path)
        return where

    def _check_pattern(self, pattern: str, path: Path) -> None:
        try:
            self._patterns.test(pattern)
        except re.error as reason:
            text = f"{pattern!r} is not accepted as a regular expression: {reason}"
            self._wrong(text, path)

    def _local(self, raw: Mapping[str, Any], field: str, path: Path) -> list[problem.Relation]:
        found = []
        for name, at in _entries(raw.get(field), (*path, field)):
            self._check_pattern(str(name), at)
            found.append(problem.Relation(field, str(name), problem.NOWHERE, False, at))
        return found

    def _cross(self, raw: Mapping[str, Any], field: str, path: Path) -> list[problem.Relation]:
        found: list[problem.Relation] = []
        for entry, at in _entries(raw.get(field), (*path, field)):
            if expressions.is_expression(entry):
                found += self._evaluated(field, entry["yaql_exp"], at)
            else:
                found += self._relation(field, entry, at)
        return found

    def _relation(self, field: str, entry: Any, at: Path) -> Iterator[problem.Relation]:
        relation = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(relation, Mapping) or not isinstance(relation.get("name"), str):
            self._wrong("the field 'name' is missing", at)
            return
        where = self._checked_where(task_fields.role_of(relation), at)
        self._check_pattern(relation["name"], at)
        yield problem.Relation(field, relation["name"], where, relation.get("policy") == "any", at)

    def _evaluated(self, field: str, text: str, at: Path) -> list[problem.Relation]:
        """Return the relations that an expression is on the nodes."""
        found: dict[problem.Relation, set[str]] = {}
        for uid in (*self._roles, problem.MASTER):
            try:
                value = self._evaluator.value(text, uid)
            except expressions.Unknown as why:
                told = f"yaql in relations is not evaluated, {why}: they are ignored"
                self._warn(told, at, "yaql in relations")
                return []
            for entry in value if isinstance(value, list) else [value]:
                for relation in self._relation(field, entry, at):
                    found.setdefault(relation, set()).add(uid)
        return [relation._replace(only=frozenset(uids)) for relation, uids in found.items()]

    def _strategy(self, raw: Mapping[str, Any], path: Path) -> tuple[str, int | None]:
        inside = raw.get("strategy") is None
        value = (raw.get("parameters") or {}).get("strategy") if inside else raw["strategy"]
        at: Path = (*path, "parameters", "strategy") if inside else (*path, "strategy")
        if value is None:
            return "parallel", None
        amount = value.get("amount") if isinstance(value, Mapping) else None
        if expressions.is_expression(amount):
            try:
                value = {**value, "amount": self._evaluator.value(amount["yaql_exp"])}
            except expressions.Unknown as why:
                text = f"yaql in amounts is not evaluated, {why}: one node at a time"
                self._warn(text, (*at, "amount"), "yaql in amount")
                return "parallel", 1
        parallel: tuple[str, int | None] = ("parallel", None)
        return self._read(task_fields.strategy, value, at, parallel)

    def _condition(self, raw: Mapping[str, Any], path: Path) -> tuple[str | None, str | None]:
        """Return why a task is skipped, and the expression that decides that on each node."""
        if raw["type"] == "skipped":
            return "a task of type skipped", None
        value, at = raw.get("condition"), (*path, "condition")
        text = value["yaql_exp"] if expressions.is_expression(value) else value
        if text is None or isinstance(text, bool) or task_fields.is_boolean(text):
            false = text is False or str(text).strip().lower() == "false"
            return "its condition is false" if false else None, None
        if expressions.is_expression(value):
            return None, str(text)
        if not isinstance(value, str):
            self._wrong("a condition is a text such as settings:a.b == true", at)
            return None, None

        def missing(place: str) -> None:
            self._warn(f"the settings have no {place!r}: null is assumed", at)

        try:
            holds = Condition(value).holds(self._settings, missing)
        except InvalidCondition as reason:
            self._wrong(f"not a condition: {reason}", at)
            return None, None
        return None if holds else f"its condition is false: {' '.join(value.split())}", None

    def _nodes(self) -> list[node_fields.ListedNode]:
        given = self._document["nodes"]
        if isinstance(given, Mapping):
            listed = node_fields.of_document(given, self._mistakes)
        else:
            listed = [node_fields.node(raw) for raw in given]
            names = [node.name for node in listed]
            self._mistakes += repeated("uid", names, lambda i: ("nodes", i, "uid"))
        for i, node in enumerate(listed):
            if node.name in RESERVED:
                at: Path = ("nodes", i, "uid") if isinstance(given, list) else ("nodes",)
                self._wrong(f"{node.name!r} is reserved and cannot be a uid", at)
        return listed

    def _part(self) -> problem.Part:
        only = self._document.get("only") or {}
        for name in task_fields.names(only.get("tasks")):
            self._check_pattern(name, ("only", "tasks"))
        return problem.Part(
            nodes=task_fields.names(only["nodes"]) if "nodes" in only else None,
            tasks=task_fields.names(only["tasks"]) if "tasks" in only else None,
            fetch=bool(self._document.get("fetch_deps") or only.get("fetch_deps")),
            changed_since=self._earlier(),
        )

    def _serial(self) -> list[problem.SerialBlock]:
        read = partial(blocks, name=self._document.get("name"))
        none: list[problem.SerialBlock] = []
        found = self._read(read, self._document.get("serial"), ("serial",), none)
        self._mistakes += repeated("block", [b.name for b in found], lambda i: found[i].path)
        for block in found:
            for pattern in (*block.tasks, *(block.where.patterns if block.where else ())):
                self._check_pattern(pattern, block.path)
        return found

    def _earlier(self) -> ActionPlan | None:
        value = self._document.get("changed_since")
        if value is None:
            return None
        path: Path = ("changed_since",)
        try:
            earlier = ActionPlan.from_dict(value)
        except (KeyError, TypeError, ValueError, AttributeError):
            self._wrong("no action plan, such as 'create --out' writes", path)
            return None
        if earlier.planner != "deployment":
            self._wrong(f"a plan of planner {earlier.planner!r} is not a deployment", path)
        return earlier


def _entries(value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    """Yield the entries of a list, or a single one, each with its path; None has none."""
    if isinstance(value, list):
        yield from ((entry, (*path, k)) for k, entry in enumerate(value))
    elif value is not None:
        yield value, path
