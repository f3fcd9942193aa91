# SPDX-License-Identifier: Apache-2.0
"""Turns errors into responses: problem documents (RFC 9457), or the error format of Watcher's API.

An unexpected error is logged. Its response, with status 500, has no details of it.
"""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from typing import Any

import falcon

from applier import errors
from planner.errors import InvalidInput, InvalidTransition, Mistake, PlannerError

LOG = logging.getLogger(__name__)

PROBLEM_JSON = "application/problem+json"
#: Watcher's API is below this path.
WATCHERS = "/v1"
#: The most mistakes that one answer lists.
MOST_MISTAKES = 20
#: The HTTP status and the title for each error class; the first class that matches counts.
_ANSWERS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.ActionNotFound, 404, "Action not found"),
    (errors.WorkerNotFound, 404, "Worker not found"),
    (errors.PlanChanged, 412, "Changed meanwhile"),
    (errors.PlanConflict, 409, "Conflict"),
    (errors.OutOfDate, 409, "Out of date"),
    (errors.GuardRefusal, 409, "Refused by a guard"),
    (errors.OtherCloud, 409, "Other cloud"),
    (errors.UnknownActionTypes, 422, "Unknown action types"),
    (errors.ActionFailed, 502, "The cloud refused"),
    (errors.StoreError, 503, "The record cannot be reached"),
    (errors.DamagedRecord, 500, "Damaged record"),
    (errors.ConfigurationError, 500, "Wrong configuration"),
    (InvalidTransition, 409, "Conflict"),
    (InvalidInput, 400, "Invalid input"),
    (PlannerError, 422, "No plan can be made"),
    (errors.ApplierError, 422, "Refused"),
)
#: The detail, by HTTP status, of an error that falcon raises without a description.
_UNSAID = {
    404: "there is no such path; /v2/openapi.json describes those that there are",
    405: "this path does not take this method; the header Allow names those that it takes",
}
#: What Watcher's API has below WATCHERS, and ActionPlan has not.
_WATCHERS_ALONE = (
    *("audits", "audit_templates", "goals", "strategies"),
    *("scoring_engines", "data_model", "webhooks"),
)
_RETRY_AFTER_S = "5"


class Problem(falcon.HTTPError):
    """An error response with a title, a text, and a list of the mistakes in the request."""

    def __init__(
        self, status: int, title: str, text: str, mistakes: tuple[Mistake, ...] = (), **more: Any
    ) -> None:
        super().__init__(status, title=title, description=text, **more)
        self.mistakes = mistakes
        self.differences: tuple[errors.Difference, ...] = ()


#: The end of a sentence for people at a command line, and how it ends for a client of the API.
_INSTEAD = (
    (r"actionplan approve (\S+) --reason TEXT", r'POST /v2/plans/\1/approve with {"why": TEXT}'),
    (r"actionplan stop (\S+) --cancel", r"POST /v2/plans/\1/cancel"),
    (r"\(create --facts-from\)", "(facts_from of POST /v2/plans)"),
    (r"apply --set max_workers=N, or limits in the document", "limits in the document"),
    (
        r"'create --out' writes all",
        "send the document that it was made of, or a copy with all of them",
    ),
    (
        r"actionplan action set \S+ (\S+) --state succeeded\|failed --reason TEXT",
        r'POST /v2/plans/ID/actions/\1/settle with {"state": "SUCCEEDED" or "FAILED", "why": TEXT}',
    ),
)


def of_api(text: str) -> str:
    """Return a sentence of an operation with requests in the place of commands that have options.

    >>> of_api("to approve it: actionplan approve 6a1f0001 --reason TEXT")
    'to approve it: POST /v2/plans/6a1f0001/approve with {"why": TEXT}'
    """
    for command, request in _INSTEAD:
        text = re.sub(command, request, text)
    return text


def add_to(app: falcon.App[Any, Any]) -> None:
    """Install the error handlers: errors have Watcher's format below /v1, else that of RFC 9457."""
    app.set_error_serializer(_serialize)
    app.add_error_handler(Exception, _fail)
    app.add_error_handler(errors.ApplierError, _refuse)
    app.add_error_handler(PlannerError, _refuse)


