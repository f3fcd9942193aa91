# SPDX-License-Identifier: Apache-2.0
"""Reads saved action plans (format 2.0), from files or from other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from planner import checking, documents, graph, secret_references
from planner.documents import Document
from planner.errors import InvalidInput, Mistake
from planner.model import VERSION, ActionPlan
from planner.saved_schema import SCHEMA


def is_plan(document: Document) -> bool:
    """Return whether a document is an action plan: no other document has a field ``version``."""
    return isinstance(document.value, Mapping) and "version" in document.value


def read_plan(document: Mapping[str, Any] | str | FilePath | Document) -> ActionPlan:
    """Read and check an action plan; raises InvalidInput with every mistake, or InvalidPlan.

    If the digest does not fit, the plan was changed after it was made, and is refused. A digest of
    an older version is checked by the rules of that version. A plan without a digest is accepted.
    """
    read = documents.as_document(document)
    found = checking.compiled(SCHEMA)(read.value)
    if not found and read.value["version"] != VERSION:
        text = f"version {read.value['version']!r} is not supported, only {VERSION!r}"
        found = [Mistake(text, ("version",))]
    if found:
        raise InvalidInput(found).located(read.locate)
    plan = ActionPlan.from_dict(read.value)
    graph.validate(plan.actions)
    written = read.value.get("digest")
    if written is not None and not plan.has_digest(written):
        text = "does not fit the plan: it was changed after it was made; make it again"
        if any(secret_references.has_hidden(action.input_parameters) for action in plan.actions):
            text = "values are hidden in this copy, which was shown; 'create --out' writes all"
        raise InvalidInput([Mistake(text, ("digest",))]).located(read.locate)
    return plan
