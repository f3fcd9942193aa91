# SPDX-License-Identifier: Apache-2.0
"""Applier services in Watcher's API."""

from __future__ import annotations

import zlib
from datetime import UTC
from functools import partial
from typing import Any

import falcon

from applier.api.endpoints import Call, Endpoint
from applier.api.v1 import requests
from applier.api.v1.requests import links
from applier.assembly import now
from applier.run import liveness
from applier.store import Service
from applier.store.plans import Page

#: The name of every service: that of Watcher's own service that runs plans.
NAME = "watcher-applier"
#: A service whose last heartbeat is more than this many seconds old is FAILED: the default of
#: Watcher's ``service_down_time``.
DOWN_S = 90
#: The fields of a short list.
SHORT = ("id", "name", "host", "status", "links")
KEYS = {key: key for key in ("id", "name", "host", "status", "last_seen_up", "created_at")} | {
    "updated_at": "last_seen_up",
    "deleted_at": "id",
}


def _page(call: Call, *, whole: bool) -> dict[str, Any]:
    """Return a page of services. There are few, so that all are read."""
    given = requests.arguments(call.request)
    page = requests.page_of(given, KEYS, marks_uuids=False)
    forms = _forms(call)
    forms.sort(key=lambda f: (f[page.key], f["id"]), reverse=page.descending)
    found = [
        {key: one for key, one in form.items() if whole or key in SHORT}
        for form in _of_page(forms, page)
    ]
    return requests.with_next(call.request, "services", found, page, given, marker="id")


in_short = Endpoint("GET /v1/services", "service:read")(partial(_page, whole=False))
in_detail = Endpoint("GET /v1/services/detail", "service:read")(partial(_page, whole=True))


@Endpoint("GET /v1/services/{name}", "service:read")
def service(call: Call) -> dict[str, Any]:
    """Answer with the service of an id, or with the first of a name, latest heartbeat first."""
    name = call.names["name"]
    for form in _forms(call):
        if name in (str(form["id"]), form["name"]):
            return form
    raise _not_found(name)


def _forms(call: Call) -> list[dict[str, Any]]:
    return [_form(each, call.request) for each in call.store.services()]


def _of_page(forms: list[dict[str, Any]], page: Page) -> list[dict[str, Any]]:
    if page.marker is None:
        return forms[: page.limit]
    places = [place for place, form in enumerate(forms) if str(form["id"]) == page.marker]
    if not places:
        raise _not_found(page.marker)
    after = places[0] + 1
    return forms[after : after + page.limit]


def _form(service: Service, request: falcon.Request) -> dict[str, Any]:
    """Return a service as JSON types; its id, a checksum of its uuid, stays the same."""
    number = zlib.crc32(service.uuid.encode()) >> 1
    seen = service.heartbeat_at.astimezone(UTC)
    silent_s = abs((now() - seen).total_seconds())
    is_up = silent_s <= DOWN_S and not liveness.is_gone(service)
    return {
        "id": number,
        "name": NAME,
        "host": service.host,
        "status": "ACTIVE" if is_up else "FAILED",
        "links": links(request, "services", str(number)),
        "last_seen_up": seen.replace(tzinfo=None).isoformat(),
        "created_at": service.started_at.isoformat(),
        "updated_at": seen.isoformat(),
        "deleted_at": None,
    }


def _not_found(name: str) -> falcon.HTTPNotFound:
    return falcon.HTTPNotFound(description=f"The service {name} cannot be found.")
