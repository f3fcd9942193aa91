# SPDX-License-Identifier: Apache-2.0
"""Parses requests of Watcher's API: queries of lists, and JSON patches (RFC 6902); makes links."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

import falcon

from applier.store.plans import Page

#: The most rows of one page.
MOST = 1000
_OF_PAGES = ("marker", "limit", "sort_key", "sort_dir")
_LONGEST_NUMBER = 9


def arguments(request: falcon.Request, filters: Iterable[str] = ()) -> dict[str, str]:
    """Return the parameters of the query; raises falcon.HTTPBadRequest for an unknown name.

    Known are those of pages, and ``filters``. Of a repeated parameter the last value counts. An
    empty parameter is left out.
    """
    given = {}
    for name, values in request.params.items():
        if name not in (*_OF_PAGES, *filters):
            raise falcon.HTTPBadRequest(description=f'Unknown argument: "{name}"')
        value = values[-1] if isinstance(values, list) else values
        if value:
            given[name] = str(value)
    return given


def page_of(given: Mapping[str, str], keys: Mapping[str, str], *, marks_uuids: bool = True) -> Page:
    """Return the page that a query selects; raises falcon.HTTPBadRequest for an invalid value.

    ``keys`` maps each accepted ``sort_key`` to the sort key of the store. The marker must be a UUID
    if ``marks_uuids``. A limit above MOST becomes MOST, and so does a missing one.
    """
    key, direction = given.get("sort_key", "id"), given.get("sort_dir", "asc")
    if key not in keys:
        raise falcon.HTTPBadRequest(description=f"Invalid sort key: {key}")
    if direction not in ("asc", "desc"):
        text = f"Invalid sort direction: {direction}. Acceptable values are 'asc' or 'desc'"
        raise falcon.HTTPBadRequest(description=text)
    marker = given.get("marker")
    if marker is not None and marks_uuids:
        marker = uuid_of("marker", marker)
    limit = min(_number("limit", given["limit"]), MOST) if "limit" in given else MOST
    if limit <= 0:
        raise falcon.HTTPBadRequest(description="Limit must be positive")
    return Page(limit=limit, key=keys[key], descending=direction == "desc", marker=marker)


def with_next(
    request: falcon.Request,
    kind: str,
    found: Sequence[Mapping[str, Any]],
    page: Page,
    given: Mapping[str, str],
    *,
    marker: str = "uuid",
) -> dict[str, Any]:
    """Return a page as JSON types; a full one gets a link to the next page.

    ``marker`` is the field of the last row that becomes the marker of the next page.
    """
    collection: dict[str, Any] = {kind: found}
    if len(found) == page.limit:
        sorting = {
            "sort_key": given.get("sort_key", "id"),
            "sort_dir": given.get("sort_dir", "asc"),
        }
        filters = {name: value for name, value in given.items() if name not in _OF_PAGES}
        last = {"limit": page.limit, "marker": found[-1][marker]}
        query = urlencode({**sorting, **filters, **last})
        collection["next"] = f"{request.forwarded_prefix}{request.path}?{query}"
    return collection


def links(request: falcon.Request, kind: str, name: str = "") -> list[dict[str, str]]:
    """Return the links to a resource, under the host that the client has asked.

    Without a ``name``, they are those to the list of all of its kind.
    """
    below = f"{kind}/{quote(name, safe='')}"
    return [
        {"rel": "self", "href": f"{request.forwarded_prefix}/v1/{below}"},
        {"rel": "bookmark", "href": f"{request.forwarded_prefix}/{below}"},
    ]


def uuid_of(name: str, text: str) -> str:
    """Return a UUID as it is stored; raises falcon.HTTPBadRequest for another text.

    >>> uuid_of("marker", "9C0F2B1E-0000-4000-8000-000000000001")
    '9c0f2b1e-0000-4000-8000-000000000001'
    """
    try:
        return str(UUID(text))
    except ValueError:
        raise _invalid(name, text, f"uuid. Error: Expected a uuid but received {text}.") from None


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not re.fullmatch("[0-9]+", digits):
        raise _invalid(name, text, "int.")
    return int(text) if len(digits) <= _LONGEST_NUMBER else 10**_LONGEST_NUMBER


def _invalid(name: str, text: str, what: str) -> falcon.HTTPBadRequest:
    return falcon.HTTPBadRequest(
        description=f"Invalid input for field/attribute {name}. Value: '{text}'. "
        f"unable to convert to {what}"
    )


VERBS = ("add", "replace", "remove")
#: Fields that nobody may change.
INTERNAL = ("created_at", "id", "links", "updated_at", "deleted_at", "uuid")
_PATH = re.compile(r"(/[\w-]+)+", re.ASCII)


class Step(NamedTuple):
    """One operation of a patch; a field that is removed has the value None."""

    verb: str
    path: str
    value: Any

    @property
    def field(self) -> str:
        """The field that is changed."""
        return self.path.split("/")[1]

    @property
    def shown(self) -> str:
        """The operation as it is shown in refusals."""
        return json.dumps({"op": self.verb, "path": self.path, "value": self.value})


def steps(request: falcon.Request) -> list[Step]:
    """Return the operations of a JSON patch; raises falcon.HTTPBadRequest for another body."""
    try:
        document = request.get_media()
    except RecursionError:
        raise _invalid_patch("it is nested too deeply") from None
    if not isinstance(document, list):
        raise _invalid_patch("a patch is a list of operations")
    return [_step(each) for each in document]


def _step(given: Any) -> Step:
    if not isinstance(given, dict):
        raise _invalid_patch("an operation is a mapping with op, path and value")
    verb, path = given.get("op"), given.get("path")
    if verb not in VERBS:
        raise _invalid_patch(f"op is one of {', '.join(VERBS)}")
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise _invalid_patch("path is /FIELD")
    if verb != "remove" and "value" not in given:
        raise _invalid_patch("'add' and 'replace' operations needs value")
    return Step(verb, path, given.get("value") if verb != "remove" else None)


def require_fields(
    found: list[Step], *, accepted: Collection[str] = (), internal: Collection[str] = INTERNAL
) -> None:
    """Raise falcon.HTTPBadRequest for an operation on a field that it may not change or remove.

    With ``accepted``, only these fields may be changed, and none may be removed. Without it, all
    but the ``internal`` ones may be changed and removed.
    """
    for step in found:
        if accepted and step.field not in accepted:
            text = f"'{step.path}' is not an allowed attribute and can not be updated"
        elif step.field in internal:
            text = f"'{step.path}' is an internal attribute and can not be updated"
        elif accepted and step.verb == "remove":
            text = f"'{step.path}' is a mandatory attribute and can not be removed"
        else:
            continue
        raise falcon.HTTPBadRequest(description=text)


def require_word(found: list[Step], words: Collection[str]) -> None:
    """Raise falcon.HTTPBadRequest for a new value of ``/state`` that is none of ``words``."""
    for step in found:
        known = step.value is None or (isinstance(step.value, str) and step.value in words)
        if step.path == "/state" and not known:
            raise refused(step, f"Invalid state: {step.value}")


def refused(step: Step | None, reason: str) -> falcon.HTTPBadRequest:
    """Return the error for a patch, with the rejected operation; None means an empty patch."""
    shown = step.shown if step else "[]"
    return falcon.HTTPBadRequest(description=f"Couldn't apply patch '{shown}'. Reason: {reason}")


def _invalid_patch(text: str) -> falcon.HTTPBadRequest:
    return falcon.HTTPBadRequest(description=f"Invalid patch: {text}")
