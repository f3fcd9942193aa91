# SPDX-License-Identifier: Apache-2.0
"""Parses the query of a list, and adds the link to its next page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import falcon

from applier.store.pages import Page

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
        collection["next"] = f"{request.prefix}{request.path}?{query}"
    return collection


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
