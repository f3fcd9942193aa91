# SPDX-License-Identifier: Apache-2.0
"""How plans and changes are answered: as a whole or in pieces, with tags, and once for each key."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import falcon

from applier.api.endpoints import Call
from applier.api.errors import Problem, problem_of
from applier.assembly import now
from applier.contracts import Once
from applier.errors import ApplierError, PlanChanged, StoreError
from applier.operations import hidden_parameters
from applier.store.entries import NO_PLAN, Answer
from planner.errors import PlannerError
from planner.making.registry import ActionTypes
from planner.plan.model import ActionPlan
from planner.safe_text import compact_json

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

#: A plan with more actions than this is streamed in pieces of this many actions.
WHOLE = 100


def show(call: Call, plan: ActionPlan) -> None:
    """Answer with a plan and its tag; a plan with more than WHOLE actions is streamed."""
    response = call.response
    response.set_header("ETag", current_tag(call.store, plan))
    response.content_type = falcon.MEDIA_JSON
    pieces = _pieces(plan, call.assembly.action_types)
    if len(plan.actions) > WHOLE:
        response.stream = pieces
    else:
        response.data = b"".join(pieces)


def show_new(call: Call, plan: ActionPlan) -> None:
    """Answer a call that has stored a plan (201), with its URL in the header Location."""
    call.response.status = falcon.HTTP_201
    call.response.set_header("Location", f"{call.request.forwarded_prefix}/v2/plans/{plan.uuid}")
    show(call, plan)


def _pieces(plan: ActionPlan, types: ActionTypes) -> Iterator[bytes]:
    yield f'{compact_json(plan.head())[:-1]},"actions":['.encode()
    for first in range(0, len(plan.actions), WHOLE):
        some = plan.actions[first : first + WHOLE]
        shown = [hidden_parameters.action_without(action, types).to_dict() for action in some]
        yield (b"," if first else b"") + compact_json(shown)[1:-1].encode()
    yield b"]}"


def current_tag(store: SqlStore, plan: ActionPlan) -> str:
    """Return the tag of a plan, which was read from the store just now."""
    return tag_of(plan, changes(store, plan))


def changes(store: SqlStore, plan: ActionPlan) -> int:
    """Return the number of the latest entry in the history of a plan.

    Approvals and requests, such as for other limits, change no field of the plan.
    """
    latest = store.history(plan.uuid, limit=1)
    return latest[-1].number if latest else 0


def tag_of(plan: ActionPlan, changes: int) -> str:
    """Return the tag of a plan as the value of the header ETag, in quotes.

    It covers the fields of the plan and those that runs and operators change in its actions.
    ``changes`` is the number of the latest entry in its history.

    >>> plan = ActionPlan(uuid="u", planner="weight", actions=())
    >>> len(tag_of(plan, 1)), tag_of(plan, 1) == tag_of(plan, 2)
    (34, False)
    """
    of_actions = [
        (a.state, a.state_reason, a.outcome, a.attempts, a.status_message, a.started_at, a.ended_at)
        for a in plan.actions
    ]
    covered = compact_json(
        [plan.head(), [[str(v) for v in values] for values in of_actions], changes]
    )
    return f'"{hashlib.sha256(covered.encode()).hexdigest()[:32]}"'


def compare_tags(call: Call) -> None:
    """Give the answer to a GET a tag if it has none, and answer 304 if the client has that one.

    Such a tag is weak: it is that of the content, in whatever encoding it is sent. A report has
    none, because it says when it was made.
    """
    response = call.response
    tag = response.get_header("ETag")
    if tag is None:
        if response.stream is not None or response.content_type == falcon.MEDIA_HTML:
            return
        content = hashlib.sha256(response.render_body() or b"").hexdigest()[:32]
        tag = f'W/"{content}"'
        response.set_header("ETag", tag)
    if any(
        given == "*" or given == tag.split('"')[1] for given in call.request.if_none_match or ()
    ):
        response.status = falcon.HTTP_304
        response.text = response.data = response.media = response.stream = None
        response.delete_header("Content-Type")


def require_unchanged(call: Call) -> None:
    """Raise PlanChanged (412) if a header If-Match has neither the tag of the plan nor ``*``.

    A weak tag (``W/"..."``) is never that of the plan. The change itself is refused if another one
    comes before it.
    """
    plan, header = call.plan, call.request.get_header("If-Match")
    if header is None or header.strip() == "*":
        return
    call.request.context.after = changes(call.store, plan)
    if tag_of(plan, call.request.context.after) not in (tag.strip() for tag in header.split(",")):
        raise PlanChanged(plan.uuid, plan.state)


HEADER = "Idempotency-Key"
DONE_BEFORE = f"This was done before, by a request with the same {HEADER}."
#: The namespace of the uuids that stand for keys.
_KEYS = uuid.UUID("5b0c3c86-6a5a-4f0e-9a0e-0d4b9a3f7c11")
#: A change that is not answered after this time has lost its answer.
_LOST = timedelta(seconds=30)
_RETRY_AFTER_S = "1"


def once(call: Call, respond: Callable[[Call], None], *, status: int, makes_plan: bool) -> None:
    """Answer a call by ``respond``, which may make a change; with a known key, as before.

    ``status`` is that of an answer, ``makes_plan`` means that the answer is a new plan.

    The key is written in the transaction of the change, with the entry in the history: of any
    number of requests at once, one commits, and the others are rolled back and answered as that
    one. Its answer is stored in a second transaction. If the process dies between the two, the
    change stays made once, and a repeated request is told what is known of it. A request that is
    refused stores nothing.
    """
    if call.request.get_header(HEADER) is None:
        respond(call)
        return
    mine = call.request.context.once = _once(call)
    before = call.store.answer(mine.key)
    if before is None:
        try:
            respond(call)
        except (ApplierError, PlannerError, falcon.HTTPError) as error:
            before = call.store.answer(mine.key)
            if before is None or before.request_id == call.caller.request_id:
                _keep_refusal(call, mine, error, before)
                raise
        else:
            if makes_plan or _kept(call, mine, {"media": call.response.media}):
                return
            before = call.store.answer(mine.key)
    _repeat(call, mine, before, status=status, makes_plan=makes_plan)


def _once(call: Call) -> Once:
    """Return what identifies a request: user, project, key and path; and what it asks."""
    caller, request = call.caller, call.request
    named = "\n".join(
        (caller.user, caller.project or "", request.path, request.get_header(HEADER) or "")
    )
    key = uuid.uuid5(_KEYS, hashlib.sha256(named.encode()).hexdigest())
    asked = request.query_string.encode() + b"\n" + (call.content.strip() or b"{}")
    return Once(str(key), hashlib.sha256(asked).hexdigest())


def _kept(call: Call, mine: Once, answer: Mapping[str, Any]) -> bool:
    """Store the answer of a request; return False if another request has its key."""
    own = call.caller.request_id
    return call.store.keep_answer(mine, own, json.dumps(answer), now=now())


def _keep_refusal(call: Call, mine: Once, error: Exception, own: Answer | None) -> None:
    """Store a refusal that came after the change was recorded, such as that of the cloud."""
    if own is not None and not isinstance(error, StoreError):
        found = error if isinstance(error, falcon.HTTPError) else problem_of(error)
        _kept(call, mine, {"refused": [found.status_code, found.title, found.description]})


def _repeat(
    call: Call, mine: Once, before: Answer | None, *, status: int, makes_plan: bool
) -> None:
    """Answer as an earlier request with the key was answered.

    Raises Problem: 422 if that one asked something else, 409 if its answer is not known.
    """
    if before is None:  # its plan was deleted for good meanwhile
        raise _unknown()
    if before.digest != mine.digest:
        key = call.request.get_header(HEADER)
        text = f"the key {key!r} was used before, for another body or query"
        raise Problem(422, "Idempotency key was used", text)
    response = call.response
    if makes_plan:
        show_new(call, call.store.load_plan(before.plan))
    elif before.text is not None:
        answer = json.loads(before.text)
        if "refused" in answer:
            raise Problem(*answer["refused"])
        response.status, response.media = status, answer["media"]
    elif before.plan == NO_PLAN or now() - before.at < _LOST:
        raise _unknown()
    else:
        state = str(call.store.load_plan(before.plan).state)
        response.status = falcon.HTTP_200
        response.media = {"uuid": before.plan, "state": state, "messages": [DONE_BEFORE]}


def _unknown() -> Problem:
    text = (
        "a request with this key is being carried out, or its answer was lost: repeat this one, or "
        "look at what has changed"
    )
    return Problem(409, "Answer not known", text, headers={"Retry-After": _RETRY_AFTER_S})
