# SPDX-License-Identifier: Apache-2.0
"""Applier services in Watcher's API."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import Any, ClassVar

import falcon

from applier.api.parts import Parts
from applier.api.v1 import paging
from applier.api.v1.watcher_links import links
from applier.assembly import now
from applier.errors import sound_part
from applier.run import liveness
from applier.store import Service
from applier.store.pages import Page

#: The name of every service: that of Watcher's own service that runs plans.
NAME = "watcher-applier"
#: A service whose last heartbeat is more than this many seconds old is FAILED: the default of
#: Watcher's ``service_down_time``.
DOWN_S = 90
KEYS = {key: key for key in ("id", "name", "host", "status", "last_seen_up", "created_at")} | {
    "updated_at": "last_seen_up",
    "deleted_at": "id",
}


class ServicesV1:
    """The list of services."""

    RULES: ClassVar = {"GET": "service:read"}

    def __init__(self, parts: Parts, *, detail: bool = False) -> None:
        self._assembly, self._detail = parts.assembly, detail

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with a page of services. There are few, so that all are read."""
        given = paging.arguments(request)
        page = paging.page_of(given, KEYS, marks_uuids=False)
        forms = [_form(each, request) for each in sound_part(self._assembly.store.services)[0]]
        forms.sort(key=lambda f: (f[page.key], f["id"]), reverse=page.descending)
        found = [_part(form, whole=self._detail) for form in _of_page(forms, page)]
        response.media = paging.with_next(request, "services", found, page, given, marker="id")


class ServiceV1:
    """One service."""

    RULES: ClassVar = {"GET": "service:read"}

    def __init__(self, parts: Parts) -> None:
        self._assembly = parts.assembly

    def on_get(self, request: falcon.Request, response: falcon.Response, name: str) -> None:
        """Answer with the service of an id, or with the first of a name, latest heartbeat first."""
        for each in sound_part(self._assembly.store.services)[0]:
            form = _form(each, request)
            if name in (str(form["id"]), form["name"]):
                response.media = form
                return
        raise _not_found(name)


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
        "last_seen_up": _naive(seen),
        "created_at": service.started_at.isoformat(),
        "updated_at": seen.isoformat(),
        "deleted_at": None,
    }


def _naive(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat()


def _part(form: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    short = ("id", "name", "host", "status", "links")
    return form if whole else {key: form[key] for key in short}


def _not_found(name: str) -> falcon.HTTPNotFound:
    return falcon.HTTPNotFound(description=f"The service {name} cannot be found.")
