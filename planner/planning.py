"""From a document to a plan: which planner, with which options, checked before anything is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any
from uuid import uuid4

from oslo_config import cfg

from planner import checking, documents, graph, registry
from planner import options as planning_options
from planner.contract import ActionType, Planner, Surroundings
from planner.documents import Document
from planner.errors import BrokenPlugin, InvalidInput, Mistake, UnknownPlugin, accepted
from planner.model import ActionPlan


def make_plan(
    document: Mapping[str, Any] | str | FilePath | Document,
    planner: str | None = None,
    options: Mapping[str, Any] | None = None,
    conf: cfg.ConfigOpts | None = None,
    *,
    check_types: bool = True,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
) -> ActionPlan:
    """Turn a document, or the path of one, into a plan.

    ``planner`` and ``options`` (by name: ``{"weights": {"nop": 70}}``) win over the document's own,
    those over ``conf``, those over the defaults; without ``conf`` no file is read. With
    ``check_types=False`` types that no plugin offers and parameters are taken unchecked, with a
    warning each. Raises PlannerError; InvalidInput lists all that is wrong, each with its place.
    """
    read = documents.as_document(document)
    conf = planning_options.configuration(conf)
    known = registry.ActionTypes()
    try:
        if not isinstance(read.value, Mapping):
            raise InvalidInput([Mistake("a mapping with 'actions' or a 'kind' is expected")])
        chosen = choose(read.value, planner, conf)
        read = documents.with_files(read, chosen.FILES)
        surroundings = Surroundings(
            now=now,
            new_id=new_id,
            action_type=known.__getitem__,
            check=ParameterCheck(known),
            check_types=check_types,
            locate=read.locate,
        )
        return plan_with(chosen, read.value, options or {}, conf, surroundings)
    except InvalidInput as wrong:
        raise wrong.located(read.locate) from wrong.__cause__


def plan_with(
    planner: type[Planner[Any]],
    value: Mapping[str, Any],
    options: Mapping[str, Any],
    conf: cfg.ConfigOpts,
    surroundings: Surroundings,
) -> ActionPlan:
    """Check a document, its options and the configuration, and let a planner plan it.

    Raises InvalidInput with every mistake; those of the document have a path, but no place yet.
    """
    try:
        check = checking.schema_of(planner)
    except ValueError as reason:
        raise BrokenPlugin("planner", planner.NAME, str(reason)) from reason
    mistakes = check(value)
    readable = checking.readable(check, value, mistakes)
    layers = planning_options.layers(planner, conf, value, options)
    resolved = planning_options.resolve(planner, layers, mistakes)
    mistakes += planning_options.unknown_keys(planner, conf)
    limits = planning_options.limits_of(conf, mistakes)
    maker = planner(surroundings)
    problem = _parsed(maker, readable, mistakes)
    if mistakes:
        raise InvalidInput(sorted(mistakes, key=_place_in_document))
    plan = maker.plan(problem, resolved)
    own = value.get("limits") or {}
    # The site's limit holds beside the planner's own; the document's replaces either.
    both = {
        token: min(limits[token], plan.limits[token]) for token in limits if token in plan.limits
    }
    plan = replace(
        plan,
        name=plan.name or value.get("name"),
        limits={**limits, **plan.limits, **both, **own},
        warnings=tuple(dict.fromkeys((*plan.warnings, *_idle_limits(own, plan)))),
    )
    graph.validate(plan.actions)
    return plan


def choose(
    value: Mapping[str, Any], planner: str | None, conf: cfg.ConfigOpts
) -> type[Planner[Any]]:
    """Find the planner: the one asked for, else the document's, its kind's, the configured one.

    Raises InvalidInput when the planner does not read documents of this kind.
    """
    if "version" in value:
        raise InvalidInput([Mistake("this is an action plan: it is made already", ("version",))])
    kind = value.get("kind", "solution")
    if not isinstance(kind, str):
        raise InvalidInput([Mistake(f"{kind!r} is not a kind of document", ("kind",))])
    named, place = planner or value.get("planner"), None
    if named is None:
        named = conf[planning_options.GROUP].planner if kind == "solution" else kind
        place = planning_options.place_of(conf, planning_options.GROUP, "planner")
        if kind not in ("solution", *registry.names(registry.PLANNERS)):
            known = {"solution", *_kinds()}
            raise InvalidInput([Mistake(f"no kind {kind!r}; {accepted(kind, known)}", ("kind",))])
    if not isinstance(named, str):
        raise InvalidInput([Mistake(f"{named!r} is not the name of a planner", ("planner",))])
    try:
        found = registry.planner(named)
    except UnknownPlugin as unknown:
        if planner:
            raise
        path = () if place else ("planner",)
        raise InvalidInput([Mistake(str(unknown), path, place)]) from unknown
    if kind != found.KIND:
        text = f"planner {named!r} reads documents of kind {found.KIND!r}, this is {kind!r}"
        raise InvalidInput([Mistake(text, ("kind",) if "kind" in value else ())])
    return found


def _kinds() -> list[str]:
    return [registry.planner(name).KIND for name in registry.names(registry.PLANNERS)]


class ParameterCheck:
    """Checks parameters against the schema of their action type."""

    def __init__(self, known: Mapping[str, type[ActionType]]) -> None:
        self._known = known
        self._checks: dict[str, checking.Check] = {}

    def __call__(self, name: str, parameters: Mapping[str, Any]) -> Sequence[Mistake]:
        """List what is wrong; raises BrokenPlugin when the schema itself is."""
        check = self._checks.get(name)
        if check is None:
            try:
                check = self._checks[name] = checking.schema_of(self._known[name])
            except ValueError as reason:
                raise BrokenPlugin("action type", name, str(reason)) from reason
        return check(parameters)


def _parsed(
    maker: Planner[Any], readable: checking.Readable | None, mistakes: list[Mistake]
) -> Any:
    """Parse what can be read; what is wrong with it is added to ``mistakes``."""
    if readable is None:
        return None
    try:
        return maker.parse(readable.value)
    except InvalidInput as wrong:
        mistakes += [replace(m, path=readable.path(m.path)) for m in wrong.mistakes]
        return None


def _place_in_document(mistake: Mistake) -> tuple[bool, list[int]]:
    return bool(mistake.place), [part for part in mistake.path if isinstance(part, int)]


def _idle_limits(limits: Mapping[str, int], plan: ActionPlan) -> list[str]:
    """Say which of a document's limits bound nothing that the plan does."""
    held = {token for action in plan.actions for token in action.tokens}
    held |= {f"{token.partition(':')[0]}:*" for token in held}
    return [f"limit {token!r} bounds nothing in this plan" for token in limits if token not in held]
