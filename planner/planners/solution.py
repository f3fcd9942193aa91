# SPDX-License-Identifier: Apache-2.0
"""Documents of ``kind: solution``: a list of proposed actions, which a planner orders.

The planners ``weight``, ``workload_stabilization``, ``node_resource_consolidation`` and those of
third parties share this reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.contract import ActionType, Planner, Surroundings
from planner.errors import BrokenPlugin, InvalidInput, Mistake, UnknownPlugin
from planner.plan.model import JOIN, ProposedAction, Solution, Touch
from planner.planners import document_links, server_groups
from planner.planners.draft import Draft
from planner.planners.solution_schema import SCHEMA
from planner.schemas import hidden_values, ranges
from planner.schemas.checking import repeated


class SolutionPlanner(Planner[Solution]):
    """Base class of the planners of solutions; a subclass defines ``NAME`` and ``plan``."""

    KIND = "solution"
    SCHEMA = SCHEMA

    def draft(self, solution: Solution) -> Draft:
        """Return an empty draft, to which actions are added in schedule order."""
        return Draft(self.NAME, solution, self.surroundings)

    def parse(self, document: Mapping[str, Any]) -> Solution:
        """Check every action, and fill in its name, parameters and touched resources.

        An action without a name gets its type and a number, by which links may name it, too.
        ``resource_id`` is stored both outside and inside ``input_parameters``, as in Watcher.
        Raises InvalidInput with all mistakes.
        """
        read, warnings = read_actions(self, document)
        facts = _tables(document.get("facts") or {})
        if facts.get("server_groups"):
            read, of_groups = server_groups.ordered(read, facts)
            warnings = (*warnings, *of_groups)
        return Solution(
            actions=read,
            name=document.get("name"),
            facts=facts,
            audit_uuid=document.get("audit_uuid"),
            strategy_name=document.get("strategy_name"),
            efficacy_indicators=document.get("efficacy_indicators") or (),
            global_efficacy=document.get("global_efficacy") or (),
            warnings=(
                *warnings,
                *document_links.unordered_on_a_machine(read, self._is_local),
            ),
        )

    def _is_local(self, action: ProposedAction) -> bool:
        """Return whether an action that could run on a node runs on the machine of the applier."""
        kind = self.surroundings.type_of(action.action_type)
        fields = kind.SCHEMA.get("properties", {}) if kind else {}
        elsewhere = {"node", "address", "inventory"}
        return "node" in fields and not elsewhere & action.input_parameters.keys()


#: The parameter of a resize that says how to undo it; by default, the flavor in the facts.
_SOURCE_FLAVOR = "source_flavor"


def read_actions(
    planner: Planner[Any], document: Mapping[str, Any]
) -> tuple[list[ProposedAction], tuple[str, ...]]:
    """Check and complete the ``actions`` of a document; return them, and warnings.

    Raises InvalidInput with all mistakes.
    """
    reader = ActionReader(planner.surroundings, document)
    actions = [reader.action(i, raw) for i, raw in enumerate(document["actions"])]
    if mistakes := [*reader.mistakes, *document_links.mistakes(actions)]:
        raise InvalidInput(mistakes)
    return actions, (*reader.warnings, *reader.unknown_attachments(actions))


class ActionReader:
    """Reads the actions of one document and collects mistakes and warnings."""

    def __init__(self, surroundings: Surroundings, document: Mapping[str, Any]) -> None:
        self.surroundings = surroundings
        self.mistakes: list[Mistake] = []
        self.warnings: dict[str, None] = {}
        self._types: dict[str, type[ActionType] | None] = {}
        facts = document.get("facts") or {}
        self._hosts, self._instances = _host_names(facts), facts.get("instances") or {}
        self._volumes = facts.get("volumes") or {}
        self._numbers: Counter[str] = Counter()
        names = [raw.get("name") for raw in document["actions"]]
        self.mistakes += repeated("name", names, lambda i: ("actions", i, "name"))
        self._taken = set(names)

    def action(self, i: int, raw: Mapping[str, Any]) -> ProposedAction:
        """Return the proposed action of entry ``i``, and append its mistakes and warnings."""
        name = raw["action_type"]
        action_type = self._type(name, i)
        parameters, resource_id = self._parameters(i, raw)
        if action_type and self.surroundings.check_types:
            before = len(self.mistakes)
            self._check(i, action_type, parameters, raw)
            if len(self.mistakes) > before:
                # Parameters that the schema refused must not be passed to the plugin.
                action_type = None
        if action_type and _SOURCE_FLAVOR in (action_type.SCHEMA.get("properties") or {}):
            flavor = (self._instances.get(resource_id or "") or {}).get("flavor")
            parameters = {**({_SOURCE_FLAVOR: flavor} if flavor else {}), **parameters}
        known = about(name, action_type, parameters)
        estimate = raw.get("estimate_s")
        return ProposedAction(
            name=raw.get("name") or self._name(name),
            action_type=name,
            resource_id=resource_id,
            input_parameters=parameters,
            description=known.description,
            touches=self._attached(self._touches(i, raw, known.touches)),
            needs=tuple(raw.get("needs", ())),
            after=tuple(raw.get("after", ())),
            estimate_s=known.estimate_s if estimate is None else estimate,
            timeout_s=raw.get("timeout_s"),
            retries=raw.get("retries", 0),
        )

    def _wrong(self, i: int, text: str, *inside: str | int) -> None:
        self.mistakes.append(Mistake(text, ("actions", i, *inside)))

    def _name(self, action_type: str) -> str:
        while True:
            self._numbers[action_type] += 1
            name = f"{action_type}-{self._numbers[action_type]}"
            if name not in self._taken:
                return name

    def _type(self, name: str, i: int) -> type[ActionType] | None:
        if name == JOIN:
            self._wrong(i, "only planners put in joins", "action_type")
            return None
        try:
            if name not in self._types:
                self._types[name] = self.surroundings.action_type(name)
            known = self._types[name]
        except UnknownPlugin as unknown:
            if self.surroundings.check_types:
                self._wrong(i, str(unknown), "action_type")
                return None
            known = self._types[name] = None
        if not self.surroundings.check_types:
            what = (
                "its parameters were" if known else "no plugin offers it, and its parameters were"
            )
            self.warnings[f"action type {name!r}: {what} not checked"] = None
        return known

    def _parameters(self, i: int, raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        parameters: Mapping[str, Any] = raw.get("input_parameters") or {}
        inside, beside = parameters.get("resource_id"), raw.get("resource_id")
        if beside is None:
            return parameters, inside if isinstance(inside, str) else None
        if inside is None:
            return {"resource_id": beside, **parameters}, beside
        if inside != beside:
            text = f"{beside!r} here, {inside!r} inside input_parameters: set only one of them"
            self._wrong(i, text, "resource_id")
        return parameters, beside

    def _check(
        self,
        i: int,
        action_type: type[ActionType],
        parameters: Mapping[str, Any],
        raw: Mapping[str, Any],
    ) -> None:
        # A resource_id outside the parameters belongs to the action, even if its type has no such
        # parameter.
        given, known = raw.get("input_parameters") or (), action_type.SCHEMA.get("properties") or ()
        if raw.get("resource_id") is not None and "resource_id" not in {*given, *known}:
            parameters = {k: v for k, v in parameters.items() if k != "resource_id"}
        for mistake in self.surroundings.check(raw["action_type"], parameters):
            self._wrong(i, mistake.text, "input_parameters", *mistake.path)

    def _touches(
        self, i: int, raw: Mapping[str, Any], known: tuple[Touch, ...]
    ) -> tuple[Touch, ...]:
        found = tuple(self._written(i, raw["touches"])) if "touches" in raw else known
        if not self._hosts:
            return found
        return tuple(t._replace(resource=self._hosts.get(t.resource, t.resource)) for t in found)

    def _attached(self, touches: tuple[Touch, ...]) -> tuple[Touch, ...]:
        """Add the instances to which volumes are attached: a volume and its instance are one thing.

        Nova copies an attached volume, which it does for no instance that moves, and the other way
        round.
        """
        found = dict.fromkeys(touches)
        for touch in touches:
            kind, _, name = touch.resource.partition(":")
            if kind == "volume" and (instance := (self._volumes.get(name) or {}).get("instance")):
                found.setdefault(Touch(f"instance:{instance}"))
        return tuple(found)

    def unknown_attachments(self, actions: Sequence[ProposedAction]) -> Iterator[str]:
        """Yield a warning if it is not known whether volumes are attached to touched instances."""
        touched = dict.fromkeys(t.resource.partition(":")[::2] for a in actions for t in a.touches)
        unknown = [name for kind, name in touched if kind == "volume" and name not in self._volumes]
        if unknown and any(kind == "instance" for kind, _ in touched):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            yield (
                f"it is not known to which instance volume {unknown[0]}{more} is attached: "
                "facts.volumes says it, and keeps work on a volume and on its instance apart"
            )

    def _written(self, i: int, texts: list[str]) -> list[Touch]:
        touches = []
        for k, text in enumerate(texts):
            try:
                touches.append(Touch.parse(text))
            except ValueError as reason:
                self._wrong(i, str(reason), "touches", k)
        return touches


class About(NamedTuple):
    """The description, touched resources and estimate (seconds) of one action, by its type."""

    description: str | None = None
    touches: tuple[Touch, ...] = ()
    estimate_s: float | None = None


def about(name: str, kind: type[ActionType] | None, parameters: Mapping[str, Any]) -> About:
    """Return description, touches and estimate of an action, by calling the methods of its type.

    For an unknown type, ``kind`` is None and the fields have their defaults. References to secrets
    are replaced by labels before the calls. Raises BrokenPlugin if a method raises an exception or
    the estimate is out of range.
    """
    if kind is None:
        return About()
    given = hidden_values.replaced(parameters, lambda _, text: hidden_values.label(text))
    try:
        touches = tuple(kind.touches(given))
        estimate_s = kind.estimate(given)
        if estimate_s is not None and not ranges.is_duration(estimate_s):
            raise ValueError(f"its estimate {estimate_s!r} is not 0 to {ranges.LONGEST_S} seconds")
        return About(kind.describe(given), touches, estimate_s)
    except Exception as reason:
        # A plugin may raise any exception: report a broken plugin, not a mistake in the document.
        known = hidden_values.hidden(kind.SCHEMA, dict(parameters))
        text = f"{type(reason).__name__}: {reason}, of parameters {known!r}"
        raise BrokenPlugin("action type", name, text) from reason


def host_of(action: ProposedAction, facts: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the host of an action's instance before the action, None if it is not known.

    The ``source_node`` of a migration takes precedence over ``facts``.
    """
    source = action.input_parameters.get("source_node") if action.action_type == "migrate" else None
    if source and isinstance(source, str):
        return source
    fact = (facts.get("instances") or {}).get(action.resource_id or "") or {}
    host: str | None = fact.get("host")
    return host


def missing_host(i: int, action: ProposedAction) -> Mistake:
    """Return the mistake that the host of the instance of action ``i`` is not known."""
    own = "source_node is missing, and " if action.action_type == "migrate" else ""
    where = f"facts.instances.{action.resource_id}.host"
    return Mistake(
        f"{own}{where} is missing: the host of this instance decides what must come first",
        ("actions", i),
    )


def _tables(facts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of the facts, without the fields that describe the facts as a whole."""
    others = ("cloud", "at", "totals", "belongs_to")
    return {name: table for name, table in facts.items() if name not in others}


def _host_names(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Map ``node:ID``, with an id of ``facts``, to ``node:NAME``, with the name of that host."""
    names = {}
    for kind, key in (("hosts", "name"), ("services", "host")):
        for known_as, fact in (facts.get(kind) or {}).items():
            if isinstance(fact, Mapping) and fact.get(key):
                names[f"node:{known_as}"] = f"node:{fact[key]}"
    return names
