# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent again with the same ``Idempotency-Key`` are carried out once.

The key is written in the transaction of the change, with the entry in the history: of any number of
requests at once, one commits, and the others are rolled back and answered as that one. Its answer
is stored in a second transaction. If the process dies between the two, the change stays made once,
and a repeated request is told what is known of it. A request that is refused stores nothing.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Protocol

import falcon

from applier.api.errors import Problem, problem_of
from applier.api.parts import Parts, caller_of
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, read_body
from applier.api.v2.shown_plan import show_new
from applier.assembly import now
from applier.contracts import Once
from applier.errors import ApplierError, StoreError
from applier.store.answers import Answer
from applier.store.retention import NO_PLAN
from planner.errors import PlannerError

HEADER = "Idempotency-Key"
DONE_BEFORE = f"This was done before, by a request with the same {HEADER}."
#: The namespace of the uuids that stand for keys.
_KEYS = uuid.UUID("5b0c3c86-6a5a-4f0e-9a0e-0d4b9a3f7c11")
#: A change that is not answered after this time has lost its answer.
_LOST = timedelta(seconds=30)
_RETRY_AFTER_S = "1"


class _Resource(Protocol):
    _parts: Parts
    OPERATIONS: Any


def once(respond: Callable[..., None]) -> Callable[..., None]:
    """Decorate the method of a resource that makes a change, so that it follows the header."""

    @wraps(respond)
    def respond_once(
        self: _Resource, request: falcon.Request, response: falcon.Response, **names: str
    ) -> None:
        if request.get_header(HEADER) is None:
            return respond(self, request, response, **names)
        store, operation = self._parts.assembly.store, self.OPERATIONS[request.method]
        mine = request.context.once = _once(request)
        before = store.answer(mine.key)
        if before is None:
            try:
                respond(self, request, response, **names)
            except (ApplierError, PlannerError, falcon.HTTPError) as error:
                before = store.answer(mine.key)
                if before is None or _is_own(before, request):
                    _keep_refusal(self._parts, request, error, before)
                    raise
            else:
                if operation.answer is schemas.PLAN or _kept(self._parts, request, response):
                    return None
                before = store.answer(mine.key)
        return _repeat(self._parts, operation, request, response, before)

    return respond_once


def _once(request: falcon.Request) -> Once:
    """Return what identifies a request: user, project, key and path; and what it asks."""
    caller = caller_of(request)
    named = "\n".join(
        (caller.user, caller.project or "", request.path, request.get_header(HEADER) or "")
    )
    key = uuid.uuid5(_KEYS, hashlib.sha256(named.encode()).hexdigest())
    asked = request.query_string.encode() + b"\n" + (read_body(request).strip() or b"{}")
    return Once(str(key), hashlib.sha256(asked).hexdigest())


def _is_own(answer: Answer, request: falcon.Request) -> bool:
    return answer.request_id == caller_of(request).request_id


def _kept(parts: Parts, request: falcon.Request, response: falcon.Response) -> bool:
    """Store the answer of a request; return False if another request has its key."""
    text = json.dumps({"media": response.media})
    own = caller_of(request).request_id
    return parts.assembly.store.keep_answer(request.context.once, own, text, now=now())


def _keep_refusal(
    parts: Parts, request: falcon.Request, error: Exception, own: Answer | None
) -> None:
    """Store a refusal that came after the change was recorded, such as that of the cloud."""
    if own is not None and not isinstance(error, StoreError):
        found = error if isinstance(error, falcon.HTTPError) else problem_of(error)
        refused = [found.status_code, found.title, found.description]
        text = json.dumps({"refused": refused})
        parts.assembly.store.keep_answer(request.context.once, own.request_id, text, now=now())


def _repeat(
    parts: Parts,
    operation: Operation,
    request: falcon.Request,
    response: falcon.Response,
    before: Answer | None,
) -> None:
    """Answer as an earlier request with the key was answered.

    Raises Problem: 422 if that one asked something else, 409 if its answer is not known.
    """
    if before is None:  # its plan was deleted for good meanwhile
        raise _unknown()
    if before.digest != request.context.once.digest:
        text = f"the key {request.get_header(HEADER)!r} was used before, for another body or query"
        raise Problem(422, "Idempotency key was used", text)
    store = parts.assembly.store
    if operation.answer is schemas.PLAN:
        show_new(parts, request, response, store.load_plan(before.plan))
    elif before.text is not None:
        answer = json.loads(before.text)
        if "refused" in answer:
            raise Problem(*answer["refused"])
        response.status, response.media = operation.status, answer["media"]
    elif before.plan == NO_PLAN or now() - before.at < _LOST:
        raise _unknown()
    else:
        state = str(store.load_plan(before.plan).state)
        response.media = {"uuid": before.plan, "state": state, "messages": [DONE_BEFORE]}


def _unknown() -> Problem:
    text = (
        "a request with this key is being carried out, or its answer was lost: repeat this one, or "
        "look at what has changed"
    )
    return Problem(409, "Answer not known", text, headers={"Retry-After": _RETRY_AFTER_S})
