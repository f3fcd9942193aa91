# SPDX-License-Identifier: Apache-2.0
"""The nodes of a rollout: listed, with labels of the facts, or those of another document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, accepted
from planner.plan.extent import labelled, listed


class RolloutNode(NamedTuple):
    """A node, and where it is reached; without an address it is simulated."""

    name: str
    address: str | None = None
    rack: str | None = None
    roles: tuple[str, ...] = ()

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return its racks or its roles; ``kind`` is ``rack`` or ``role``."""
        return self.roles if kind == "role" else () if self.rack is None else (self.rack,)


def read(document: Mapping[str, Any], mistakes: list[Mistake]) -> list[RolloutNode]:
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
