# SPDX-License-Identifier: Apache-2.0
"""Documents of ``kind: rollout``: their JSON Schema, and the nodes.

Nodes are listed, or have labels of the facts, or are those of another document or an inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from planner.errors import Mistake
from planner.plan.extent import labelled, listed
from planner.planners import node_fields
from planner.planners.node_fields import ListedNode, labels_text, with_role
from planner.planners.solution_schema import COMMON, FACTS
from planner.schemas import ranges
from planner.schemas.checking import repeated

_NAME = {
    **ranges.RESOURCE,
    "type": ["string", "integer"],
    "pattern": r"^[^/\s]+$",
    "title": "a name: no blanks, no '/'",
}
NODE: dict[str, Any] = {
    **_NAME,
    **ranges.mapping(
        "name",
        name=_NAME,
        address={**ranges.ARGUMENT, "description": "[user@]host[:port]; else it is simulated."},
        rack=ranges.NAME,
        roles={**ranges.NAME, "type": ["string", "array"], "items": ranges.NAME},
    ),
    "type": ["string", "integer", "object"],
}
#: Fields of a step besides its type, which maps to its main parameter or to its parameters.
STEP_FIELDS: dict[str, Any] = {
    "name": {**_NAME, "description": "Unique; the type where left out."},
    "estimate_s": ranges.SECONDS_OR_NULL,
    "timeout_s": ranges.POSITIVE_SECONDS_OR_NULL,
    "retries": ranges.COUNT,
}
SCHEMA: dict[str, Any] = ranges.document(
    "rollout",
    "Steps on each of several nodes, so many nodes at a time.",
    *("kind", "name", "nodes", "steps"),
    **{**COMMON, "name": {**_NAME, "type": "string"}},
    nodes={
        **ranges.mapping(**node_fields.FROM),
        "type": ["array", "object"],
        "items": NODE,
        "minItems": 1,
        "minProperties": 1,
    },
    serial=node_fields.SERIAL,
    canary=node_fields.CANARY,
    stop_after={
        **node_fields.STOP_AFTER,
        **ranges.mapping(
            rack={**node_fields.NUMBER, "description": "The same for each rack."},
            role={**node_fields.NUMBER, "description": "The same for each role."},
        ),
        "type": ["integer", "string", "object"],
        "minProperties": 1,
    },
    keep=node_fields.KEEP,
    order={"enum": ["as given", "spread"], "description": "spread: racks in turn."},
    steps=ranges.list_of(
        {"type": "object", "minProperties": 1, "properties": STEP_FIELDS}, minItems=1
    ),
    facts=FACTS,
)


def read_nodes(document: Mapping[str, Any], mistakes: list[Mistake]) -> list[ListedNode]:
    """Return the nodes of a rollout in its order; append the mistakes."""
    raw = document["nodes"]
    if isinstance(raw, list):
        nodes = [node_fields.node(one) for one in raw]
        mistakes += repeated("node", [one.name for one in nodes], lambda i: ("nodes", i))
    elif "document" in raw or "limit" in raw:
        nodes = node_fields.of_document(raw, mistakes)
    else:
        nodes = _of_facts(document, raw, mistakes)
    return spread(nodes) if document.get("order") == "spread" else nodes


def _of_facts(
    document: Mapping[str, Any], raw: Mapping[str, Any], mistakes: list[Mistake]
) -> list[ListedNode]:
    """Return the hosts of the facts with these labels, by name; a role is the label ``role``."""
    labels = raw.get("label") or {}
    nodes = []
    for known_as, fact in labelled(document.get("facts") or {}, labels).items():
        own = fact.get("labels") or {}
        rack = next(iter(listed(own.get("rack"))), None)
        roles = tuple(listed(own.get("role")))
        nodes.append(ListedNode(fact.get("name") or known_as, None, rack, roles))
    if not nodes:
        text = (
            f"no host of the facts has {labels_text(labels)}"
            if labels
            else "the facts have no hosts"
        )
        mistakes.append(Mistake(text, ("nodes", "label") if labels else ("nodes",)))
    return with_role(sorted(nodes), raw, mistakes)


def spread(nodes: Iterable[ListedNode]) -> list[ListedNode]:
    """Return nodes with the racks in turn, each in its own order.

    >>> [n.name for n in spread([ListedNode(n, None, n[0]) for n in ("a1", "a2", "b1")])]
    ['a1', 'b1', 'a2']
    """
    racks: dict[str | None, list[ListedNode]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node)
    return [node for turn in zip_longest(*racks.values()) for node in turn if node is not None]
