# SPDX-License-Identifier: Apache-2.0
"""Reads the documents and plans that a command line names, and writes plans to files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from applier.cli.session import Session
from applier.errors import ConfigurationError, PlanNotFound
from planner.model import ActionPlan
from planner.visible_text import HIDDEN, visible_json

if TYPE_CHECKING:
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
