# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent again with the same ``Idempotency-Key`` are carried out once.

No table is needed. A plan that is stored gets a uuid that is derived from the key. A change of a
plan carries the key in the request id of its entry in the history, which is written in the same
transaction: it is there if, and only if, the change was made.
"""

from __future__ import annotations

import hashlib
import uuid

import falcon

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
    """Return the uuid that stands for a key of a user, in requests to a path."""
    named = f"{user}\n{key}" + (f"\n{path}" if path else "")
    return str(uuid.uuid5(_KEYS, hashlib.sha256(named.encode()).hexdigest()))


def key_of(request: falcon.Request) -> str | None:
    """Return the uuid that stands for the key of a request in its path; None without a key."""
    key = request.get_header(HEADER)
    return None if key is None else uuid_of(caller_of(request).user, key, request.path)


def keyed_operator(request: falcon.Request, told: list[str]) -> Operator:
    """Return the operator of a request, whose entries in the history carry its key."""
    operator, key = operator_of(request, told), key_of(request)
    return operator if key is None else operator._replace(request_id=_named(operator, key))


def was_done(request: falcon.Request, store: HistoryStore, plan: str) -> bool:
    """Return whether a request with the key of this one has changed a plan before."""
    key = key_of(request)
    if key is None:
        return False
    entries = store.history(plan, limit=_SEARCHED)
    return any((entry.request_id or "").endswith(f" key-{key}") for entry in entries)


def _named(operator: Operator, key: str) -> str:
    return f"{operator.request_id} key-{key}"
