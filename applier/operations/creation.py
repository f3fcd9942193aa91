# SPDX-License-Identifier: Apache-2.0
"""Makes plans: of documents, with settings and facts, and of plans that are to be undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from applier.assembly import Assembly
from applier.contracts import ActionPlugin
from applier.errors import ActionFailed, ConfigurationError, OutOfDate
from applier.operations import Operator, refusals
from applier.scheduling.failures import OnFailure
from planner.errors import InvalidInput, Mistake, PlannerError, accepted
from planner.guards import SETTABLE, Guards, read_setting
from planner.making.guarding import NO_DEMANDS, Demands
from planner.plan.model import ActionPlan, Touch
from planner.schemas.ranges import whole_number

if TYPE_CHECKING:
    from oslo_config import cfg

    from planner.documents import Document

POLICIES = tuple(str(policy) for policy in OnFailure)


@dataclass
class SetOptions:
    """The values of parsed ``KEY=VALUE`` settings.

    ``options`` are those of the planner by name, ``guards`` the guards by name. ``max_workers`` and
    ``on_failure`` are for the run. ``planning`` has the texts of all settings that change planning,
    which a saved plan does not accept.
    """

    options: dict[str, Any] = field(default_factory=dict)
    max_workers: int | None = None
    on_failure: str | None = None
    planning: list[str] = field(default_factory=list)
    guards: dict[str, Any] = field(default_factory=dict)


def read_settings(texts: Sequence[str], place: str = "--set") -> SetOptions:
    """Parse all settings; raises InvalidInput with every mistake.

    ``TYPE.OPTION=VALUE`` sets the value of one action type. ``place`` is where settings are given.

    >>> read_settings(["migrate.parallelization=2", "ordering=slots", "max_workers=4"]).options
    {'parallelization': {'migrate': '2'}, 'ordering': 'slots'}
    """
    settings = SetOptions()
    wrong = []
    for text in texts:
        reason = _read_setting(settings, text)
        if reason:
            wrong.append(Mistake(reason, place=f"{place} {text}"))
    if wrong:
        raise InvalidInput(wrong)
    return settings


def _read_setting(settings: SetOptions, text: str) -> str | None:
    """Store one setting; return the mistake in it, or None."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        return "KEY=VALUE is expected, such as migrate.parallelization=2"
    if key == "max_workers":
        settings.max_workers = whole_number(value)
        return None if settings.max_workers else f"{value!r} is not a whole number of 1 or more"
    if key == "on_failure":
        settings.on_failure = value
        return None if value in POLICIES else f"{value!r} is not one; {accepted(value, POLICIES)}"
    settings.planning.append(text)
    if key in SETTABLE:
        return _read_guard(settings.guards, key, value)
    return _read_option(settings.options, key, value)


def _read_guard(guards: dict[str, Any], key: str, value: str) -> str | None:
    try:
        guards[key] = read_setting(key, value)
    except ValueError as wrong:
        return str(wrong)
    return None


def _read_option(options: dict[str, Any], key: str, value: str) -> str | None:
    action_type, dot, option = key.rpartition(".")
    if not option or (dot and not action_type):
        return "KEY=VALUE is expected, such as migrate.parallelization=2"
    known = options.get(option)
    if known is not None and isinstance(known, str) == bool(dot):
        return f"{option} is set for all types and for single ones: use only one of these"
    if dot:
        options.setdefault(option, {})[action_type] = value
    else:
        options[option] = value
    return None


def planned(
    assembly: Assembly,
    document: Document,
    settings: SetOptions,
    planner: str | None = None,
    *,
    check_types: bool = True,
    for_cloud: bool = True,
) -> ActionPlan:
    """Make a plan of a document, or read a saved plan.

    A new plan is for the configured cloud, or with ``for_cloud`` unset for none; ``on_failure``
    becomes part of it. Raises OutOfDate for a saved plan that was changed,
    and InvalidInput for planning settings with a saved plan.
    """
    from planner import make_plan

    if document.is_plan:
        refuse_planning(settings, planner)
        return _saved(document, check_types=check_types)
    plan = make_plan(
        document,
        planner,
        settings.options,
        assembly.conf,
        check_types=check_types,
        cloud=assembly.cloud_name if for_cloud else None,
        demands=demands_of(settings, assembly.conf),
    )
    return with_policy(plan, settings)


def demands_of(settings: SetOptions, conf: cfg.ConfigOpts) -> Demands:
    """Return the guards that were set, and those of the configuration that shape a plan."""
    at_once = conf.watcher_applier.blast_radius_at_once
    if not (at_once or settings.guards):
        return NO_DEMANDS
    return Demands(settings.guards, Guards(blast_radius_at_once=at_once or ()))


