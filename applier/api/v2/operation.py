# SPDX-License-Identifier: Apache-2.0
"""Operations: endpoints that declare what they accept and answer, for checks and for OpenAPI."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any

import falcon

from applier.api.endpoints import Call, Endpoint
from applier.api.errors import Problem
from applier.api.v2 import answers, schemas
from applier.errors import PlanChanged, PlanConflict
from planner import documents
from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.model import ActionPlan
from planner.schemas import checking, ranges

#: Media types in which documents may be sent.
DOCUMENTS = ("application/json", "application/yaml", "text/yaml", "application/x-yaml")


@dataclass
class Operation(Endpoint):
    """An endpoint of /v2 with a name, such as ``plans.create``: what it is about, and a verb.

    The docstring of its function begins with its summary.

    Calls are checked by ``query``, a JSON Schema for each parameter of the query; and by ``body``,
    the schema of a JSON body, which may be left out if no field is required. None means that there
    is no JSON body. With ``takes_document``, the body is a document instead. With ``if_match``, the
    plan that the path names must have the tag in the header ``If-Match``, if there is one. Every
    method but GET follows the header ``Idempotency-Key``.

    ``answer`` is the schema of a response without an error. Answers to GET have a tag.
    """

    name: str
    answer: schemas.Schema = field(default_factory=dict)
    _: KW_ONLY
    query: Mapping[str, schemas.Schema] = field(default_factory=dict)
    body: schemas.Schema | None = None
    takes_document: bool = False
    if_match: bool = False

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
            answers.compare_tags(call)
        else:
            answers.once(call, self._change, status=self.status, makes_plan=self.makes_plan)

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
            answers.require_unchanged(call)
        try:
            super().respond(call)
        except PlanConflict as conflict:
            after = getattr(call.request.context, "after", None)
            if after is None or answers.changes(call.store, call.plan) == after:
                raise
            raise PlanChanged(call.plan.uuid, conflict.state) from conflict


def change(
    route: str, rule: str, name: str, body: schemas.Schema = schemas.REASON
) -> Callable[[Callable[[Call], None]], Operation]:
    """Decorate a function that changes a plan or an action, or raises an ApplierError to refuse it.

    The answer has the state and the tag of the plan after the change, and the messages of the
    operation.
    """

    def declared(make: Callable[[Call], None]) -> Operation:
        @Operation(route, rule, name, body=body, if_match=True, answer=schemas.DONE)
        @wraps(make)
        def respond(call: Call) -> dict[str, Any]:
            make(call)

            def read() -> tuple[ActionPlan, str]:
                after = call.store.refresh_plan(call.plan)
                return after, answers.current_tag(call.store, after)

            after, tag = call.store.of_one_moment(read)
            call.response.set_header("ETag", tag)
            return {"uuid": after.uuid, "state": str(after.state), "messages": call.told}

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
        # What is chosen from a list may stand in one text, with commas.
        is_choice = "enum" in schema["items"]
        return [one for text in texts for one in text.split(",")] if is_choice else texts
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


def next_page(call: Call, **marks: Any) -> str:
    """Return the URL of the same list, from other marks on."""
    query = {name: str(one) if one is True else one for name, one in call.query.items()}
    return (
        call.request.forwarded_prefix
        + call.request.path
        + falcon.to_query_str({**query, **marks}, comma_delimited_lists=False)
    )


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