def problem_of(error: Exception) -> Problem:
    """Return the answer for an error of the applier or of the planner."""
    if isinstance(error, errors.PlanNotFound):
        status, title = (409, "Ambiguous") if error.candidates else (404, "Plan not found")
    else:
        status, title = next((s, t) for kind, s, t in _ANSWERS if isinstance(error, kind))
    if isinstance(error, errors.Drift):
        return _of_drift(error)
    headers = {"Retry-After": _RETRY_AFTER_S} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    mistakes = error.mistakes if isinstance(error, InvalidInput) else ()
    return Problem(status, title, of_api(str(error)), tuple(mistakes), headers=headers)


def _of_drift(error: errors.Drift) -> Problem:
    told = "; ".join(one.detail for one in error.differences[:MOST_MISTAKES])
    way = f'POST /v2/plans/{error.plan}/start with {{"accept_drift": true}}'
    text = f"the cloud is not as planned: {told}. Make a new plan, or start it nevertheless: {way}"
    problem = Problem(409, "Out of date", text)
    problem.differences = error.differences
    return problem


def is_watchers(request: falcon.Request) -> bool:
    """Return whether a request is one to Watcher's API."""
    return request.path == WATCHERS or request.path.startswith(f"{WATCHERS}/")


def _refuse(request: falcon.Request, _response: Any, error: Exception, _parameters: Any) -> None:
    if isinstance(error, errors.PlanNotFound | errors.ActionNotFound) and is_watchers(request):
        kind = "ActionPlan" if isinstance(error, errors.PlanNotFound) else "Action"
        text = f"{kind} {error.reference} could not be found"
        raise falcon.HTTPNotFound(description=text) from error
    raise problem_of(error) from error


def _fail(request: falcon.Request, _response: Any, error: Exception, _parameters: Any) -> None:
    if isinstance(error, falcon.HTTPError | falcon.HTTPStatus):
        raise error
    LOG.error("%s %s: unexpected error", request.method, request.path, exc_info=error)
    raise Problem(500, "Internal error", "unexpected error; the log of the service has it")


def _serialize(request: falcon.Request, response: falcon.Response, error: falcon.HTTPError) -> None:
    if is_watchers(request):
        response.content_type = falcon.MEDIA_JSON
        response.data = json.dumps(watchers_form(error, request.path)).encode()
        return
    response.content_type = PROBLEM_JSON
    response.data = json.dumps(problem_form(error, request)).encode()


def watchers_form(error: falcon.HTTPError, path: str) -> dict[str, str]:
    """Return an error in Watcher's format: a JSON object as text in a field of another one.

    >>> watchers_form(falcon.HTTPNotFound(description="Plan U could not be found"), "/v1")
    {'error_message': '{"faultcode": "Client", "faultstring": "Plan U could not be found", \
"debuginfo": null}'}
    """
    code = "Client" if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else "Server"
    text = error.description or _unsaid_of_watchers(error.status_code, path) or error.title
    fault = {"faultcode": code, "faultstring": text, "debuginfo": None}
    return {"error_message": json.dumps(fault)}


def _unsaid_of_watchers(status: int, path: str) -> str | None:
    """Return the text, by HTTP status, of an error that falcon raises without a description."""
    if status != HTTPStatus.NOT_FOUND:
        return _UNSAID.get(status)
    kind = path.removeprefix(f"{WATCHERS}/").partition("/")[0]
    if kind in _WATCHERS_ALONE:
        name = kind.replace("_", " ")
        return f"ActionPlan has no {name}: plans are made by actionplan create, or POST /v2/plans"
    return f"there is no such path; {WATCHERS} names those that there are"


def problem_form(error: falcon.HTTPError, request: falcon.Request) -> dict[str, Any]:
    """Return an error as a problem document.

    It has up to MOST_MISTAKES mistakes with their places, and all differences of the cloud.
    """
    document = {
        "type": "about:blank",
        "status": error.status_code,
        "title": error.title,
        "detail": error.description or _UNSAID.get(error.status_code),
        "instance": getattr(request.context, "request_id", None),
    }
    mistakes = error.mistakes if isinstance(error, Problem) else ()
    if mistakes:
        document["errors"] = [_place_of(mistake) for mistake in mistakes[:MOST_MISTAKES]]
    if isinstance(error, Problem) and error.differences:
        document["differences"] = [one._asdict() for one in error.differences]
    return {key: value for key, value in document.items() if value is not None}


def _place_of(mistake: Mistake) -> dict[str, str]:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in mistake.path)
    place = {"place": mistake.place} if mistake.place else {}
    return {
        "detail": of_api(mistake.text),
        "pointer": "".join(f"/{step}" for step in steps),
        **place,
    }
