# SPDX-License-Identifier: Apache-2.0
"""The three-level deployment message: nodes, the tasks of each node, the relations of each task.

The relations are resolved: each names a task on a node. A link that goes through a join in the plan
is written as links between tasks. The joins are also written, so that a plan can be read back from
its message unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake, Path, short
from planner.guards import NO_GUARDS
from planner.plan import place_rules
from planner.plan.graph_algorithms import CycleError, topological_order
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.place_rules import HeldPlace
from planner.planners.deployment.schema import RUNNABLE
from planner.planners.deployment.steps import tokens

#: Fields that are copied between an action and its entry in the message.
_OWN = ("description", "reason", "estimate_s", "timeout_s", "retries")
#: Matches the name of a stage in the reason of a task, or in the name of a join.
_STAGE = re.compile(r"(join/)?(pre-|post-)?deployment-[0-9]+00(:|$)")
#: Maps the links of an action to their names in the message.
_LINKS = {"needs": "requires", "parents": "after"}


def is_message(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a message: it has neither tasks nor task files."""
    return "tasks" not in document and "tasks_files" not in document


def write(plan: ActionPlan) -> dict[str, Any]:
    """Convert a deployment plan to a message; raises InvalidInput for a plan of another planner."""
    if plan.planner != "deployment":
        text = f"plan {short(plan.uuid)} is of planner {plan.planner!r}: only deployments have one"
        raise InvalidInput([Mistake(text, place="-f message")])
    actions = {action.uuid: action for action in plan.actions}
    nodes: dict[str, list[dict[str, Any]]] = {}
    joins = []
    for position, action in enumerate(plan.actions):
        links = {"position": position, **_links(action, actions)}
        if action.action_type == JOIN:
            joins.append({"join": action.label, **links})
            continue
        uid, _, task = action.label.partition("/")
        fields = {"task": task, "type": action.action_type, **_own(action), **links}
        nodes.setdefault(uid, []).append(fields)
    message: dict[str, Any] = {
        "kind": "deployment",
        "name": plan.name,
        "deployment_engine": _engine(plan),
        "limits": dict(plan.limits),
        "places": place_rules.to_dict(plan.places),
        "tolerances": [dict(t) for t in plan.tolerances],
        "on_failure": plan.on_failure,
        **({} if plan.guards == NO_GUARDS else {"guards": plan.guards.demands()}),
        "warnings": list(plan.warnings),
        "joins": joins,
        "nodes": [{"node": uid, "tasks": tasks} for uid, tasks in nodes.items()],
    }
    return {name: value for name, value in message.items() if value or name == "nodes"}


def _engine(plan: ActionPlan) -> str:
    """Return the deployment engine that made a plan: only the role-based one makes stages."""
    texts = (text or "" for action in plan.actions for text in (action.name, action.reason))
    return "role" if any(map(_STAGE.match, texts)) else "task"


def _own(action: Action) -> dict[str, Any]:
    fields = {name: getattr(action, name) for name in _OWN if name != "retries" or action.retries}
    fields |= {"tokens": list(action.tokens), "parameters": dict(action.input_parameters)}
    fields["places"] = [list(place) for place in action.places]
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _links(action: Action, actions: Mapping[str, Action]) -> dict[str, Any]:
    """Return the tasks that an action waits for, and the joins through which it waits for some.

    A link that goes only through a join names the join.
    """
    fields: dict[str, Any] = {"requires_any": [_group(g, actions) for g in action.needs_any]}
    for field, name in _LINKS.items():
        uuids = getattr(action, field)
        fields[name] = _named(uuids, actions)
        joins = [actions[u] for u in uuids if actions[u].action_type == JOIN]
        fields[f"{name}_joins"] = [join.label for join in joins]
        for join in joins if field == "needs" else ():
            groups = [_group(group, actions) for group in join.needs_any]
            fields["requires_any"] += [[{**x, "join": join.label} for x in g] for g in groups]
    return {name: value for name, value in fields.items() if value}


def _group(uuids: Sequence[str], actions: Mapping[str, Action]) -> list[dict[str, str]]:
    """Return node and task of each member of a group; a join is replaced by its tasks."""
    links = []
    for uuid in uuids:
        label = actions[uuid].label
        node, _, task = label.partition("/")
        links += _named([uuid], actions) or [{"node": node, "task": task, "join": label}]
    return links


def _named(uuids: Sequence[str], actions: Mapping[str, Action]) -> list[dict[str, str]]:
    """Return node and task of each action; of a task behind joins, also the first join."""
    found: dict[str, dict[str, str]] = {}
    for uuid in sorted(uuids, key=lambda u: actions[u].action_type == JOIN):
        first = actions[uuid]
        extra = {"join": first.label} if first.action_type == JOIN else {}
        left = [first]
        seen = {uuid}
        for action in left:  # the list grows during the iteration
            if action.action_type != JOIN:
                uid, _, task = action.label.partition("/")
                found.setdefault(action.uuid, {"node": uid, "task": task, **extra})
                continue
            more = [u for u in (*action.needs, *action.parents) if u not in seen]
            seen.update(more)
            left += [actions[u] for u in more]
    return list(found.values())


