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
from planner.planners.deployment import task_fields
from planner.planners.deployment.conditions import Condition, InvalidCondition
from planner.planners.deployment.name_patterns import Patterns, near
from planner.planners.deployment.problem import (
    NOWHERE,
    SYNC,
    Deployment,
    Node,
    NodeSelector,
    Part,
    Relation,
    SerialBlock,
    Task,
)
from planner.planners.deployment.schema import IGNORED, RUNNABLE
from planner.planners.deployment.serial import blocks
from planner.planners.deployment.task_fields import ParameterChecker, translated

#: Prefixes in the names of actions that are not the uid of a node: no node may have such a uid.
RESERVED = (SYNC, "join", "null")


T = TypeVar("T")


class DeploymentReader:
    """Reads one document, which fits the schema."""

    def __init__(self, document: Mapping[str, Any], surroundings: Surroundings) -> None:
        self._document = document
        self._patterns = Patterns(exact=document.get("names") == "exact")
        self._settings = document.get("settings") or {}
        self._checker = ParameterChecker(surroundings)
        self._missing: dict[str, Path] = {}
        self._ignored: dict[str, list[str]] = {}
        self._mistakes: list[Mistake] = []
        self._warnings: list[Mistake] = []

    def deployment(self) -> Deployment:
        """Return the described deployment; raises InvalidInput with all mistakes."""
        raw = self._document.get("tasks") or []
        tasks = [self._task(i, task) for i, task in enumerate(raw)]
        self._once("id", [task.id for task in tasks], "tasks")
        nodes = self._nodes()
        part, serial = self._part(), self._serial()
        durations = self._document.get("durations") or {}
        known = {task.id for task in tasks}
        for name in durations:
            if name not in known:
                self._warn(f"no task {name!r}{near(name, known)}", ("durations", name))
        for place, path in self._missing.items():
            self._warn(f"the settings have no {place!r}: null is assumed", path)
        if self._mistakes or self._checker.mistakes:
            raise InvalidInput([*self._mistakes, *self._checker.mistakes])
        return Deployment(
            name=self._document.get("name"),
            tasks=tasks,
            nodes=nodes,
            patterns=self._patterns,
            part=part,
            serial=serial,
            durations=durations,
            warnings=self._warnings,
            notes=[*self._checker.notes, *self._notes()],
        )

    def _wrong(self, text: str, path: Path) -> None:
        self._mistakes.append(Mistake(text, path))

    def _warn(self, text: str, path: Path) -> None:
        self._warnings.append(Mistake(text, path))

    def _notes(self) -> Iterator[str]:
        for field, ids in self._ignored.items():
            yield f"the field {field!r} is ignored: {len(ids)} of the tasks have it"

    def _once(self, what: str, names: list[str], field: str) -> None:
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            if first.setdefault(name, i) != i:
                text = f"the {what} {name!r} occurs twice: also at {field}[{first[name]}]"
                self._wrong(text, (field, i, what))

    def _task(self, i: int, raw: Mapping[str, Any]) -> Task:
        path: Path = ("tasks", i)
        for field in IGNORED:
            if raw.get(field) is not None:
                self._ignored.setdefault(field, []).append(raw["id"])
        strategy, most = self._strategy(raw, path)
        parameters = translated(raw)
        if raw["type"] in RUNNABLE:
            self._checker(raw["type"], parameters.values, path)
        given = raw.get("parameters") or {}
        return Task(
            id=raw["id"],
            type=raw["type"],
            index=i,
            versioned=raw["type"] not in RUNNABLE
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
            skipped=self._skipped(raw, path),
            fault_tolerance=raw.get("fault_tolerance", given.get("fault_tolerance")),
            parameters=parameters.values,
            timeout_s=self._number(parameters.timeout, (*path, "parameters", "timeout")),
            retries=int(
                self._number(parameters.retries, (*path, "parameters", "retries"), True) or 0
            ),
        )

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

    def _where(self, raw: Mapping[str, Any], path: Path) -> NodeSelector:
        for field in ("tags", "role", "roles", "groups"):
            if raw.get(field) is not None:
                where = self._checked_where(task_fields.where(raw[field]), (*path, field))
                named = field == "groups" and where.kind == "patterns"
                return where._replace(kind="groups") if named else where
        return NOWHERE

    def _checked_where(self, where: NodeSelector, path: Path) -> NodeSelector:
        for pattern in where.patterns:
            self._check_pattern(pattern, path)
        return where

    def _check_pattern(self, pattern: str, path: Path) -> None:
        try:
            self._patterns.test(pattern)
        except re.error as reason:
            text = f"{pattern!r} is not a regular expression: {reason}"
            self._wrong(text, path)

    def _local(self, raw: Mapping[str, Any], field: str, path: Path) -> list[Relation]:
        found = []
        for name, at in _entries(raw.get(field), (*path, field)):
            self._check_pattern(str(name), at)
            found.append(Relation(field, str(name), NOWHERE, False, at))
        return found

    def _cross(self, raw: Mapping[str, Any], field: str, path: Path) -> list[Relation]:
        found = []
        for entry, at in _entries(raw.get(field), (*path, field)):
            relation = {"name": entry} if isinstance(entry, str) else entry
            if "name" in relation:
                where = self._checked_where(task_fields.role_of(relation), at)
                self._check_pattern(relation["name"], at)
                any_of = relation.get("policy") == "any"
                found.append(Relation(field, relation["name"], where, any_of, at))
            elif "yaql_exp" in relation:
                self._warn("yaql is not evaluated: this relation is ignored", at)
            else:
                self._wrong("the field 'name' is missing", at)
        return found

    def _strategy(self, raw: Mapping[str, Any], path: Path) -> tuple[str, int | None]:
        inside = raw.get("strategy") is None
        value = (raw.get("parameters") or {}).get("strategy") if inside else raw["strategy"]
        at: Path = (*path, "parameters", "strategy") if inside else (*path, "strategy")
        if value is None:
            return "parallel", None
        if isinstance(value, Mapping) and task_fields.is_yaql(value.get("amount")):
            self._warn("yaql is not evaluated: one node at a time", (*at, "amount"))
            return "parallel", 1
        parallel: tuple[str, int | None] = ("parallel", None)
        return self._read(task_fields.strategy, value, at, parallel)

    def _skipped(self, raw: Mapping[str, Any], path: Path) -> str | None:
        if raw["type"] == "skipped":
            return "a task of type skipped"
        value, at = raw.get("condition"), (*path, "condition")
        text = (
            value["yaql_exp"] if isinstance(value, dict) and task_fields.is_yaql(value) else value
        )
        if text is None or isinstance(text, bool) or task_fields.is_boolean(text):
            false = text is False or str(text).strip().lower() == "false"
            return "its condition is false" if false else None
        if not isinstance(value, str):
            if task_fields.is_yaql(value):
                self._warn("yaql is not evaluated: the condition is assumed to be true", at)
            else:
                self._wrong("a condition is a text such as settings:a.b == true", at)
            return None
        missing: list[str] = []
        try:
            holds = Condition(value).holds(self._settings, missing.append)
        except InvalidCondition as reason:
            self._wrong(f"not a condition: {reason}", at)
            return None
        for place in missing:
            self._missing.setdefault(place, at)
        return None if holds else f"its condition is false: {' '.join(value.split())}"

    def _nodes(self) -> list[Node]:
        nodes = []
        for i, raw in enumerate(self._document["nodes"]):
            uid, roles = str(raw["uid"]), task_fields.names(raw.get("roles"))
            tags = roles if raw.get("tags") is None else task_fields.names(raw["tags"])
            nodes.append(Node(uid=uid, tags=tags, address=raw.get("address")))
            if uid in RESERVED:
                self._wrong(f"{uid!r} is reserved and cannot be a uid", ("nodes", i, "uid"))
        self._once("uid", [node.uid for node in nodes], "nodes")
        return nodes

    def _part(self) -> Part:
        only = self._document.get("only") or {}
        for name in task_fields.names(only.get("tasks")):
            self._check_pattern(name, ("only", "tasks"))
        return Part(
            nodes=task_fields.names(only["nodes"]) if "nodes" in only else None,
            tasks=task_fields.names(only["tasks"]) if "tasks" in only else None,
            fetch=bool(self._document.get("fetch_deps") or only.get("fetch_deps")),
            changed_since=self._earlier(),
        )

    def _serial(self) -> list[SerialBlock]:
        read = partial(blocks, name=self._document.get("name"))
        none: list[SerialBlock] = []
        found = self._read(read, self._document.get("serial"), ("serial",), none)
        seen: set[str] = set()
        for block in found:
            if block.name in seen:
                text = f"the block {block.name!r} occurs twice: give one a name of its own"
                self._wrong(text, block.path)
            seen.add(block.name)
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
