# SPDX-License-Identifier: Apache-2.0
"""The planner of rollouts: steps on each of several nodes, never more than N nodes at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from planner.contract import Options, Planner, Surroundings
from planner.errors import InvalidInput, Mistake, Path
from planner.plan.model import Action, ActionPlan, ProposedAction
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.planners import node_fields
from planner.planners.draft import action_of, tokens
from planner.planners.rollout_document import SCHEMA, STEP_FIELDS, read_nodes
from planner.planners.solution import ActionReader


class RolloutStep(NamedTuple):
    """A step as it is written: name, type, parameters and, as a solution has them, the rest.

    ``number`` counts the steps of the document from 0.
    """

    number: int
    name: str
    action_type: str
    parameters: Mapping[str, Any]
    fields: Mapping[str, Any]


class Rollout(NamedTuple):
    """What is rolled out: ``actions`` are the steps of each of ``nodes``, in their order.

    ``blocks`` say, by token, of which nodes only so many may be under way at once.
    """

    name: str
    nodes: Sequence[node_fields.ListedNode]
    actions: Sequence[Sequence[ProposedAction]]
    blocks: Mapping[str, Block]
    warnings: tuple[str, ...]


class Block(NamedTuple):
    """The nodes of which so many may be under way at once."""

    nodes: Collection[str]
    limit: int
    rule: PlaceRule


class RolloutPlanner(Planner[Rollout]):
    """Takes each node through all steps, so many nodes at a time; the next begins as one ends.

    A node has its place from its first step that starts to the end of its last. A node that failed
    keeps its place, so that never more nodes than ``serial`` are out of service.
    """

    NAME = "rollout"
    KIND = "rollout"
    SCHEMA = SCHEMA
    FILES = {"nodes.from": "nodes.document"}
    INVENTORIES = ("nodes.from",)

    def parse(self, document: Mapping[str, Any]) -> Rollout:
        mistakes: list[Mistake] = []
        nodes = read_nodes(document, mistakes)
        steps = _steps(document["steps"], self.surroundings, mistakes)
        reader = _StepReader(self.surroundings, steps)
        actions = [reader.actions(node) for node in nodes]
        if mistakes or reader.mistakes:
            raise InvalidInput([*mistakes, *reader.mistakes])
        return Rollout(
            document["name"], nodes, actions, _blocks(document, nodes), tuple(reader.warnings)
        )

    def plan(self, problem: Rollout, options: Options) -> ActionPlan:  # noqa: ARG002
        """Return the plan: a chain of needs for each node, whose actions hold its places."""
        uuids = iter(self.surroundings.new_ids(sum(map(len, problem.actions))))
        actions: list[Action] = []
        held: dict[str, list[HeldPlace]] = {node.name: [] for node in problem.nodes}
        for token, block in problem.blocks.items():
            for name in block.nodes:
                held[name].append(HeldPlace(token, name))
        for node, proposed in zip(problem.nodes, problem.actions, strict=True):
            needs: tuple[str, ...] = ()
            for k, action in enumerate(proposed, 1):
                actions.append(
                    action_of(
                        action,
                        next(uuids),
                        reason=f"step {k} of {len(proposed)} on {node.name}",
                        needs=needs,
                        tokens=tokens(action.action_type, action.touches, f"node:{node.name}"),
                        places=tuple(held[node.name]),
                    )
                )
                needs = (actions[-1].uuid,)
        return self.surroundings.new_plan(
            self.NAME,
            actions,
            name=problem.name,
            limits={token: block.limit for token, block in problem.blocks.items()},
            places={token: block.rule for token, block in problem.blocks.items()},
            warnings=problem.warnings,
        )


def _blocks(
    document: Mapping[str, Any], nodes: Sequence[node_fields.ListedNode]
) -> dict[str, Block]:
    """Return the block of all nodes and, for ``stop_after`` of racks or roles, one for each."""
    token = f"serial:{document['name']}"
    limit, rule = node_fields.place_rule(document, len(nodes))
    found = {token: Block([node.name for node in nodes], limit, rule)}
    stop_after = document.get("stop_after")
    for kind, most in stop_after.items() if isinstance(stop_after, Mapping) else ():
        members: dict[str, dict[str, None]] = {}
        for node in nodes:
            for group in node.groups(kind):
                members.setdefault(group, {})[node.name] = None
        for group, names in members.items():
            _, stops = node_fields.place_rule({"keep": rule.keep, "stop_after": most}, len(names))
            found[f"{token}:{kind}={group}"] = Block(names, len(names), stops)
    return found


def _steps(
    raw: Sequence[Mapping[str, Any]], surroundings: Surroundings, mistakes: list[Mistake]
) -> list[RolloutStep]:
    steps: list[RolloutStep] = []
    names: set[str] = set()
    for i, one in enumerate(raw):
        types = [key for key in one if key not in STEP_FIELDS]
        if len(types) != 1:
            text = f"a step has one action type, this has {', '.join(types) or 'none'}"
            mistakes.append(Mistake(text, ("steps", i)))
            continue
        kind, given = types[0], one[types[0]]
        if not isinstance(given, Mapping):
            main = _main(kind, surroundings, ("steps", i, kind), mistakes)
            given = {} if given is None else {main: given} if main else {}
        name = str(one.get("name") or kind)
        if name in names:
            text = f"there are two steps {name!r}: give one a name of its own"
            mistakes.append(Mistake(text, ("steps", i)))
        names.add(name)
        fields = {k: one[k] for k in STEP_FIELDS if k in one and k != "name"}
        steps.append(RolloutStep(i, name, kind, given, fields))
    return steps


def _main(kind: str, surroundings: Surroundings, path: Path, mistakes: list[Mistake]) -> str | None:
    """Return the main parameter of an action type; append a mistake if it has none."""
    known = surroundings.type_of(kind)
    main: str | None = getattr(known, "MAIN", None)
    if known and main is None:  # of an unknown type the reader of actions tells
        mistakes.append(Mistake(f"{kind} has no main parameter: write its parameters", path))
    return main


class _StepReader:
    """Makes the actions of each node; a mistake is told once for each step, at the step."""

    def __init__(self, surroundings: Surroundings, steps: Sequence[RolloutStep]) -> None:
        self._surroundings, self._steps = surroundings, steps
        self.mistakes: list[Mistake] = []
        self.warnings: dict[str, None] = {}
        self._wrong: set[int] = set()

    def actions(self, node: node_fields.ListedNode) -> list[ProposedAction]:
        """Return the actions of the steps on a node, with mistakes and warnings appended."""
        raw = [self._raw(step, node) for step in self._steps]
        reader = ActionReader(self._surroundings, {"actions": raw})
        made = [reader.action(i, one) for i, one in enumerate(raw)]
        for mistake in reader.mistakes:
            i = mistake.path[1]
            if isinstance(i, int) and i not in self._wrong:
                self._wrong.add(i)
                inside = mistake.path[3:] if mistake.path[2:3] == ("input_parameters",) else ()
                path = ("steps", self._steps[i].number, self._steps[i].action_type, *inside)
                self.mistakes.append(Mistake(mistake.text, path))
        self.warnings |= reader.warnings
        return made

    def _raw(self, step: RolloutStep, node: node_fields.ListedNode) -> dict[str, Any]:
        given = _for_node(step.parameters, node.name)
        kind = self._surroundings.type_of(step.action_type)
        known = kind.SCHEMA.get("properties") if kind else None
        if "node" in (known or {}) and "node" not in given:
            given = {**given, "node": node.name}
            if node.address is not None and "address" not in given:
                given["address"] = node.address
        own = {"name": f"{node.name}/{step.name}", "action_type": step.action_type}
        return {**own, "input_parameters": given, **step.fields}


def _for_node(value: Any, node: str) -> Any:
    """Return a value in which ``{node}`` in each text is the name of a node; nothing else changes.

    >>> _for_node({"url": "http://{node}:8080/{x}", "n": [1, "{node}"]}, "web-1")
    {'url': 'http://web-1:8080/{x}', 'n': [1, 'web-1']}
    """
    if isinstance(value, str):
        return value.replace("{node}", node)
    if isinstance(value, Mapping):
        return {key: _for_node(inner, node) for key, inner in value.items()}
    if isinstance(value, list):
        return [_for_node(inner, node) for inner in value]
    return value
