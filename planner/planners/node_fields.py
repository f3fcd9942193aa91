# SPDX-License-Identifier: Apache-2.0
"""Fields of documents about nodes: which are chosen, and how many may be under way at once.

Nodes may come from another list, from a document with ``nodes`` such as a deployment, or from the
hosts of an inventory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, accepted
from planner.plan.extent import listed
from planner.plan.place_rules import PlaceRule
from planner.schemas import ranges
from planner.schemas.checking import repeated

#: The fields of ``nodes`` that say where the nodes are, and which of them are chosen.
FROM: dict[str, Any] = {
    "role": {**ranges.NAME, "description": "Only nodes with this role."},
    "label": ranges.by_name(
        ranges.NAME, minProperties=1, description="Only nodes that have these labels."
    ),
    "from": {
        **ranges.ARGUMENT,
        "description": "A file with nodes, such as a deployment, or an inventory of Ansible; "
        "relative to this one.",
    },
    "limit": {
        **ranges.ARGUMENT,
        "minLength": 1,
        "description": "Of an inventory: a pattern of hosts, as --limit of Ansible has it.",
    },
    "document": {
        "type": ["object", "array"],
        "description": "What such a file holds; instead of it.",
    },
}


class ListedNode(NamedTuple):
    """A node, and where it is reached; without an address it is simulated.

    ``tags`` are what the roles of tasks are matched with: its roles where it names none.
    """

    name: str
    address: str | None = None
    rack: str | None = None
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return its racks or its roles; ``kind`` is ``rack`` or ``role``."""
        return self.roles if kind == "role" else () if self.rack is None else (self.rack,)


def node(raw: Any) -> ListedNode:
    """Return the node of an entry: a name, or a mapping with a ``uid`` or a ``name``."""
    if not isinstance(raw, Mapping):
        return ListedNode(str(raw))
    rack = raw.get("rack") or _labels(raw).get("rack")
    address, rack = (None if one is None else str(one) for one in (raw.get("address"), rack))
    roles = tuple(map(str, listed(raw.get("roles"))))
    tags = roles if raw.get("tags") is None else tuple(map(str, listed(raw["tags"])))
    return ListedNode(str(_name(raw)), address, rack, roles, tags)


#: What a node of another document is called.
_NAMED = "its 'uid', else its 'name', is a text without blanks and '/', or a number"


def _name(raw: Any) -> Any:
    """Return the name in an entry, None without one."""
    return raw.get("uid", raw.get("name")) if isinstance(raw, Mapping) else raw


def _is_name(value: Any) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and re.fullmatch(r"[^/\s]+", value) is not None)


def of_document(raw: Mapping[str, Any], mistakes: list[Mistake]) -> list[ListedNode]:
    """Return the chosen nodes of a list, or of a document with ``nodes`` such as a deployment.

    ``raw`` has the fields of FROM, of which with_files has replaced ``from``. Appends the mistakes.
    """
    found, path = raw.get("document"), ("nodes", "document")
    if "limit" in raw:
        text = "it is for the hosts of an inventory, and 'from' names none: 'role' and 'label' are"
        mistakes.append(Mistake(f"{text} for any node", ("nodes", "limit")))
    entries = found.get("nodes") if isinstance(found, Mapping) else found
    inside: Path = (*path, "nodes") if isinstance(found, Mapping) else path
    if not isinstance(entries, list):
        text = "a list of nodes, or a document with such a list in 'nodes', is expected"
        mistakes.append(Mistake(text, path))
        return []
    wrong = [i for i, one in enumerate(entries) if not _is_name(_name(one))]
    mistakes += [
        Mistake(f"{_name(entries[i])!r} is no name of a node: {_NAMED}", (*inside, i))
        for i in wrong
    ]
    if wrong:
        return []
    nodes = [node(one) for one in entries]
    mistakes += repeated("node", [one.name for one in nodes], lambda i: (*inside, i))
    if mistakes or "label" not in raw:
        return with_role(nodes, raw, mistakes)
    wanted = raw["label"].items()
    pairs = zip(nodes, map(_labels, entries), strict=True)
    chosen = [one for one, own in pairs if all(str(own.get(k)) == v for k, v in wanted)]
    if not chosen:
        mistakes.append(Mistake(f"no node has {labels_text(raw['label'])}", ("nodes", "label")))
    return with_role(chosen, raw, mistakes)


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as messages have them: ``env=prod, rack=r1``."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def with_role(
    nodes: list[ListedNode], raw: Mapping[str, Any], mistakes: list[Mistake]
) -> list[ListedNode]:
    """Return the nodes that have the role ``role`` of a mapping, if it has one."""
    role = raw.get("role")
    if role is None:
        return nodes
    found = [one for one in nodes if role in one.roles]
    if nodes and not found:
        known = {known: None for one in nodes for known in one.roles}
        text = f"no node has the role {role!r}; {accepted(role, known)}"
        mistakes.append(Mistake(text, ("nodes", "role")))
    return found


