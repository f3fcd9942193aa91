# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the policy, and middleware that authenticates, authorizes and rate-limits."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import falcon
from oslo_config import cfg
from oslo_context import context
from oslo_policy import policy

from applier.wording import one_line

LOG = logging.getLogger(__name__)

#: The maximum size of the body of a request, in bytes.
MOST_BYTES = 16 * 1024 * 1024
#: The WSGI variable with the body of a request that was not read yet, which has a method
#: ``read_into``.
BODY = "actionplan.body"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The authenticated user who sends a request, or the anonymous one, and the roles of that user.

    ``address`` is the IP address of the peer of the connection, which may be a proxy.
    ``request_id`` identifies the request in logs, in the history and in the response. ``project``
    is None unless Keystone authenticates.
    """

    user: str
    roles: frozenset[str]
    address: str
    request_id: str
    project: str | None = None


#: Authenticates a request, whose id becomes a field of the caller; raises falcon.HTTPUnauthorized
#: or HTTPForbidden to reject it.
Strategy = Callable[[falcon.Request, str], Caller]


class Rule(NamedTuple):
    """A rule of the policy: its name, its default check string (oslo.policy), what it allows."""

    name: str
    check: str
    allows: str


READ, OPERATE, ADMINISTER = "rule:reader", "rule:operator", "rule:admin"
RULES = (
    Rule("admin", "role:admin", "who may do everything"),
    Rule("operator", "role:operator or rule:admin", "who may make and run plans"),
    Rule("plan:read", READ, "list and show plans, their actions, output and history"),
    Rule("plan:create", OPERATE, "make and store plans"),
    Rule("plan:delete", OPERATE, "remove plans, and bring them back"),
    Rule("plan:approve", OPERATE, "approve plans"),
    Rule("plan:run", OPERATE, "start, pause, resume, cancel and roll back plans, change limits"),
    Rule("action:steer", OPERATE, "skip, abort and settle actions"),
    Rule("event:read", READ, "read the events of all plans"),
    Rule("event:administer", ADMINISTER, "remove subscriptions to events"),
    Rule("record:administer", ADMINISTER, "export, import and purge plans, import durations"),
    Rule("service:read", READ, "list applier services and workers"),
    Rule("worker:drain", OPERATE, "tell workers to take no more jobs"),
    Rule("product:read", READ, "list planners, action types and schemas"),
    Rule("metrics:read", READ, "read metrics"),
)
#: The rule for reading. With Keystone, whose role 'reader' every member of any project has, its
#: default is the role ``[api] reader_role``, besides those of operators.
READER = "reader"
#: The rule for storing plans whose actions run commands or read secrets of the applier. Its default
#: is the role ``[api] command_role``.
COMMANDS = "plan:create_with_commands"
#: For how many seconds decisions are cached; a changed policy.yaml takes effect after that.
KEPT_S = 5.0


class Policy:
    """Checks callers against the rules of the policy.

    Decisions are cached for KEPT_S seconds, because oslo.policy looks for changed files at each
    check.
    """

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic) -> None:
        self._enforcer, self._clock = policy.Enforcer(conf), clock
        self._decisions: dict[tuple[object, ...], bool] = {}
        self._kept_until = 0.0
        configured = (
            Rule(READER, f"{_reader(conf)}rule:operator", "who may look"),
            Rule(COMMANDS, f"role:{conf.api.command_role}", "store plans that run commands"),
        )
        for name, check, allows in (*RULES, *configured):
            self._enforcer.register_default(policy.RuleDefault(name, check, allows))

    def allows(self, caller: Caller, rule: str) -> bool:
        """Return whether a rule lets the caller pass."""
        now = self._clock()
        if now > self._kept_until:
            self._decisions, self._kept_until = {}, now + KEPT_S
        key = rule, caller.user, caller.project, caller.roles
        decided = self._decisions.get(key)
        if decided is None:
            decided = self._decisions[key] = self._decide(caller, rule)
        return decided

    def _decide(self, caller: Caller, rule: str) -> bool:
        credentials = {
            "roles": sorted(caller.roles),
            "user_name": caller.user,
            "project_name": caller.project or "",
        }
        return bool(self._enforcer.authorize(rule, {}, credentials))

    def require(self, caller: Caller, rule: str) -> None:
        """Raise falcon.HTTPForbidden if a rule does not let the caller pass."""
        if not self.allows(caller, rule):
            raise falcon.HTTPForbidden(
                title="Forbidden",
                description=f"{caller.user} may not do that: the rule {rule!r} of the policy "
                f"does not let the roles {', '.join(sorted(caller.roles)) or 'none'} pass",
            )


def _reader(conf: cfg.ConfigOpts) -> str:
    """Return how rules begin that let readers pass: ``role:reader or``, or an empty text."""
    role = conf.api.reader_role if conf.api.auth_strategy == "keystone" else "reader"
    return f"role:{role} or " if role else ""


#: The WSGI variable with the time at which a request began, if something was done before.
BEGAN = "actionplan.began"
#: How many characters of a path are logged.
_LONGEST_PATH = 200
#: Methods that change nothing.
SAFE = ("GET", "HEAD", "OPTIONS")
#: Headers of each response, unless its resource sets them: browsers guess no media type, run no
#: scripts, show the response in no frame, and store no copy.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
#: A caller may send at once the requests that the rate allows for this many seconds.
BURST_S = 10.0
#: The number of callers whose buckets are kept. Beyond it, the bucket that was used longest ago is
#: dropped; its caller begins with a full one again.
MOST_CALLERS = 10_000


class Rates:
    """A token bucket for each caller, which is refilled at ``per_second``. Safe for threads."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._most = max(1.0, per_second * BURST_S)
        #: The requests left in the bucket of each caller, and the clock time of that count.
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Count a request and return 0.0; if it is too early, return the seconds until it is not.

        A request that is too early is not counted.

        >>> rates = Rates(0.1, clock=lambda: 0.0)
        >>> rates.wait_s("ada"), rates.wait_s("ada"), rates.wait_s("bob")
        (0.0, 10.0, 0.0)
        """
        now = self._clock()
        with self._lock:
            left, since = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - since) * self._per_second)
            wait_s = 0.0 if left >= 1 else (1 - left) / self._per_second
            self._left[caller] = (left if wait_s else left - 1, now)
            if len(self._left) > MOST_CALLERS:
                self._left.pop(next(iter(self._left)))
        return wait_s


class Access:
    """Middleware that rejects requests that are not authenticated, or too frequent.

    ``public`` are the paths that need no authentication.
    """

    def __init__(self, strategy: Strategy, rates: Rates, public: set[str]) -> None:
        self._strategy, self._rates, self._public = strategy, rates, public

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Authenticate a request; store its caller and a new request id in ``request.context``.

        Raises falcon.HTTPError for a request that a page of another site sends (403), that is too
        large (413), that is not authenticated, or that exceeds the rate of its caller (429). A
        request to a public path gets only the request id.
        """
        request_id = request.context.request_id = f"req-{uuid4()}"
        response.set_header("x-openstack-request-id", request_id)
        # From here on, each log record of this thread has the request id.
        context.RequestContext(request_id=request_id, overwrite=True)
        _refuse_malformed(request)
        if request.path in self._public:
            return
        _refuse_other_sites(request)
        if (request.content_length or 0) > MOST_BYTES:
            text = f"a request may have {MOST_BYTES} bytes"
            raise falcon.HTTPContentTooLarge(title="Too large", description=text)
        caller = request.context.caller = self._strategy(request, request_id)
        wait_s = self._rates.wait_s(f"{caller.user} {caller.address}")
        if wait_s:
            raise falcon.HTTPTooManyRequests(
                title="Too many requests",
                description="[api] requests_per_second bounds how often one caller may ask",
                retry_after=math.ceil(wait_s),
            )

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        """Log the request, without its query, and set the HEADERS that the response lacks.

        Later logs have no request id.
        """
        if request.path not in self._public:
            caller = getattr(request.context, "caller", None)
            LOG.info(
                '%s from %s: "%s %s" %s, %.3f s',
                one_line(caller.user) if caller else "nobody",
                request.remote_addr,
                request.method,
                one_line(request.path)[:_LONGEST_PATH],
                response.status_code,
                time.monotonic() - request.context.began,
            )
        # oslo.context keeps it in a thread-local variable, and has no function that clears it.
        vars(context._request_store).pop("context", None)
        for name, value in HEADERS.items():
            if response.get_header(name) is None:
                response.set_header(name, value)


