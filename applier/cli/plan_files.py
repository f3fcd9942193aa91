# SPDX-License-Identifier: Apache-2.0
"""Writes plans and other values as text, also to the files that a command line names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from applier.cli.session import Session
from applier.errors import ConfigurationError
from planner.model import ActionPlan
from planner.visible_text import HIDDEN, visible_json


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