def _labels(raw: Any) -> Mapping[str, Any]:
    found = raw.get("labels") if isinstance(raw, Mapping) else None
    return found if isinstance(found, Mapping) else {}


_PERCENT = "^([1-9][0-9]?|100)%$"
NUMBER: dict[str, Any] = {
    **ranges.COUNT_OF_ONE_OR_MORE,
    "type": ["integer", "string"],
    "pattern": _PERCENT,
    "maxLength": 4,
    "title": "a number of nodes from 1, or a percentage from 1% to 100%",
}
#: The schemas of ``serial`` and of the fields beside it.
SERIAL: dict[str, Any] = {
    **NUMBER,
    "type": ["integer", "string", "array"],
    "minItems": 1,
    "items": NUMBER,
    "description": "How many nodes at once; a list widens. 1 where left out.",
}
CANARY: dict[str, Any] = {
    **ranges.mapping(
        nodes={**NUMBER, "description": "How many nodes go first; 1 where left out."},
        approve={
            "type": "boolean",
            "description": "Whether the plan pauses after them; true where left out.",
        },
    ),
    "description": "The first nodes, after which the plan pauses for a look.",
}
STOP_AFTER: dict[str, Any] = {**NUMBER, "description": "When so many have failed, none begins."}
KEEP: dict[str, Any] = {
    "type": "boolean",
    "description": "Whether a node that failed keeps its place; true where left out.",
}


def _number(value: int | str, nodes: int) -> int:
    """Return a number of nodes; a percentage is rounded down, and at least 1.

    >>> _number(3, 40), _number("10%", 40), _number("1%", 40)
    (3, 4, 1)
    """
    if isinstance(value, str):
        return max(1, nodes * int(value.removesuffix("%")) // 100)
    return value


def place_rule(fields: Mapping[str, Any], nodes: int) -> tuple[int, PlaceRule]:
    """Return the first width, and the rule, of the fields ``serial``, ``canary``, ``keep`` ....

    Each width holds until as many nodes have ended well as the widths up to it sum to.

    >>> place_rule({"serial": [1, "10%"], "keep": False}, 40)
    (1, PlaceRule(keep=False, stop_after=None, widens=((1, 4),), pause_after=None))
    """
    serial, canary = fields.get("serial", 1), fields.get("canary")
    given = list(serial) if isinstance(serial, list) else [serial]
    if canary is not None:
        given.insert(0, canary.get("nodes", 1))
    widths = [_number(value, nodes) for value in given]
    pauses = canary is not None and canary.get("approve", True)
    stop_after = fields.get("stop_after")
    return widths[0], PlaceRule(
        keep=fields.get("keep", True),
        stop_after=_number(stop_after, nodes) - 1 if isinstance(stop_after, int | str) else None,
        widens=tuple(zip(accumulate(widths[:-1]), widths[1:], strict=True)),
        pause_after=widths[0] if pauses else None,
    )