def read_body(request: falcon.Request) -> None:
    """Read the body of a request, in a server that has not read it before."""
    if BODY in request.env:
        request.env[BODY].read_into(request.env)
    elif "HTTP_TRANSFER_ENCODING" in request.env:
        # Other servers give no length, without which the body would be taken for empty.
        text = "the request needs the header Content-Length"
        raise falcon.HTTPLengthRequired(title="No length", description=text)


def _refuse_other_sites(request: falcon.Request) -> None:
    """Raise falcon.HTTPForbidden if a page of another site sends a changing request (CSRF)."""
    if request.method in SAFE:
        return
    origin = request.get_header("Origin")
    if request.get_header("Sec-Fetch-Site") in ("cross-site", "same-site"):
        raise falcon.HTTPForbidden(
            title="Other site", description="requests from pages of other sites are not accepted"
        )
    if origin is not None and urlsplit(origin).netloc != request.netloc:
        raise falcon.HTTPForbidden(
            title="Other site", description=f"requests from pages of {origin!r} are not accepted"
        )


def _refuse_malformed(request: falcon.Request) -> None:
    """Raise falcon.HTTPBadRequest for a header Host or Origin that is none."""
    _require_address("Host", lambda: request.port, "HOST or HOST:PORT", request.get_header("Host"))
    origin = request.get_header("Origin")
    _require_address("Origin", lambda: urlsplit(origin), "SCHEME://HOST", origin)


def _require_address(
    name: str, read: Callable[[], object], accepted: str, given: str | None
) -> None:
    try:
        read()
    except ValueError:
        raise falcon.HTTPBadRequest(
            title="Invalid header", description=f"{name} is {given!r}; accepted: {accepted}"
        ) from None
