# SPDX-License-Identifier: Apache-2.0
"""Reads the short form of a rolling update: a group of instances, and what is to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import Mistake, accepted
from planner.plan.extent import labelled
from planner.planners.rolling_update import members
from planner.planners.rolling_update.decide import Groups
from planner.planners.rolling_update.definitions import Configuration
from planner.planners.rolling_update.members import Member
from planner.planners.rolling_update.template import Group
from planner.planners.rolling_update.update_policy import UpdatePolicy

#: Fields of the long form, which has two templates.
LONG_FORM = ("old", "new", "parameters", "old_parameters", "groups", "files", "old_files")
#: The name of the definition in messages: ``image of change changed``.
_CHANGE = "change"


def read(document: Mapping[str, Any], mistakes: list[Mistake]) -> Groups:
    """Return the group before and after, and its members; append mistakes.

    ``was`` of the group is the definition that members have now: with it, a rollback can create
    them again.
    """
    for field in LONG_FORM:
        if field in document:
            text = "'group' and 'change' are the short form of two templates: take one of them"
            mistakes.append(Mistake(text, (field,)))
    group = document["group"]
    found = _members(group["members"], document.get("facts") or {}, mistakes)
    policy = UpdatePolicy(
        min_in_service=document.get("min_in_service", 0),
        max_batch_size=document.get("max_batch", 1),
        pause_s=document.get("pause_s", 0),
    )
    name = group.get("name") or document.get("name") or "group"
    old = _group(name, group.get("was") or {}, len(found), None)
    new = _group(name, document["change"], len(found), policy)
    return Groups({name: old}, {name: new}, {name: found})


def _group(name: str, value: Mapping[str, Any], size: int, policy: UpdatePolicy | None) -> Group:
    return Group(
        name=name,
        configuration=Configuration(name=_CHANGE, value=value),
        places={},
        desired=size,
        least=0,
        most=None,
        policy=policy,
    )


def _members(raw: Any, facts: Mapping[str, Any], mistakes: list[Mistake]) -> list[Member]:
    path = ("group", "members")
    if isinstance(raw, Mapping):
        return _of_facts(raw["from_facts"], facts, mistakes)
    entries = [one if isinstance(one, Mapping) else {"id": one} for one in raw]
    return members.read(entries, path, mistakes)


def _of_facts(
    wanted: Mapping[str, Any], facts: Mapping[str, Any], mistakes: list[Mistake]
) -> list[Member]:
    """Return the instances that the facts have in a server group, on hosts with labels, or both."""
    instances: Mapping[str, Mapping[str, Any]] = facts.get("instances") or {}
    path = ("group", "members", "from_facts")
    found = dict(instances)
    if "server_group" in wanted:
        groups = {str(g.get("name")): g for g in (facts.get("server_groups") or {}).values()}
        name = wanted["server_group"]
        if name not in groups:
            text = f"no server group {name!r} in the facts; {accepted(name, groups)}"
            mistakes.append(Mistake(text, (*path, "server_group")))
            return []
        inside = set(groups[name].get("members") or ())
        found = {uuid: fact for uuid, fact in found.items() if uuid in inside}
    labels = wanted.get("label") or {}
    if labels:
        having = labelled(facts, labels).items()
        hosts = {fact.get("name") or known_as for known_as, fact in having}
        found = {uuid: fact for uuid, fact in found.items() if fact.get("host") in hosts}
    if not found:
        mistakes.append(Mistake("no instance of the facts is meant", path))
    made = [
        Member(id=uuid, name=fact.get("name"), failed=fact.get("status") == "ERROR")
        for uuid, fact in found.items()
    ]
    return sorted(made, key=lambda member: (member.name or "", member.id))
