# SPDX-License-Identifier: Apache-2.0
"""Operations: endpoints that declare what they accept and answer, for checks and for OpenAPI."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import falcon

from applier.api.endpoints import Call, Endpoint
from applier.api.errors import Problem, problem_of
from applier.api.v2 import schemas
from applier.assembly import now
from applier.contracts import Once
from applier.errors import ApplierError, PlanChanged, PlanConflict, StoreError
from applier.operations import lookup
from applier.store.entries import NO_PLAN, Answer
from planner import documents
from planner.errors import InvalidInput, Mistake, PlannerError, accepted
from planner.making.registry import ActionTypes
from planner.plan.model import ActionPlan
from planner.safe_text import compact_json
from planner.schemas import checking, ranges

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore

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
        shown = [lookup.action_without(action, types).to_dict() for action in some]
        yield (b"," if first else b"") + compact_json(shown)[1:-1].encode()
    yield b"]}"


def current_tag(store: SqlStore, plan: ActionPlan) -> str:
    """Return the tag of a plan, which was read from the store just now."""
    return tag_of(plan, _changes(store, plan))


def _changes(store: SqlStore, plan: ActionPlan) -> int:
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


def require_unchanged(call: Call) -> None:
    """Raise PlanChanged (412) if a header If-Match has neither the tag of the plan nor ``*``.

    A weak tag (``W/"..."``) is never that of the plan. The change itself is refused if another one
    comes before it.
    """
    plan, header = call.plan, call.request.get_header("If-Match")
    if header is None or header.strip() == "*":
        return
    changes = call.request.context.after = _changes(call.store, plan)
    if tag_of(plan, changes) not in (tag.strip() for tag in header.split(",")):
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


#: Media types in which documents may be sent.
DOCUMENTS = ("application/json", "application/yaml", "text/yaml", "application/x-yaml")


@dataclass(kw_only=True)
class Operation(Endpoint):
    """An endpoint of /v2. The docstring of its function begins with its summary.

    Calls are checked by ``query``, a JSON Schema for each parameter of the query; and by ``body``,
    the schema of a JSON body, which may be left out if no field is required. None means that there
    is no JSON body. With ``takes_document``, the body is a document instead. With ``if_match``, the
    plan that the path names must have the tag in the header ``If-Match``, if there is one. Every
    method but GET follows the header ``Idempotency-Key``.

    ``answer`` is the schema of a response without an error.
    """

    query: Mapping[str, schemas.Schema] = field(default_factory=dict)
    body: schemas.Schema | None = None
    takes_document: bool = False
    if_match: bool = False
    answer: schemas.Schema = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring of the function, as one line."""
        text = inspect.getdoc(self.function) or ""
        return " ".join(text.partition("\n\n")[0].split())

    @property
    def makes_plan(self) -> bool:
        """Whether the answer is a plan."""
        return self.answer is schemas.PLAN

    def respond(self, call: Call) -> None:
        """Check a call and answer it; raises InvalidInput, and Problem (409, 412, 415, 422)."""
        if self.method == "GET":
            call.query = query_of(call, self.query)
            super().respond(call)
        else:
            once(call, self._change, status=self.status, makes_plan=self.makes_plan)

    def _change(self, call: Call) -> None:
        call.query = query_of(call, self.query)
        if self.takes_document:
            _require_media(call, DOCUMENTS)
            call.document = documents.parse(call.content, "body")
        else:
            call.body = _body_of(call, self.body)
        if self.if_match:
            if "action" in call.names:
                _ = call.action  # one that is not found is told first
            require_unchanged(call)
        try:
            super().respond(call)
        except PlanConflict as conflict:
            after = getattr(call.request.context, "after", None)
            if after is None or _changes(call.store, call.plan) == after:
                raise
            raise PlanChanged(call.plan.uuid, conflict.state) from conflict


def change(
    route: str, rule: str, body: schemas.Schema = schemas.REASON
) -> Callable[[Callable[[Call], None]], Operation]:
    """Decorate a function that changes a plan or an action, or raises an ApplierError to refuse it.

    The answer has the state of the plan after the change, and the messages of the operation.
    """

    def declared(make: Callable[[Call], None]) -> Operation:
        @Operation(route, rule, body=body, if_match=True, answer=schemas.DONE)
        @wraps(make)
        def respond(call: Call) -> dict[str, Any]:
            make(call)
            state = call.store.load_plan(call.plan.uuid).state
            return {"uuid": call.plan.uuid, "state": str(state), "messages": call.told}

        return respond

    return declared


def query_of(call: Call, known: Mapping[str, schemas.Schema]) -> dict[str, Any]:
    """Return the checked parameters of the query; raises InvalidInput with all mistakes."""
    found: dict[str, Any] = {}
    mistakes = []
    for name in call.request.params:
        if name not in known:
            text = f"no such parameter; {accepted(name, known)}"
            mistakes.append(Mistake(text, place=f"query {name}"))
            continue
        try:
            found[name] = _parsed(call.request.get_param_as_list(name) or [], known[name])
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=f"query {name}"))
            continue
        wrong = checking.compiled(known[name])(found[name])
        mistakes += [Mistake(m.text, place=f"query {name}") for m in wrong]
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def _parsed(texts: list[str], schema: schemas.Schema) -> Any:
    """Convert the texts of a query parameter to the type of its schema; raises ValueError."""
    kind = schema.get("type")
    if kind == "array":
        return texts
    if len(texts) != 1:
        raise ValueError("it is given more than once, or without a value")
    [text] = texts
    if kind == "integer":
        if not re.fullmatch("[0-9]{1,16}", text):
            raise ValueError(f"{text!r} is not a whole number")
        return int(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text == "true"
    return text


def moment(given: Mapping[str, Any], name: str, *, is_query: bool = False) -> datetime:
    """Return a time that a body or a query has, in UTC.

    Raises InvalidInput for one that does not exist, or that has no offset: the server does not know
    the zone of the client.
    """
    text = given[name]
    try:
        found = ranges.moment(text)
        if datetime.fromisoformat(text).tzinfo is None:
            example = "2026-08-01T00:00:00Z or 2026-08-01T02:00:00+02:00"
            raise ValueError(f"{text!r} has no offset; accepted: a time such as {example}")
    except ValueError as reason:
        place = {"place": f"query {name}"} if is_query else {"path": (name,)}
        raise InvalidInput([Mistake(str(reason), **place)]) from reason
    return found


def _body_of(call: Call, schema: schemas.Schema | None) -> dict[str, Any]:
    """Return the checked JSON body, or an empty mapping; raises InvalidInput."""
    text = call.content
    if schema is None:
        if text.strip():
            raise InvalidInput([Mistake("this request has no body", place="body")])
        return {}
    if text.strip():
        _require_media(call, ("application/json",))
    document = documents.parse(text if text.strip() else b"{}", "body")
    wrong = checking.compiled(schema)(document.value)
    if wrong:
        raise InvalidInput(wrong).located(document.locate)
    return dict(document.value)


def _require_media(call: Call, known: tuple[str, ...]) -> None:
    """Raise Problem (415) unless the media type of the body is one of ``known``."""
    kind = (call.request.content_type or "").partition(";")[0].strip().lower()
    if kind not in known:
        text = f"Content-Type is {kind or 'missing'}; accepted: {', '.join(known)}"
        raise Problem(415, "Unsupported media type", text)
