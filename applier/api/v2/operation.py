# SPDX-License-Identifier: Apache-2.0
"""Declarations of API operations, by which requests are checked and OpenAPI is generated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import falcon

from applier.api.errors import Problem
from planner import checking, documents
from planner.errors import InvalidInput, Mistake, accepted

Schema = Mapping[str, Any]

#: Media types in which documents may be sent.
DOCUMENTS = ("application/json", "application/yaml", "text/yaml", "application/x-yaml")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An HTTP method of a path.

    Requests are checked by ``rule``, the name of a rule of the policy; by ``query``, a JSON Schema
    for each parameter of the query; and by ``body``, the schema of a JSON body, which may be left
    out if no field is required. None means that there is no JSON body.

    The other fields are only documented: whether the body is a document instead; the status, the
    media type and the schema (``answer``) of a response without an error; and whether the resource
    follows the headers ``If-Match`` and ``Idempotency-Key``.
    """

    rule: str
    summary: str
    answer: Schema = field(default_factory=dict)
    status: int = 200
    media: str = falcon.MEDIA_JSON
    query: Mapping[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    takes_document: bool = False
    if_match: bool = False
    idempotency_key: bool = False


class Resource:
    """A path with its operations by method."""

    OPERATIONS: Mapping[str, Operation] = {}

    @property
    def RULES(self) -> dict[str, str]:  # noqa: N802
        """The rule of the policy for each method."""
        return {method: operation.rule for method, operation in self.OPERATIONS.items()}

    def query(self, request: falcon.Request) -> dict[str, Any]:
        """Return the checked parameters of the query; raises InvalidInput with all mistakes."""
        return query_of(request, self.OPERATIONS[request.method])

    def body(self, request: falcon.Request) -> dict[str, Any]:
        """Return the checked JSON body, or an empty mapping; raises InvalidInput."""
        return body_of(request, self.OPERATIONS[request.method])


def query_of(request: falcon.Request, operation: Operation) -> dict[str, Any]:
    """Return the checked parameters of the query; raises InvalidInput with all mistakes."""
    found: dict[str, Any] = {}
    mistakes = []
    for name in request.params:
        if name not in operation.query:
            text = f"no such parameter; {accepted(name, operation.query)}"
            mistakes.append(Mistake(text, place=f"query {name}"))
            continue
        schema = operation.query[name]
        try:
            found[name] = _parsed(request.get_param_as_list(name) or [], schema)
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=f"query {name}"))
            continue
        wrong = checking.compiled(schema)(found[name])
        mistakes += [Mistake(m.text, place=f"query {name}") for m in wrong]
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def _parsed(texts: list[str], schema: Schema) -> Any:
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


def body_of(request: falcon.Request, operation: Operation) -> dict[str, Any]:
    """Return the checked JSON body, or an empty mapping; raises InvalidInput."""
    text = read_body(request)
    if operation.body is None:
        if text.strip():
            raise InvalidInput([Mistake("this request has no body", place="body")])
        return {}
    if text.strip():
        require_media(request, ("application/json",))
    document = documents.parse(text if text.strip() else b"{}", "body")
    wrong = checking.compiled(operation.body)(document.value)
    if wrong:
        raise InvalidInput(wrong).located(document.locate)
    return dict(document.value)


def document_in(request: falcon.Request) -> documents.Document:
    """Return the body of a request as a document; raises InvalidInput, Problem (415)."""
    require_media(request, DOCUMENTS)
    return documents.parse(read_body(request), "body")


def read_body(request: falcon.Request) -> bytes:
    """Return the body of a request, however often it is asked for."""
    if not hasattr(request.context, "body"):
        request.context.body = request.bounded_stream.read()
    body: bytes = request.context.body
    return body


def require_media(request: falcon.Request, known: tuple[str, ...]) -> None:
    """Raise a problem (415) unless the media type of the body is one of ``known``."""
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    if kind not in known:
        text = f"Content-Type is {kind or 'missing'}; accepted: {', '.join(known)}"
        raise Problem(415, "Unsupported media type", text)
