# SPDX-License-Identifier: Apache-2.0
"""Reads the documents and plans that a command line names, and writes plans to files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from applier.cli.session import Session
from applier.errors import ConfigurationError, OutOfDate, PlanNotFound
from planner.errors import InvalidInput, Mistake
from planner.model import ActionPlan
from planner.visible_text import HIDDEN, visible_json

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.cli.arguments import SetOptions
    from planner.documents import Document

STDIN, LAST = "-", "last"


class NoFileNorPlan(PlanNotFound):
    """Neither a file nor a stored plan has the given name."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.args = (f"there is no file {reference!r}, and {self}",)


def is_file(name: str) -> bool:
    """Return True for a readable path, such as a file or a pipe; not for a folder or ``last``."""
    if name == LAST:
        return False
    return name == STDIN or (os.path.exists(name) and not os.path.isdir(name))


def stored_plan(session: Session, name: str) -> ActionPlan:
    """Load a stored plan by a reference that is not the name of a file; raises PlanNotFound."""
    try:
        return session.plan(name)
    except PlanNotFound as reason:
        if reason.candidates:
            raise
        raise NoFileNorPlan(name) from reason


def opened(name: str) -> Document:
    """Read a document from a file, or from standard input for ``-``; raises InvalidInput."""
    from planner import documents

    if name != STDIN:
        return documents.read(name)
    return documents.parse(sys.stdin.buffer.read(), "standard input")


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


def rendered(value: Mapping[str, Any], form: str) -> str:
    """Return a value as JSON or YAML text."""
    if form == "json":
        return visible_json(value, indent=1) + "\n"
    import yaml

    # A copy through JSON has no shared objects, which YAML would write as anchors.
    text = json.dumps(value, ensure_ascii=False)
    shown_as_it_is = not HIDDEN.search(text)
    return yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=shown_as_it_is)


def shown(session: Session, plan: ActionPlan, form: str) -> str:
    """Return a plan as JSON or YAML text without its hidden values.

    The digest is that of the plan itself, so a copy without some values is refused as a plan.
    """
    from applier.operations import hidden_values

    value = hidden_values.without(plan, session.action_types).to_dict()
    return rendered({**value, "digest": plan.digest}, form)


def write(path: str, plan: ActionPlan) -> None:
    """Write a plan, with all values, to the file of ``--out``; raises ConfigurationError."""
    write_text(path, rendered(plan.to_dict(), "json"))


def write_text(path: str, text: str) -> None:
    """Write text to the file of ``--out``; raises ConfigurationError."""
    from applier import whole_files

    try:
        whole_files.write(path, text.encode())
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else reason
        raise ConfigurationError(f"--out {path} cannot be written: {why}") from reason
