# SPDX-License-Identifier: Apache-2.0
"""Makes a plan from a document: chooses the planner, merges the options, checks everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path as FilePath
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from oslo_config import cfg

from planner import documents
from planner.contract import ActionType, Planner, Surroundings
from planner.documents import Document, named_files
from planner.errors import BrokenPlugin, InvalidInput, Mistake, Path, UnknownPlugin, accepted
from planner.making import guarding, registry
from planner.making import options as planning_options
from planner.making.guarding import NO_DEMANDS, Demands
from planner.plan import deadlocks, graph
from planner.plan.extent import listed
from planner.plan.model import ActionPlan, Touch
from planner.schemas import checking, hidden_values


def make_plan(
    document: Mapping[str, Any] | str | FilePath | Document,
    planner: str | None = None,
    options: Mapping[str, Any] | None = None,
    conf: cfg.ConfigOpts | None = None,
    *,
    check_types: bool = True,
    cloud: str | None = None,
    demands: Demands = NO_DEMANDS,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
) -> ActionPlan:
    """Make a plan from a document, or from the path of one.

    ``planner`` and ``options`` (by name: ``{"weights": {"nop": 70}}``) take precedence over those
    in the document, these over ``conf``, and ``conf`` over the defaults. Without ``conf``, no
    configuration file is read. With ``check_types=False``, unknown action types and parameters are
    accepted unchecked, with a warning for each type. ``cloud`` is the name of the cloud that the
    plan is for, unless the ``facts`` of the document name another. ``demands`` are guards besides
    those of the document. Raises PlannerError; an InvalidInput lists every mistake with its place.
    """
    read = read_problem(
        document,
        planner,
        conf,
        check_types=check_types,
        cloud=cloud,
        demands=demands,
        now=now,
        new_id=new_id,
    )
    return read.plan(options or {})


def read_problem(
    document: Mapping[str, Any] | str | FilePath | Document,
    planner: str | None = None,
    conf: cfg.ConfigOpts | None = None,
    *,
    check_types: bool = True,
    cloud: str | None = None,
    demands: Demands = NO_DEMANDS,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
) -> ReadProblem:
    """Read and check a document once, so that it can be planned with several sets of options.

    The arguments are those of :func:`make_plan`. Raises PlannerError. Mistakes in the content of
    the document are raised later, by :meth:`ReadProblem.plan`, together with those in the options.
    """
    read = documents.as_document(document)
    conf = planning_options.configuration(conf)
    known = registry.ActionTypes()
    with _located(read):
        if not isinstance(read.value, Mapping):
            raise InvalidInput([Mistake("a mapping with 'actions' or a 'kind' is expected")])
        chosen = choose(read.value, planner, conf)
        read = named_files.completed(read, chosen)
    surroundings = Surroundings(
        now=now,
        new_id=new_id,
        action_type=known.__getitem__,
        check=ParameterCheck(known),
        check_types=check_types,
        locate=read.locate,
    )
    return replace(parse(chosen, read, conf, surroundings), cloud=cloud, demands=demands)


def parse(
    planner: type[Planner[Any]],
    document: Document,
    conf: cfg.ConfigOpts,
    surroundings: Surroundings,
) -> ReadProblem:
    """Check a document against the schema of its planner, and parse the part without mistakes.

    Mistakes are in the result, not raised. Raises BrokenPlugin if the schema itself is wrong.
    """
    try:
        check = check_of(planner)
    except ValueError as reason:
        raise BrokenPlugin("planner", planner.NAME, str(reason)) from reason
    refused = check(document.value)
    readable = checking.readable(check, document.value, refused)
    maker = planner(surroundings)
    problem, unparsed = None, tuple[Mistake, ...]()
    if readable is not None:
        try:
            problem = maker.parse(readable.value)
        except InvalidInput as wrong:
            unparsed = tuple(m._replace(path=readable.path(m.path)) for m in wrong.mistakes)
    return ReadProblem(maker, document, problem, conf, tuple(refused), unparsed)


@cache
def check_of(planner: type[Planner[Any]]) -> checking.Check:
    """Compile the schema of a planner, once for each class.

    Raises ValueError when the schema itself is wrong.
    """
    return checking.compiled(planner.SCHEMA)


@dataclass(frozen=True)
class ReadProblem:
    """A document that was read and checked; :meth:`plan` may be called several times.

    ``problem`` is None if the document could not be parsed. ``refused`` are the mistakes that the
    schema found, ``unparsed`` those that the planner found. ``cloud`` is the name of the cloud for
    documents that name none, ``demands`` are guards besides those of the document.
    """

    planner: Planner[Any]
    document: Document
    problem: Any
    conf: cfg.ConfigOpts
    refused: Sequence[Mistake]
    unparsed: Sequence[Mistake]
    cloud: str | None = None
    demands: Demands = NO_DEMANDS

    def resolve(self, options: Mapping[str, Any]) -> SimpleNamespace:
        """Return the value of each option of the planner; raises InvalidInput with all mistakes."""
        return self._settings(options)[0]

    def plan(self, options: Mapping[str, Any]) -> ActionPlan:
        """Check options and configuration, and make a plan; raises InvalidInput, InvalidPlan."""
        resolved, limits = self._settings(options)
        with _located(self.document):
            plan = self.planner.plan(self.problem, resolved)
            plan = _with_whole_paths(plan, self.document, self.planner.surroundings)
        plan = _completed(plan, self.document, limits, self.cloud)
        value = self.document.value
        if value.get("facts") or value.get("guards") or self.demands != NO_DEMANDS:
            with _located(self.document):
                plan = guarding.guarded(plan, value, self.demands)
        graph.validate(plan.actions)
        if plan.places:
            deadlocks.require_none(plan)
        return plan

    def _settings(self, options: Mapping[str, Any]) -> tuple[SimpleNamespace, Mapping[str, int]]:
        """Return the options of the planner, and the limits of the configuration."""
        planner, mistakes = type(self.planner), list(self.refused)
        layers = planning_options.layers(planner, self.conf, self.document.value, options)
        resolved = planning_options.resolve(planner, layers, mistakes)
        mistakes += planning_options.unknown_keys(planner, self.conf)
        limits = planning_options.limits_of(self.conf, mistakes)
        mistakes += self.unparsed
        if mistakes:
            found = InvalidInput(sorted(mistakes, key=_place_in_document))
            raise found.located(self.document.locate)
        return resolved, limits


def _completed(
    plan: ActionPlan, document: Document, limits: Mapping[str, int], cloud: str | None
) -> ActionPlan:
    """Return the plan with the name, cloud, limits and warnings of the document.

    Configured limits are added.
    """
    value = document.value
    own, facts = value.get("limits") or {}, value.get("facts")
    of_facts = facts.get("cloud") if isinstance(facts, Mapping) else None
    # The smaller of the configured limit and the planner's holds. A limit of the document replaces
    # both.
    both = {
        token: min(limits[token], plan.limits[token]) for token in limits if token in plan.limits
    }
    return replace(
        plan,
        name=plan.name or value.get("name"),
        cloud=plan.cloud or of_facts or cloud,
        limits={**limits, **plan.limits, **both, **own},
        warnings=tuple(
            dict.fromkeys((*map(str, document.warnings), *plan.warnings, *_idle_limits(own, plan)))
        ),
    )


def _with_whole_paths(
    plan: ActionPlan, document: Document, surroundings: Surroundings
) -> ActionPlan:
    """Return the plan with whole paths in parameters of actions that are relative to the document.

    Raises InvalidInput for such a path if the document is no file.
    """
    paths: Mapping[str, Sequence[str]] = {
        kind: getattr(surroundings.type_of(kind), "PATHS", ())
        for kind in {action.action_type for action in plan.actions}
    }
    if not any(paths.values()):
        return plan
    source = FilePath(document.source or "")
    folder = source.absolute().parent if source.is_file() else None
    actions, mistakes = [], []
    for action in plan.actions:
        given = action.input_parameters
        for name in paths.get(action.action_type, ()):
            found = given.get(name)
            relative = [path for path in listed(found) if not FilePath(path).is_absolute()]
            if relative and folder is None:
                text = f"{name} of {action.label}: {relative[0]!r} is not a whole path"
                mistakes.append(Mistake(f"{text}, and the document is not a file in a folder"))
            elif relative and folder is not None:
                whole = [str(folder / path) for path in listed(found)]
                given = {**given, name: whole if isinstance(found, list) else whole[0]}
        actions.append(replace(action, input_parameters=given))
    if mistakes:
        raise InvalidInput(mistakes)
    return replace(plan, actions=tuple(actions))


@contextmanager
def _located(document: Document) -> Iterator[None]:
    """Add file and line to each mistake of an InvalidInput that is raised in the block."""
    try:
        yield
    except InvalidInput as wrong:
        raise wrong.located(document.locate) from wrong.__cause__


def choose(
    value: Mapping[str, Any], planner: str | None, conf: cfg.ConfigOpts
) -> type[Planner[Any]]:
    """Choose the planner: by name, else by the document, else by its kind, else by configuration.

    Raises InvalidInput when the planner does not read documents of this kind, or the document is an
    action plan. Raises UnknownPlugin when ``planner`` is not installed.
    """
    if "version" in value:
        raise InvalidInput([Mistake("this is an action plan: it is made already", ("version",))])
    kind = value.get("kind", "solution")
    if not isinstance(kind, str):
        raise InvalidInput([Mistake(f"{kind!r} is not a kind of document", ("kind",))])
    name, place = planner or value.get("planner"), None
    if name is None:
        name, place = planning_options.configured_planner(conf)
        name = name if kind == "solution" else kind
        if kind not in ("solution", *registry.names(registry.PLANNERS)):
            kinds = (registry.planner(n).KIND for n in registry.names(registry.PLANNERS))
            known = {"solution", *kinds}
            raise InvalidInput([Mistake(f"no kind {kind!r}; {accepted(kind, known)}", ("kind",))])
    if not isinstance(name, str):
        raise InvalidInput([Mistake(f"{name!r} is not the name of a planner", ("planner",))])
    try:
        found = registry.planner(name)
    except UnknownPlugin as unknown:
        if planner:
            raise
        path = () if place else ("planner",)
        raise InvalidInput([Mistake(str(unknown), path, place)]) from unknown
    if kind != found.KIND:
        text = f"planner {name!r} reads documents of kind {found.KIND!r}, this is {kind!r}"
        raise InvalidInput([Mistake(text, ("kind",) if "kind" in value else ())])
    return found


class ParameterCheck:
    """Checks parameters against the schema of their action type.

    A reference to a secret is accepted in place of a text, unless the resources that the action
    touches depend on the text: a plan has to name them.
    """

    def __init__(self, known: Mapping[str, type[ActionType]]) -> None:
        self._known = known

    def __call__(self, name: str, parameters: Mapping[str, Any]) -> Sequence[Mistake]:
        """List the mistakes; raises BrokenPlugin if the schema itself is wrong."""
        try:
            check = _check_of(self._known[name])
        except ValueError as reason:
            raise BrokenPlugin("action type", name, str(reason)) from reason
        return check(parameters) or [
            Mistake("it decides what the action works on, so it cannot be a secret", path)
            for path in hidden_values.places(parameters)
            if self._touches(name, parameters, path, "a") != self._touches(name, parameters, path)
        ]

    def _touches(
        self, name: str, parameters: Mapping[str, Any], secret: Path, value: str = "b"
    ) -> Sequence[Touch]:
        """List the touches of an action if the reference at the path ``secret`` has this value."""

        def text(path: Path, _: str) -> str:
            return value if path == secret else "c"

        return list(self._known[name].touches(hidden_values.replaced(parameters, text)))


@cache
def _check_of(kind: type[ActionType]) -> checking.Check:
    return checking.compiled(hidden_values.accepting(kind.SCHEMA))


def _place_in_document(mistake: Mistake) -> tuple[bool, list[int]]:
    return bool(mistake.place), [part for part in mistake.path if isinstance(part, int)]


def _idle_limits(limits: Mapping[str, int], plan: ActionPlan) -> list[str]:
    """Return a warning for each limit of a document whose token no action holds."""
    if not limits:
        return []
    held = {token for action in plan.actions for token in action.tokens}
    held |= plan.places.keys()
    held |= {f"{token.partition(':')[0]}:*" for token in held}
    return [
        f"limit {token!r} has no effect: no action of this plan holds it"
        for token in limits
        if token not in held
    ]
