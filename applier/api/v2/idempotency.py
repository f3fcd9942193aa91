# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent again with the same ``Idempotency-Key`` are carried out once.

No table is needed. A plan that is stored gets a uuid that is derived from the key. A change of a
plan carries the key, and a digest of the body, in the request id of its entry in the history, which
is written in the same transaction: it is there if, and only if, the change was made. The same key
with another body is refused.
"""

from __future__ import annotations

import hashlib
import uuid

import falcon

from applier.api.errors import Problem
from applier.api.parts import caller_of, operator_of
from applier.operations import Operator
from applier.store import HistoryStore

HEADER = "Idempotency-Key"
DONE_BEFORE = f"This was done before, by a request with the same {HEADER}."
#: The namespace of the uuids that stand for keys.
_KEYS = uuid.UUID("5b0c3c86-6a5a-4f0e-9a0e-0d4b9a3f7c11")
#: How many of the latest changes of a plan are searched for a key.
_SEARCHED = 1000


def uuid_of(user: str, key: str, path: str = "") -> str:
    """Return the uuid that is derived from a user, an idempotency key and, if set, a path."""
    named = f"{user}\n{key}" + (f"\n{path}" if path else "")
    return str(uuid.uuid5(_KEYS, hashlib.sha256(named.encode()).hexdigest()))


def key_of(request: falcon.Request) -> str | None:
    """Return the uuid derived from user, key and path of a request; None without a key."""
    key = request.get_header(HEADER)
    return None if key is None else uuid_of(caller_of(request).user, key, request.path)


def keyed_operator(request: falcon.Request, told: list[str]) -> Operator:
    """Return the operator of a request, whose entries in the history carry its key.

    The body must have been read: its digest is recorded as well. Each message is appended to
    ``told``.
    """
    operator, key = operator_of(request, told), key_of(request)
    if key is None:
        return operator
    mark = f"{operator.request_id} key-{key}-{request.context.body_digest}"
    return operator._replace(request_id=mark)


def was_done(request: falcon.Request, store: HistoryStore, plan: str) -> bool:
    """Return whether a request with the key and body of this one has changed a plan before.

    False without a key. Raises Problem (422) if the earlier request had another body. The body of
    this one must have been read.
    """
    key = key_of(request)
    if key is None:
        return False
    for entry in store.history(plan, limit=_SEARCHED):
        _, is_keyed, digest = (entry.request_id or "").partition(f" key-{key}-")
        if is_keyed:
            if digest != request.context.body_digest:
                raise used_before(request, "another body")
            return True
    return False


def used_before(request: falcon.Request, purpose: str) -> Problem:
    """Return the error (422) for a request whose key was used before, for ``purpose``."""
    text = f"the key {request.get_header(HEADER)!r} was used before, for {purpose}"
    return Problem(422, "Idempotency key was used", text)
