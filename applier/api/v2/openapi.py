# SPDX-License-Identifier: Apache-2.0
"""``/v2/openapi.json``: the description of this API, made of the operations themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import falcon

from applier.api.endpoints import Call
from applier.api.errors import PROBLEM_JSON
from applier.api.v2 import schemas
from applier.api.v2.operation import DOCUMENTS, Operation
from planner.making import saved

#: The descriptions of the parameters in paths.
_PARAMETERS = {
    "new": "The plan that it is compared with, named likewise.",
    "plan": "uuid of a plan, a unique beginning of one, a unique name, 'last', or 'last~1'",
    "action": "uuid of an action, a unique beginning of one, or its name",
    "name": "name of a schema",
    "worker": "name of a worker",
}
_PROBLEM: schemas.Schema = {
    "type": "object",
    "required": ["type", "status", "title"],
    "properties": {
        "type": schemas.TEXT,
        "status": {"type": "integer"},
        "title": schemas.TEXT,
        "detail": schemas.TEXT,
        "instance": schemas.TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail", "pointer"],
                "properties": {
                    "detail": schemas.TEXT,
                    "pointer": schemas.TEXT,
                    "place": schemas.TEXT,
                },
            },
        },
        # Where the cloud is not as planned: what accept_drift would accept.
        "differences": {
            "type": "array",
            "items": schemas.mapping(
                {
                    "detail": schemas.TEXT,
                    "resource": schemas.TEXT,
                    "planned": schemas.TEXT_OR_NONE,
                    "now": schemas.TEXT_OR_NONE,
                }
            ),
        },
    },
}
#: The statuses with which every operation may refuse a request.
_REFUSALS = (400, 401, 403, 404, 409, 412, 413, 415, 422, 429, 502, 503)


def description_of(operations: Iterable[Operation]) -> Operation:
    """Return the operation that describes the others."""
    text = json.dumps(_description(operations)).encode()

    @Operation("GET /v2/openapi.json", "product:read", answer={"type": "object"})
    def openapi(_call: Call) -> bytes:
        """Describe this API as OpenAPI 3.1."""
        return text

    return openapi


def _description(operations: Iterable[Operation]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ActionPlan",
            "version": version("actionplan"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": {"plan": saved.SCHEMA, "problem": _PROBLEM}},
    }


def _described(operation: Operation) -> dict[str, Any]:
    method, path = operation.method.lower(), operation.path
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()
    ]
    headers = [("If-Match", operation.if_match), ("Idempotency-Key", method != "get")]
    parameters += [
        {"name": name, "in": "header", "schema": {"type": "string"}}
        for name, used in headers
        if used
    ]
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": f"{method}{re.sub(r'[^a-z]+', '_', path)}".rstrip("_"),
        "description": f"Needs the rule {operation.rule!r} of the policy.",
        "parameters": parameters,
        "responses": _answers(operation),
    }
    if operation.takes_document:
        content: dict[str, Any] = {kind: {"schema": {"type": "object"}} for kind in DOCUMENTS}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.body is not None:
        content = {falcon.MEDIA_JSON: {"schema": operation.body}}
        required = bool(operation.body.get("required"))
        described["requestBody"] = {"required": required, "content": content}
    return described


def _answers(operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.status != HTTPStatus.NO_CONTENT:
        media = operation.media.partition(";")[0]
        good["content"] = {media: {"schema": operation.answer}}
    problem = {"schema": {"$ref": "#/components/schemas/problem"}}
    refused = {"description": "Refused", "content": {PROBLEM_JSON: problem}}
    answers = {str(operation.status): good, **{str(s): refused for s in _REFUSALS}}
    if operation.status == HTTPStatus.CREATED:
        answers["200"] = good
    if operation.makes_plan:
        answers["304"] = {"description": "Not changed"}
    return answers