def with_policy(plan: ActionPlan, settings: SetOptions) -> ActionPlan:
    """Return the plan with the ``on_failure`` that was set, if it was set."""
    return replace(plan, on_failure=settings.on_failure or plan.on_failure)


def _saved(document: Document, *, check_types: bool) -> ActionPlan:
    from planner.making import planning, registry, saved

    try:
        plan = saved.read_plan(document)
    except InvalidInput as wrong:
        if all(mistake.path == ("digest",) for mistake in wrong.mistakes):
            raise OutOfDate(str(wrong)) from wrong
        raise
    if check_types:
        known = registry.ActionTypes()
        saved.require_known_types(plan, document, known, planning.ParameterCheck(known))
    return plan


def refuse_planning(settings: SetOptions, planner: str | None) -> None:
    """Raise InvalidInput for settings that only planning uses: the plan is already made."""
    places = [f"set {text}" for text in settings.planning]
    if planner is not None:
        places.append(f"planner {planner}")
    if places:
        text = "has no effect: this plan is already made; make a new one from its document"
        raise InvalidInput(Mistake(text, place=place) for place in places)


def with_facts(document: Document, assembly: Assembly, cloud: str | None = None) -> Document:
    """Return the document with the facts of the configured cloud, if ``cloud`` is its plugin.

    Without ``cloud``, only the attachments of its volumes are added: see :func:`_attachments`.
    Raises InvalidInput if the document has facts already or cannot have any, and if another cloud
    is configured.
    """
    if cloud is None:
        found = {} if document.is_plan else _attachments(document.value, assembly)
        facts = found and {**(document.value.get("facts") or {}), "volumes": found}
        return replace(document, value={**document.value, "facts": facts}) if facts else document
    place = f"facts from {cloud}"
    value: Any = document.value
    if not isinstance(value, Mapping) or document.is_plan or not _has_facts(value, assembly.conf):
        text = "plans, and documents of this kind, have no facts"
        raise InvalidInput([Mistake(text, place=place)])
    if value.get("facts"):
        text = "the document has facts already: leave out the option, or the field 'facts'"
        raise InvalidInput([Mistake(text, place=place)])
    from planner.making import registry

    configured = assembly.cloud()
    if not isinstance(configured, registry.load(registry.CLOUDS, cloud)):
        text = f"the configured cloud is {configured.name}"
        raise InvalidInput([Mistake(text, place=place)])
    return replace(document, value={**value, "facts": assembly.facts()})


def _attachments(value: Any, assembly: Assembly) -> dict[str, Any]:
    """Return ``facts.volumes`` of a solution, with the instance of each volume that it changes.

    Empty unless it changes volumes and instances, and if the cloud does not answer; the planner
    warns of volumes that it does not find there.
    """
    actions = value.get("actions") if isinstance(value, Mapping) else None
    try:
        if not isinstance(actions, list) or not _has_facts(value, assembly.conf):
            return {}
    except PlannerError:  # told when the document is planned, with its line
        return {}
    touched = {t.resource for action in actions for t in _touches(action, assembly.plugins)}
    known = (value.get("facts") or {}).get("volumes") or {}
    asked = {r.partition(":")[2] for r in touched if r.startswith("volume:")} - set(known)
    if not asked or not any(r.startswith("instance:") for r in touched):
        return {}
    try:
        found = {name: assembly.cloud().volume(name) for name in sorted(asked)}
    except (ActionFailed, ConnectionError, ConfigurationError):
        return {}
    return {**known, **{name: {"instance": (v or {}).get("instance")} for name, v in found.items()}}


def _touches(action: Any, plugins: Mapping[str, type[ActionPlugin]]) -> Iterable[Touch]:
    """Return what an entry of a document touches; mistakes in it are found when it is planned."""
    from planner.planners.solution import about

    with suppress(AttributeError, KeyError, TypeError, PlannerError):
        given = action.get("input_parameters") or {}
        name, parameters = (
            action["action_type"],
            {"resource_id": action.get("resource_id"), **given},
        )
        return about(name, plugins[name], parameters).touches
    return ()


def _has_facts(value: Mapping[str, Any], conf: cfg.ConfigOpts) -> bool:
    """Return whether the planner of a document reads a field ``facts``."""
    from planner.making import planning

    return "facts" in planning.choose(value, None, conf).SCHEMA.get("properties", {})


def roll_back(assembly: Assembly, operator: Operator, plan: ActionPlan) -> ActionPlan:
    """Make a plan that undoes another in reverse order, and store it.

    Raises PlanConflict while somebody runs the other plan, OtherCloud, PlannerError.
    """
    from applier.run import rolling_back

    taken = refusals.already_running(assembly.store, plan.uuid)
    if taken:
        raise taken
    entry = operator.entry(rolling_back.VERB, f"undoes plan {plan.uuid}")
    return rolling_back.roll_back(assembly, plan, entry)
