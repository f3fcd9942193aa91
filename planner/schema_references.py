# SPDX-License-Identifier: Apache-2.0
"""The references in a JSON Schema (draft 2020-12), resolved by the library of jsonschema.

The library is imported only for a schema that has references. Nothing is fetched: a reference leads
into the same schema, or to one that the standard defines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.graph_algorithms import reachable
from planner.secret_references import has_keyword

if TYPE_CHECKING:
    from referencing._core import Resolver

#: The keywords that refer to another schema.
KEYWORDS = REF, DYNAMIC = "$ref", "$dynamicRef"


#: The schemas placed last, by their ids. What is in it is alive, so no other schema has its id.
_last: dict[int, Placed] = {}
_MOST = 64


class UnresolvedReference(ValueError):
    """A reference leads nowhere, or to what is no schema."""

    def __init__(self, keyword: str, reference: object) -> None:
        self.reference = reference
        super().__init__(f"its schema has {keyword} {reference!r}, which leads to no schema in it")


@dataclass(frozen=True, slots=True)
class Placed:
    """A schema, and what resolves its references: None for a schema without any.

    ``anchored`` are the schemas with a ``$dynamicAnchor``, by its name.
    """

    schema: Mapping[str, Any]
    resolver: Resolver[Any] | None = None
    anchored: Mapping[str, Sequence[Placed]] | None = None

    def inside(self, part: Any) -> Iterator[Placed]:
        """Yield a schema inside this one; nothing if it is ``true``, ``false`` or no schema."""
        if not isinstance(part, Mapping):
            return
        resolver = self.resolver
        if resolver is not None and isinstance(part.get("$id"), str):
            resolver = resolver.in_subresource(_resource(part))
        yield Placed(part, resolver, self.anchored)

    def targets(self) -> Iterator[Placed]:
        """Yield the schemas to which the references of this schema lead, at its own level.

        For ``$dynamicRef`` these are all to which it may lead, whatever was passed on the way.
        Raises UnresolvedReference.
        """
        for keyword in (REF, DYNAMIC):
            if keyword in self.schema:
                yield from self._target(keyword, self.schema[keyword])

    def _target(self, keyword: str, reference: Any) -> Iterator[Placed]:
        from referencing.exceptions import Unresolvable

        if self.resolver is None or not isinstance(reference, str):
            raise UnresolvedReference(keyword, reference)
        try:
            found = self.resolver.lookup(reference)
        except (Unresolvable, ValueError, KeyError, IndexError, TypeError) as reason:
            raise UnresolvedReference(keyword, reference) from reason
        if not isinstance(found.contents, Mapping | bool):
            raise UnresolvedReference(keyword, reference)
        if isinstance(found.contents, Mapping):
            yield Placed(found.contents, found.resolver, self.anchored)
        if keyword == DYNAMIC and self.anchored:
            yield from self.anchored.get(reference.rpartition("#")[2], ())


def placed(schema: Mapping[str, Any]) -> Placed:
    """Return a schema with the resolver of its references; it is built once for a schema."""
    found = _last.get(id(schema))
    if found is None:
        if len(_last) >= _MOST:
            _last.clear()
        found = _last[id(schema)] = _placed(schema)
    return found


def _placed(schema: Mapping[str, Any]) -> Placed:
    if not has_keyword(schema, *KEYWORDS):
        return Placed(schema)
    from jsonschema_specifications import REGISTRY

    anchored: defaultdict[str, list[Placed]] = defaultdict(list)
    whole = Placed(schema, REGISTRY.resolver_with_root(_resource(schema)), anchored)
    for one in _all(whole):
        if "$dynamicAnchor" in one.schema:
            anchored[one.schema["$dynamicAnchor"]].append(one)
    return whole


def require_resolved(
    schema: Mapping[str, Any], check: Callable[[Mapping[str, Any]], object]
) -> None:
    """Raise UnresolvedReference if a reference in a valid schema leads to no schema.

    ``check`` is called with each schema to which a reference leads, because it may be in a place
    that has no meaning for the standard. It may raise errors.
    """
    if has_keyword(schema, *KEYWORDS):
        _all(placed(schema), check)


def _all(
    root: Placed, check: Callable[[Mapping[str, Any]], object] | None = None
) -> Sequence[Placed]:
    """List a schema and all schemas in it; with ``check``, also those that they refer to."""
    known = {id(root.schema): root}

    def parts(number: int) -> Iterator[int]:
        one = known[number]
        found = [
            inner
            for part in _resource(one.schema).subresources()
            for inner in one.inside(part.contents)
        ]
        if check:
            targets = list(one.targets())
            for target in targets:
                if id(target.schema) not in known:
                    check(target.schema)
            found += targets
        for part in found:
            yield id(known.setdefault(id(part.schema), part).schema)

    return [known[number] for number in reachable([id(root.schema)], parts)]


def _resource(schema: Mapping[str, Any]) -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012.create_resource(schema)
