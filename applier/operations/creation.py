# SPDX-License-Identifier: Apache-2.0
"""Makes plans of documents, with the settings and the cloud of whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from applier.errors import ConfigurationError, OutOfDate
from planner.errors import InvalidInput, Mistake
from planner.model import ActionPlan

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.assembly import Assembly
    from applier.operations.settings import SetOptions
    from planner.documents import Document


def planned(
    document: Document,
    settings: SetOptions,
    conf: cfg.ConfigOpts,
    *,
    planner: str | None = None,
    check_types: bool = True,
    cloud: str | None = None,
) -> ActionPlan:
    """Make a plan of a document, or read a saved plan.

    ``on_failure`` becomes part of a new plan. Raises OutOfDate for a saved plan that was changed,
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
        conf,
        check_types=check_types,
        cloud=cloud,
    )
    return with_policy(plan, settings)


def with_policy(plan: ActionPlan, settings: SetOptions) -> ActionPlan:
    """Return the plan with the ``on_failure`` that was set, if it was set."""
    return replace(plan, on_failure=settings.on_failure or plan.on_failure)


def _saved(document: Document, *, check_types: bool) -> ActionPlan:
    from planner import planning, registry, saved

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
    places = [f"--set {text}" for text in settings.planning]
    if planner is not None:
        places.append(f"--planner {planner}")
    if places:
        text = "has no effect: this plan is already made; make a new one from its document"
        raise InvalidInput(Mistake(text, place=place) for place in places)


def with_facts(document: Document, assembly: Assembly, cloud: str | None) -> Document:
    """Return the document with the facts of the configured cloud, if ``cloud`` is its plugin.

    Without ``cloud`` the document is returned unchanged. Raises InvalidInput if the document has
    facts already or cannot have any, ConfigurationError if another cloud is configured.
    """
    if cloud is None:
        return document
    place = f"--facts-from {cloud}"
    value: Any = document.value
    if not isinstance(value, Mapping) or document.is_plan or value.get("kind") not in _WITH_FACTS:
        text = "only documents of kind 'solution' have facts"
        raise InvalidInput([Mistake(text, place=place)])
    if value.get("facts"):
        text = "the document has facts already: leave out the option, or the field 'facts'"
        raise InvalidInput([Mistake(text, place=place)])
    from planner import registry

    configured = assembly.cloud()
    if not isinstance(configured, registry.load(registry.CLOUDS, cloud)):
        raise ConfigurationError(f"{place}: the configured cloud is {configured.name}")
    return replace(document, value={**value, "facts": assembly.facts()})


_WITH_FACTS = (None, "solution")
