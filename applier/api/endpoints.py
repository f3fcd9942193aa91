# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the API: a method of a path, who may use it, and the function that answers calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import falcon

from applier.api.access import Caller, Policy, read_body
from applier.api.errors import of_api
from applier.api.feed import EventFeed, LivePages
from applier.assembly import Assembly
from applier.operations import Operator, lookup
from planner.documents import Document
from planner.plan.model import Action, ActionPlan

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What all calls share: the assembly of the configuration, the policy, events and pages."""

    assembly: Assembly
    policy: Policy
    feed: EventFeed
    live: LivePages


class Call:
    """A request to an endpoint, and what its function needs to answer it.

    ``names`` are the parts of the path that stand in braces in the route. ``query`` and ``body`` or
    ``document`` are set for endpoints of /v2, which declare what they accept. ``told`` has the
    messages of the operation that ``operator`` was passed to.
    """

    query: dict[str, Any]
    body: dict[str, Any]
    document: Document

    def __init__(
        self,
        parts: Parts,
        request: falcon.Request,
        response: falcon.Response,
        names: Mapping[str, str],
    ) -> None:
        self.parts, self.request, self.response, self.names = parts, request, response, names
        self.assembly = parts.assembly
        self.told: list[str] = []

    @property
    def store(self) -> SqlStore:
        """The store of plans."""
        return self.assembly.store

    @property
    def caller(self) -> Caller:
        """The authenticated caller; there is none for a public endpoint."""
        caller: Caller = self.request.context.caller
        return caller

    @property
    def operator(self) -> Operator:
        """The caller as the operator of an operation, whose messages go to ``told``.

        With an idempotency key, the change of the operation happens once.
        """

        def say(text: str) -> None:
            self.told.append(of_api(text))

        return Operator(
            name=self.caller.user,
            say=say,
            note=say,
            project=self.caller.project,
            address=self.caller.address,
            request_id=self.caller.request_id,
            once=getattr(self.request.context, "once", None),
            after=getattr(self.request.context, "after", None),
        )

    @cached_property
    def content(self) -> bytes:
        """The body of the request as it was sent."""
        return self.request.bounded_stream.read()

    @cached_property
    def plan(self) -> ActionPlan:
        """The plan that the path names; raises PlanNotFound."""
        return lookup.find_plan(self.store, self.names["plan"])

    @cached_property
    def action(self) -> Action:
        """The action of the plan that the path names; raises ActionNotFound."""
        return lookup.find_action(self.plan, self.names["action"])

    @property
    def part(self) -> tuple[ActionPlan, Action]:
        """The plan and the action that the path names, with no more than explains the action."""
        return lookup.find_part(self.store, self.names["plan"], self.names["action"])


Function = Callable[[Call], Any]


@dataclass
class Endpoint:
    """A route, such as ``GET /v1/actions``, and the function that it decorates, which answers it.

    ``rule`` is the name of the rule of the policy that lets callers pass; an endpoint without one
    is public. The function returns JSON types, text or bytes, as ``media`` says, or None if there
    is no body or if it has written the response itself. ``status`` is that of the response, unless
    the function sets another one.
    """

    route: str
    rule: str | None
    status: int = field(default=200, kw_only=True)
    media: str = field(default=falcon.MEDIA_JSON, kw_only=True)
    function: Function = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.method, self.path = self.route.split(" ")

    def __call__(self, function: Function) -> Self:
        """Decorate the function, whose name becomes that of the endpoint."""
        self.function = function
        return self

    def respond(self, call: Call) -> None:
        """Answer a call with what the function returns."""
        response = call.response
        response.status = self.status
        answer = self.function(call)
        if answer is None:
            return
        response.content_type = self.media
        if isinstance(answer, str):
            response.text = answer
        elif isinstance(answer, bytes):
            response.data = answer
        else:
            response.media = answer


class Resource:
    """The endpoints of one path, as falcon calls them; HEAD is answered as GET."""

    def __init__(self, parts: Parts, endpoints: Sequence[Endpoint]) -> None:
        for endpoint in endpoints:
            for method in (endpoint.method, *(["HEAD"] if endpoint.method == "GET" else [])):
                setattr(self, f"on_{method.lower()}", partial(_respond, endpoint, parts))


def _respond(
    endpoint: Endpoint,
    parts: Parts,
    request: falcon.Request,
    response: falcon.Response,
    **names: str,
) -> None:
    """Answer a request that the policy allows, which it does before the body is read."""
    if endpoint.rule is not None:
        parts.policy.require(request.context.caller, endpoint.rule)
        read_body(request)
    endpoint.respond(Call(parts, request, response, names))


def endpoints_of(*modules: ModuleType) -> tuple[Endpoint, ...]:
    """Return the endpoints that modules define, in the order in which they stand there."""
    values = (value for module in modules for value in vars(module).values())
    return tuple(value for value in values if isinstance(value, Endpoint))


def resources_of(parts: Parts, endpoints: Iterable[Endpoint]) -> dict[str, Resource]:
    """Return the resource of each path."""
    paths: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, []).append(endpoint)
    return {path: Resource(parts, together) for path, together in paths.items()}
