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
from applier.errors import ApplierError, ConfigurationError, PlanNotFound
from planner.errors import InvalidInput, InvalidPlan, Mistake
from planner.model import ActionPlan
from planner.states import PlanState

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.cli.set_options import SetOptions
    from planner.documents import Document

STDIN, LAST = "-", "last"


class OutOfDate(ApplierError):
    """A saved plan whose content was changed."""


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
    """Load a stored plan by a name that could also be a file's; raises PlanNotFound."""
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
) -> ActionPlan:
    """Make a plan of a document, or read a saved plan.

    ``on_failure`` becomes part of a new plan. Raises OutOfDate for a saved plan that was changed,
    and InvalidInput for planning settings with a saved plan.
    """
    from planner import make_plan, saved

    if saved.is_plan(document):
        refuse_planning(settings, planner)
        return _saved(document)
    plan = make_plan(document, planner, settings.options, conf, check_types=check_types)
    return with_policy(plan, settings)


def with_policy(plan: ActionPlan, settings: SetOptions) -> ActionPlan:
    """Return the plan with the ``on_failure`` that was set, if it was set."""
    return replace(plan, on_failure=settings.on_failure or plan.on_failure)


def _saved(document: Document) -> ActionPlan:
    from planner import saved

    try:
        return saved.read_plan(document)
    except InvalidInput as wrong:
        if all(mistake.path == ("digest",) for mistake in wrong.mistakes):
            raise OutOfDate(str(wrong)) from wrong
        raise
    except InvalidPlan as wrong:
        place = document.source
        raise InvalidInput(Mistake(text, place=place) for text in wrong.problems) from wrong


def refuse_begun(plan: ActionPlan, document: Document) -> None:
    """Raise InvalidInput for a saved plan that was started: its states belong to another store."""
    if plan.state is not PlanState.RECOMMENDED:
        text = f"the plan is {plan.state}: only {PlanState.RECOMMENDED} plans come into a record"
        raise InvalidInput([Mistake(text, ("state",))]).located(document.locate)


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
        return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    import yaml

    # A copy through JSON has no shared objects, which YAML would write as anchors.
    return yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False, allow_unicode=True)


def shown(session: Session, plan: ActionPlan, form: str) -> str:
    """Return a plan as JSON or YAML text without its hidden values.

    The digest is that of the plan itself, so a copy without some values is refused as a plan.
    """
    from applier.cli import hidden_values

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
