# SPDX-License-Identifier: Apache-2.0
"""``/v2/openapi.json``: the description of this API, made of the operations themselves.

It is OpenAPI 3.0.3, for which generators of clients have no warnings: what JSON Schema says
otherwise is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import falcon

from applier.api.endpoints import Call
from applier.api.errors import PROBLEM_JSON
from applier.api.v2 import schemas
from applier.api.v2.operation import DOCUMENTS, Operation
from applier.errors import Difference

#: The descriptions of the parameters in paths.
_PARAMETERS = {
    "new": "The plan that it is compared with, named likewise.",
    "plan": "uuid of a plan, a unique beginning of one, a unique name, 'last', or 'last~1'",
    "action": "uuid of an action, a unique beginning of one, or its name",
    "name": "name of a schema",
    "worker": "name of a worker",
}
_HEADERS = {
    "If-Match": "The ETag of the plan as it was seen: the change is refused (412) if it differs.",
    "Idempotency-Key": "A text of your own: a repeated request with it changes nothing.",
}
_MISTAKE = schemas.component("mistake", schemas.mapping({"detail": str, "pointer": str}, place=str))
#: Where the cloud is not as planned: what accept_drift would accept.
_DIFFERENCE = schemas.of_tuple("difference", Difference)
_PROBLEM = schemas.component(
    "problem",
    schemas.mapping(
        {"type": str, "status": int, "title": str},
        detail=str,
        instance=str,
        errors=[_MISTAKE],
        differences=[_DIFFERENCE],
    ),
)
_NULL = {"nullable": True}
#: The statuses with which every operation may refuse a request.
_REFUSALS = (400, 401, 403, 404, 409, 412, 413, 415, 422, 429, 502, 503)
#: How callers identify themselves, by ``[api] auth_strategy``.
_SCHEMES: dict[str, dict[str, str]] = {
    "none": {},
    "http_basic": {"type": "http", "scheme": "basic"},
    "keystone": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
}


def description_of(operations: Iterable[Operation]) -> Operation:
    """Return the operation that describes the others."""
    described = _description(operations)

    @Operation("GET /v2/openapi.json", "product:read", "openapi.get", answer={"type": "object"})
    def openapi(call: Call) -> dict[str, Any]:
        """Describe this API as OpenAPI 3.0, with the authentication that is configured."""
        strategy = call.assembly.conf.api.auth_strategy
        scheme = _SCHEMES[strategy]
        if not scheme:
            return {**described, "security": []}
        components = {**described["components"], "securitySchemes": {strategy: scheme}}
        return {**described, "components": components, "security": [{strategy: []}]}

    return openapi


def _description(operations: Iterable[Operation]) -> dict[str, Any]:
    known = sorted(schemas.COMPONENTS.items())
    names: dict[Any, str] = {id(schema): name for name, schema in known}
    words = {name: schema for name, schema in known if "enum" in schema}
    names |= {tuple(schema["enum"]): name for name, schema in words.items()}
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, None] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
        tags[_tag(operation)] = None
    parts = {name: words.get(name) or translated_of({**one}, names) for name, one in known}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "ActionPlan",
            "description": "Makes, runs and steers action plans.",
            "version": version("actionplan"),
            "license": {
                "name": "Apache-2.0",
                "url": "https://www.apache.org/licenses/LICENSE-2.0",
            },
        },
        "servers": [{"url": "http://127.0.0.1:9322"}],
        "tags": [{"name": name} for name in tags],
        "paths": translated_of(paths, names),
        "components": {"schemas": parts},
    }


def translated_of(value: Any, names: Mapping[Any, str]) -> Any:
    """Return a JSON Schema, or what contains some, in the dialect of OpenAPI 3.0.

    ``names`` has the components by the ids of their schemas, and those of words by their words: a
    reference takes their place.

    >>> translated_of({"type": ["string", "null"], "title": "a word"}, {})
    {'type': 'string', 'nullable': True, 'description': 'a word'}
    """
    if id(value) in names:
        return _reference(names[id(value)])
    if isinstance(value, list | tuple):
        return [translated_of(one, names) for one in value]
    if not isinstance(value, Mapping):
        return value
    words = tuple(word for word in value.get("enum", ()) if word is not None)
    if words in names:
        reference = _reference(names[words])
        return reference if len(words) == len(value["enum"]) else {"allOf": [reference], **_NULL}
    kinds = [one for one in value.get("type", ()) if one != "null"]
    if isinstance(value.get("type"), list) and len(kinds) > 1:
        several = [{**_of_type(value, one)} for one in kinds]
        return translated_of({"anyOf": several, "description": value.get("title", "")}, names)
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key == "properties":
            found[key] = {name: translated_of(schema, names) for name, schema in one.items()}
            continue
        found |= _TRANSLATED[key](one) if key in _TRANSLATED else {key: translated_of(one, names)}
    if found.get("type") == "array":
        found.setdefault("items", {})
    if found.get("type") == "object" and "properties" not in found:
        found.setdefault("additionalProperties", True)
    if {"type": "null"} in value.get("anyOf", ()):
        rest = [one for one in found.pop("anyOf") if one != {"type": "null"}]
        found |= {"allOf": rest, **_NULL}
    return found


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _of_type(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the part of a schema for several types that is about one of them."""
    keywords = {"integer": ("minimum", "maximum"), "string": ("pattern",), "array": ("items",)}
    return {"type": kind, **{key: schema[key] for key in keywords[kind] if key in schema}}


