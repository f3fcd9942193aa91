# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans, with old and new values; hidden ones are replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from applier.operations import hidden_values
from applier.operations.differences import Comparison
from planner.differences import fields
from planner.differences.link_changes import LinkSet
from planner.differences.plans import ChangedAction, wave_numbers
from planner.errors import Path, path_text
from planner.model import Action, ActionPlan
from planner.registry import ActionTypes


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldChange:
    """A field with its old and its new value, and whether the old and the new plan have it."""

    path: Path
    old: Any
    new: Any
    is_in_old: bool
    is_in_new: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the change as a mapping, without a value that is not there."""
        value = {"field": path_text(self.path)}
        value |= {"old": self.old} if self.is_in_old else {}
        return value | ({"new": self.new} if self.is_in_new else {})


def of_action(changed: ChangedAction, types: ActionTypes) -> list[FieldChange]:
    """Return the fields of an action that differ; values that its type hides are replaced."""
    shown = (hidden_values.action_without(action, types) for action in (changed.old, changed.new))
    return _changes(changed.paths, *map(fields.of_action, shown))


def of_plan(made: Comparison) -> list[FieldChange]:
    """Return the fields of the plans that differ."""
    return _changes(made.found.paths, fields.of_plan(made.old), fields.of_plan(made.new))


def _changes(paths: Iterable[Path], old: Any, new: Any) -> list[FieldChange]:
    return [
        FieldChange(
            path=path,
            old=fields.at(old, path),
            new=fields.at(new, path),
            is_in_old=fields.has(old, path),
            is_in_new=fields.has(new, path),
        )
        for path in paths
    ]


def as_dict(made: Comparison, types: ActionTypes) -> dict[str, Any]:
    """Return a comparison as a mapping, for JSON."""
    found = made.found
    return {
        "old": _head(made.old),
        "new": _head(made.new),
        "same": found.is_empty,
        "added": _entries(found.added, made.new),
        "removed": _entries(found.removed, made.old),
        "changed": [
            {
                "old": _named(changed.old),
                "new": _named(changed.new),
                "fields": [change.as_dict() for change in of_action(changed, types)],
            }
            for changed in found.changed
        ],
        "moved": [
            {**_named(moved.new), "old_wave": moved.old_wave, "new_wave": moved.new_wave}
            for moved in found.moved
        ],
        "new_links": [_links(links) for links in found.new_links],
        "lost_links": [_links(links) for links in found.lost_links],
        "fields": [change.as_dict() for change in of_plan(made)],
        "makespan_s": {"old": made.old_s, "new": made.new_s},
    }


def _head(plan: ActionPlan) -> dict[str, Any]:
    return {"uuid": plan.uuid, "name": plan.name, "planner": plan.planner}


def _named(action: Action) -> dict[str, Any]:
    return {
        "uuid": action.uuid,
        "name": action.name,
        "action_type": action.action_type,
        "resource_id": action.resource_id,
    }


def _entries(actions: Iterable[Action], plan: ActionPlan) -> list[dict[str, Any]]:
    waves = wave_numbers(plan) if actions else {}
    return [{**_named(action), "wave": waves.get(action.uuid)} for action in actions]


def _links(links: LinkSet) -> dict[str, Any]:
    value = {"kind": links.kind, "before": list(links.before), "after": list(links.after)}
    return value | ({"outcomes": list(links.outcomes)} if links.outcomes else {})
