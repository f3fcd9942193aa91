# SPDX-License-Identifier: Apache-2.0
"""Parses the JSON patches (RFC 6902) of Watcher's API, whose operations set whole fields."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

import falcon

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
    """Return the operations of a patch; raises falcon.HTTPBadRequest if the body is no patch."""
    try:
        document = request.get_media()
    except RecursionError:
        raise _invalid("it is nested too deeply") from None
    if not isinstance(document, list):
        raise _invalid("a patch is a list of operations")
    return [_step(each) for each in document]


def _step(given: Any) -> Step:
    if not isinstance(given, dict):
        raise _invalid("an operation is a mapping with op, path and value")
    verb, path = given.get("op"), given.get("path")
    if verb not in VERBS:
        raise _invalid(f"op is one of {', '.join(VERBS)}")
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise _invalid("path is /FIELD")
    if verb != "remove" and "value" not in given:
        raise _invalid("'add' and 'replace' operations needs value")
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


def _invalid(text: str) -> falcon.HTTPBadRequest:
    return falcon.HTTPBadRequest(description=f"Invalid patch: {text}")