def _type(kind: Any) -> dict[str, Any]:
    if not isinstance(kind, list):
        return {"type": translated_of(kind, {})}
    [one] = (one for one in kind if one != "null")
    return {"type": one, **_NULL}


#: How keywords are translated that OpenAPI 3.0 does not have, or has otherwise.
_TRANSLATED: dict[str, Any] = {
    "$schema": lambda _: {},
    "propertyNames": lambda _: {},
    "title": lambda text: {"description": text},
    "const": lambda word: {"type": "string", "enum": [word]},
    "enum": lambda words: {"type": "string", "enum": words},
    "type": _type,
    "exclusiveMinimum": lambda least: {"minimum": least, "exclusiveMinimum": True},
}


def _tag(operation: Operation) -> str:
    return operation.name.partition(".")[0]


def _described(operation: Operation) -> dict[str, Any]:
    method = operation.method.lower()
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()
    ]
    headers = [("If-Match", operation.if_match), ("Idempotency-Key", method != "get")]
    parameters += [
        {"name": name, "in": "header", "description": _HEADERS[name], "schema": schemas.TEXT}
        for name, used in headers
        if used
    ]
    described: dict[str, Any] = {
        "tags": [_tag(operation)],
        "summary": operation.summary,
        "operationId": operation.name,
        "description": f"Needs the rule {operation.rule!r} of the policy.",
        "parameters": parameters,
        "responses": _answers(operation),
    }
    if operation.takes_document:
        described["requestBody"] = {
            "required": True,
            "description": f"A document; also as YAML ({', '.join(DOCUMENTS[1:])}).",
            "content": {falcon.MEDIA_JSON: {"schema": schemas.DOCUMENT}},
        }
    elif operation.body and operation.body["properties"]:
        content = {falcon.MEDIA_JSON: {"schema": operation.body}}
        required = bool(operation.body.get("required"))
        described["requestBody"] = {"required": required, "content": content}
    return described


def _answers(operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    media = operation.media.partition(";")[0]
    if media.startswith("image/"):
        good["description"] = media  # generators have no type for the content
    elif operation.status != HTTPStatus.NO_CONTENT:
        good["content"] = {media: {"schema": operation.answer}}
    refused = {"description": "Refused", "content": {PROBLEM_JSON: {"schema": _PROBLEM}}}
    answers = {str(operation.status): good, **{str(s): refused for s in _REFUSALS}}
    if operation.status == HTTPStatus.CREATED:
        answers["200"] = good
    if operation.method == "GET":
        answers["304"] = {"description": "Not changed"}
    return answers
