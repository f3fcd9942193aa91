# SPDX-License-Identifier: Apache-2.0
"""Writes plans and other values as text, also to the files that a command line names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from applier import whole_files
from applier.cli.session import Session
from applier.errors import ConfigurationError
from planner.model import ActionPlan
from planner.safe_text import HIDDEN, visible_json


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

    The digest is that of the plan with its hidden values, so reading the text as a plan fails if
    a value is left out. While a process runs the plan, ``limits_now`` has the limits that apply,
    if operators have changed some.
    """
    from applier.operations import changed_limits, hidden_values

    value = hidden_values.without(plan, session.action_types).to_dict()
    changed = changed_limits.holding_now(session.store, plan)
    now = {"limits_now": {**plan.limits, **changed}} if changed else {}
    return rendered({**value, **now, "digest": plan.digest}, form)


def write(path: str, plan: ActionPlan) -> None:
    """Write a plan, with all values, to the file of ``--out``; raises ConfigurationError."""
    write_text(path, rendered(plan.to_dict(), "json"))


def write_text(
    path: str, text: str, option: str = "--out", *, unfinished: str = whole_files.UNFINISHED
) -> None:
    """Write text to the file that an option names; raises ConfigurationError.

    ``unfinished`` is the prefix of the temporary file: see :func:`applier.whole_files.write`.
    """
    try:
        whole_files.write(path, text.encode(), unfinished=unfinished)
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else reason
        raise ConfigurationError(f"{option} {path} cannot be written: {why}") from reason


def make_folder(path: str, option: str) -> None:
    """Make the folder that an option names, unless it exists; raises ConfigurationError."""
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else reason
        raise ConfigurationError(f"{option} {path} cannot be made: {why}") from reason