def read(document: Mapping[str, Any], planner: str, surroundings: Surroundings) -> ActionPlan:
    """Make a plan, with new uuids, from a message.

    A message from :func:`write` has the position and the tokens of each task. In a message from
    another program, the tasks are sorted topologically, and tokens are added. If the message has no
    limits, each node runs one task at a time. Raises InvalidInput for links to unknown tasks and
    for duplicates.
    """
    entries = _in_order(list(_entries(document)))
    reader = _MessageReader({entry.name: surroundings.new_id() for entry in entries})
    actions = tuple(reader.action(*entry) for entry in entries)
    if reader.mistakes:
        raise InvalidInput(reader.mistakes)
    return surroundings.new_plan(
        planner,
        actions,
        name=document.get("name"),
        limits=dict(document.get("limits", {"node:*": 1} if actions else {})),
        places=place_rules.of(document.get("places") or {}),
        tolerances=tuple(document.get("tolerances") or ()),
        on_failure=document.get("on_failure"),
        warnings=tuple(document.get("warnings") or ()),
    )


class _Entry(NamedTuple):
    """A task of a node, or a join, in a message."""

    name: str
    path: Path
    value: Mapping[str, Any]


def _entries(document: Mapping[str, Any]) -> Iterator[_Entry]:
    for i, node in enumerate(document["nodes"]):
        for k, task in enumerate(node["tasks"]):
            name = f"{node['node']}/{task['task']}"
            yield _Entry(name, ("nodes", i, "tasks", k), _completed(str(node["node"]), task))
    for i, join in enumerate(document.get("joins") or ()):
        yield _Entry(join["join"], ("joins", i), join)


def _completed(uid: str, task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a task with node and tokens added, if it has no tokens and runs on a node.

    Messages of other programs have no tokens.
    """
    if task["type"] not in RUNNABLE or "tokens" in task:
        return task
    parameters = {**(task.get("parameters") or {}), "node": uid}
    return {**task, "parameters": parameters, "tokens": tokens(task["type"], uid, task["task"])}


def _in_order(entries: list[_Entry]) -> list[_Entry]:
    """Sort entries by position; sort them topologically if any has no position."""
    if all("position" in entry.value for entry in entries):
        return sorted(entries, key=lambda entry: entry.value["position"])
    place = {entry.name: i for i, entry in enumerate(entries)}
    before = [
        [[place[name] for name in _waits_for(entry.value) if name in place]] for entry in entries
    ]
    try:
        return [entries[i] for i in topological_order(before)]
    except CycleError:
        return entries  # planner.plan.graph.validate reports the cycle


def _waits_for(entry: Mapping[str, Any]) -> Iterator[str]:
    groups = entry.get("requires_any") or ()
    for link in chain(entry.get("requires") or (), entry.get("after") or (), *groups):
        yield _who(link)
    yield from entry.get("requires_joins") or ()
    yield from entry.get("after_joins") or ()


class _MessageReader:
    """Makes actions of the entries of a message, and collects mistakes."""

    def __init__(self, uuids: Mapping[str, str]) -> None:
        self._uuids = uuids
        self._place = {name: i for i, name in enumerate(uuids)}
        self._seen: set[object] = set()
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.mistakes: list[Mistake] = []

    def action(self, name: str, path: Path, entry: Mapping[str, Any]) -> Action:
        """Return the action of an entry, and append its mistakes; links are looked up by name."""
        for one in (name, entry.get("position")):
            if one in self._seen:
                self.mistakes.append(Mistake(f"{one!r} occurs twice", path))
            self._seen.update([one] if one is not None else [])
        own_joins = set(entry.get("requires_joins") or ())
        groups = [
            self._uuids_of([_who(link) for link in group], path)
            for group in entry.get("requires_any") or ()
            if not own_joins.issuperset(link.get("join") for link in group)
        ]
        fields: dict[str, Any] = {name: entry.get(name) for name in _OWN}
        return Action(
            uuid=self._uuids[name],
            name=name,
            action_type=entry.get("type", JOIN),
            input_parameters=entry.get("parameters") or {},
            parents=self._linked(entry, "after", path),
            needs=self._linked(entry, "requires", path),
            needs_any=tuple(groups),
            tokens=tuple(entry.get("tokens") or ()),
            places=tuple([HeldPlace(*place) for place in entry.get("places") or ()]),
            **{**fields, "retries": fields["retries"] or 0},
        )

    def _linked(self, entry: Mapping[str, Any], field: str, path: Path) -> tuple[str, ...]:
        direct = [_who(link) for link in entry.get(field) or () if "join" not in link]
        return self._uuids_of([*direct, *(entry.get(f"{field}_joins") or ())], path)

    def _uuids_of(self, names: Sequence[str], path: Path) -> tuple[str, ...]:
        """Return uuids in the order of the plan; equal lists share one object."""
        unknown = [name for name in names if name not in self._place]
        self.mistakes += [Mistake(f"there is no {name} in this message", path) for name in unknown]
        known = sorted({*names} - {*unknown}, key=self._place.__getitem__)
        found = tuple(self._uuids[name] for name in known)
        return self._shared.setdefault(found, found)


def _who(link: Mapping[str, str]) -> str:
    return link.get("join") or f"{link['node']}/{link['task']}"
