# SPDX-License-Identifier: Apache-2.0
"""Documents of ``kind: rollout``: their JSON Schema, and the nodes.

Nodes are listed, or have labels of the facts, or are those of another document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, accepted
from planner.plan.extent import labelled, listed
from planner.planners import serial_fields
from planner.planners.solution_schema import COMMON
from planner.planners.solution_schema import SCHEMA as SOLUTION
from planner.schemas import ranges

_NAME = {
    **ranges.RESOURCE,
    "type": ["string", "integer"],
    "pattern": r"^[^/\s]+$",
    "title": "a name: no blanks, no '/'",
}
NODE: dict[str, Any] = {
    **_NAME,
    "type": ["string", "integer", "object"],
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "address": {**ranges.ARGUMENT, "description": "[user@]host[:port]; else it is simulated."},
        "rack": ranges.NAME,
        "roles": {**ranges.NAME, "type": ["string", "array"], "items": ranges.NAME},
    },
}
#: Fields of a step besides its type, which maps to its main parameter or to its parameters.
STEP_FIELDS: dict[str, Any] = {
    "name": {**_NAME, "description": "Unique; the type where left out."},
    "estimate_s": ranges.SECONDS_OR_NULL,
    "timeout_s": ranges.POSITIVE_SECONDS_OR_NULL,
    "retries": ranges.COUNT,
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "rollout",
    "description": "Steps on each of several nodes, so many nodes at a time.",
    "type": "object",
    "required": ["kind", "name", "nodes", "steps"],
    "additionalProperties": False,
    "properties": {
        **COMMON,
        "name": {**_NAME, "type": "string"},
        "nodes": {
            "type": ["array", "object"],
            "items": NODE,
            "minItems": 1,
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                "label": {
                    "type": "object",
                    **ranges.BY_NAME,
                    "minProperties": 1,
                    "additionalProperties": ranges.NAME,
                    "description": "Hosts of the facts that have these labels.",
                },
                "role": {**ranges.NAME, "description": "Only nodes with this role."},
                "from": {
                    **ranges.ARGUMENT,
                    "description": "A file with nodes, such as a deployment, relative to this one.",
                },
                "document": {
                    "type": ["object", "array"],
                    "description": "What such a file holds; instead of it.",
                },
            },
        },
        "serial": serial_fields.SERIAL,
        "canary": serial_fields.CANARY,
        "stop_after": {
            **serial_fields.STOP_AFTER,
            "type": ["integer", "string", "object"],
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                "rack": {**serial_fields.NUMBER, "description": "The same for each rack."},
                "role": {**serial_fields.NUMBER, "description": "The same for each role."},
            },
        },
        "keep": serial_fields.KEEP,
        "order": {"enum": ["as given", "spread"], "description": "spread: racks in turn."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "minProperties": 1, "properties": STEP_FIELDS},
        },
        "facts": SOLUTION["properties"]["facts"],
    },
}


class RolloutNode(NamedTuple):
    """A node, and where it is reached; without an address it is simulated."""

    name: str
    address: str | None = None
    rack: str | None = None
    roles: tuple[str, ...] = ()

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return its racks or its roles; ``kind`` is ``rack`` or ``role``."""
        return self.roles if kind == "role" else () if self.rack is None else (self.rack,)


def read_nodes(document: Mapping[str, Any], mistakes: list[Mistake]) -> list[RolloutNode]:
    """Return the nodes of a rollout in its order; append the mistakes."""
    raw = document["nodes"]
    if isinstance(raw, list):
        nodes = [_node(one) for one in raw]
        _note_twice(nodes, ("nodes",), mistakes)
    elif "document" in raw:
        nodes = _of_document(raw, mistakes)
    else:
        nodes = _of_facts(document, raw, mistakes)
    return spread(nodes) if document.get("order") == "spread" else nodes


def _node(raw: Any) -> RolloutNode:
    if not isinstance(raw, Mapping):
        return RolloutNode(str(raw))
    name = raw["uid"] if "uid" in raw else raw["name"]
    roles = tuple(str(role) for role in listed(raw.get("roles")))
    return RolloutNode(str(name), raw.get("address"), raw.get("rack"), roles)


def _note_twice(nodes: Sequence[RolloutNode], path: Path, mistakes: list[Mistake]) -> None:
    seen: set[str] = set()
    for i, node in enumerate(nodes):
        if node.name in seen:
            mistakes.append(Mistake(f"the node {node.name!r} occurs twice", (*path, i)))
        seen.add(node.name)


def _of_document(raw: Mapping[str, Any], mistakes: list[Mistake]) -> list[RolloutNode]:
    """Return the nodes of a list, or of a document with ``nodes`` such as a deployment."""
    found, path = raw["document"], ("nodes", "document")
    listed = found.get("nodes") if isinstance(found, Mapping) else found
    inside: Path = (*path, "nodes") if isinstance(found, Mapping) else path
    if not isinstance(listed, list):
        text = "a list of nodes, or a document with such a list in 'nodes', is expected"
        mistakes.append(Mistake(text, path))
        return []
    nodes = []
    for i, one in enumerate(listed):
        is_named = isinstance(one, Mapping) and ("uid" in one or "name" in one)
        if is_named or (isinstance(one, str | int) and one != ""):
            nodes.append(_node(one))
        else:
            mistakes.append(Mistake("a node has a 'uid' or a 'name'", (*inside, i)))
    _note_twice(nodes, inside, mistakes)
    return _with_role(nodes, raw, mistakes)


def _of_facts(
    document: Mapping[str, Any], raw: Mapping[str, Any], mistakes: list[Mistake]
) -> list[RolloutNode]:
    """Return the hosts of the facts with these labels, by name; a role is the label ``role``."""
    labels = raw.get("label") or {}
    nodes = []
    for known_as, fact in labelled(document.get("facts") or {}, labels).items():
        own = fact.get("labels") or {}
        rack = next(iter(listed(own.get("rack"))), None)
        roles = tuple(listed(own.get("role")))
        nodes.append(RolloutNode(fact.get("name") or known_as, None, rack, roles))
    if not nodes:
        wanted = ", ".join(f"{k}={v}" for k, v in labels.items())
        text = f"no host of the facts has {wanted}" if labels else "the facts have no hosts"
        mistakes.append(Mistake(text, ("nodes", "label") if labels else ("nodes",)))
    return _with_role(sorted(nodes), raw, mistakes)


def _with_role(
    nodes: list[RolloutNode], raw: Mapping[str, Any], mistakes: list[Mistake]
) -> list[RolloutNode]:
    role = raw.get("role")
    if role is None:
        return nodes
    found = [node for node in nodes if role in node.roles]
    if nodes and not found:
        known = {known: None for node in nodes for known in node.roles}
        text = f"no node has the role {role!r}; {accepted(role, known)}"
        mistakes.append(Mistake(text, ("nodes", "role")))
    return found


def spread(nodes: Iterable[RolloutNode]) -> list[RolloutNode]:
    """Return nodes with the racks in turn, each in its own order.

    >>> [n.name for n in spread([RolloutNode(n, None, n[0]) for n in ("a1", "a2", "b1")])]
    ['a1', 'b1', 'a2']
    """
    racks: dict[str | None, list[RolloutNode]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node)
    return [node for turn in zip_longest(*racks.values()) for node in turn if node is not None]
