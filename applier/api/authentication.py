# SPDX-License-Identifier: Apache-2.0
"""Authenticates requests by the strategy that ``[api] auth_strategy`` names, or by a token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import falcon
from oslo_config import cfg

from applier.api.access import Caller, Rates, Strategy
from applier.errors import ConfigurationError
from applier.extras import MissingExtra
from applier.wording import one_line

LOG = logging.getLogger(__name__)

#: The user name in the history if requests are not authenticated (``auth_strategy = none``).
ANONYMOUS = "anonymous"
LONGEST_PASSWORD = 72
MOST_REMEMBERED = 1000
#: The role of users of a password file that ``[api] roles`` does not name.
DEFAULT_ROLE = "reader"
#: How many passwords from one address are compared with a hash in a second, on average; ten
#: seconds' worth may come at once.
LOGINS_PER_SECOND = 1.0
#: The end of a hash that no password has. The cost before it is that of the users.
_NO_HASH = b"." * 53


def strategy(conf: cfg.ConfigOpts) -> Strategy:
    """Return the configured strategy.

    Raises ConfigurationError if the password file is not valid, or if requests from other machines
    would be accepted without authentication.
    """
    name = conf.api.auth_strategy
    if name == "http_basic":
        return PasswordFile(Path(conf.api.http_basic_auth_user_file), conf.api.roles)
    if name == "keystone":
        return from_keystone
    if not is_loopback(conf.api.host):
        raise ConfigurationError(
            f"[api] host is {conf.api.host}: auth_strategy = none is accepted only on a loopback "
            "address; set auth_strategy to http_basic or keystone"
        )
    return anonymous


def guarded(conf: cfg.ConfigOpts, application: Callable[..., Any]) -> Callable[..., Any]:
    """Return the application, inside keystonemiddleware if the strategy is ``keystone``.

    Raises ConfigurationError if keystonemiddleware is not installed.
    """
    if conf.api.auth_strategy != "keystone":
        return application
    try:
        from applier.api.keystone import KeystoneTokens
    except ImportError:
        missing = MissingExtra("[api] auth_strategy = keystone", "keystone")
        raise ConfigurationError(str(missing)) from None
    checked: Callable[..., Any] = KeystoneTokens(application, conf)
    return checked


#: Usual names of this machine, which need not be parsed.
_USUAL = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Return whether an address is a loopback one; the only such name is ``localhost``.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("a.b")
    (True, True, True, False)
    """
    if host in _USUAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def anonymous(request: falcon.Request, request_id: str) -> Caller:
    """Return the anonymous caller, with the role ``operator``.

    Raises falcon.HTTPForbidden unless the host in the request is a loopback one. Otherwise a page
    of another site could make a browser send requests to this machine by DNS rebinding.
    """
    if not is_loopback(request.host.strip("[]")):
        raise falcon.HTTPForbidden(
            title="Not for this host",
            description=f"the host {request.host!r} is not accepted: without authentication, "
            "requests must be sent to 127.0.0.1, ::1 or localhost",
        )
    roles = frozenset({"operator"})
    return Caller(user=ANONYMOUS, roles=roles, address=_address(request), request_id=request_id)


def from_keystone(request: falcon.Request, request_id: str) -> Caller:
    """Return the caller that keystonemiddleware has confirmed, with the roles of the token.

    Raises falcon.HTTPUnauthorized if it has confirmed none, and falcon.HTTPServiceUnavailable if
    Keystone does not answer.
    """
    from applier.api.keystone import require_answer

    require_answer(request)
    if request.get_header("X-Identity-Status") != "Confirmed":
        raise falcon.HTTPUnauthorized(
            title="Unauthorized",
            description="a valid token of Keystone is needed in X-Auth-Token",
        )
    roles = (request.get_header("X-Roles") or "").split(",")
    return Caller(
        user=request.get_header("X-User-Name") or request.get_header("X-User-Id") or "",
        roles=frozenset(role.strip().lower() for role in roles if role.strip()),
        address=_address(request),
        request_id=request_id,
        project=request.get_header("X-Project-Name") or request.get_header("X-Project-Id"),
    )


class PasswordFile:
    """The strategy ``http_basic``: users and bcrypt hashes of a file, read for each request.

    bcrypt is slow by design, so each correct password is cached, as a checksum over it and its hash
    in the file. An unknown user costs as much as a known one. ``roles`` has a role for each user
    that is no ``reader``. Raises ConfigurationError, at any request too, if the file is not valid.
    """

    def __init__(self, path: Path, roles: Mapping[str, str]) -> None:
        self._path, self._roles = path, roles
        self._right: set[bytes] = set()
        self._comparing = threading.Lock()
        self._logins = Rates(LOGINS_PER_SECOND)
        if unknown := sorted(roles.keys() - self._users()):
            names = ", ".join(unknown)
            raise ConfigurationError(f"[api] roles names users that are not in {path}: {names}")

    def __call__(self, request: falcon.Request, request_id: str) -> Caller:
        """Return the user, with the role that the configuration gives.

        Raises falcon.HTTPUnauthorized for a wrong password, and falcon.HTTPTooManyRequests if too
        many came from the same address.
        """
        user, password = _given(request)
        users, address = self._users(), _address(request)
        known = users.get(user) or _costliest(users.values()) + _NO_HASH
        checksum = hashlib.sha256(known + password).digest()
        if checksum not in self._right:
            # Of many requests at once with one password, the first is compared for all.
            with self._comparing:
                if checksum not in self._right:
                    self._log_in(user, password, known, address)
                    if len(self._right) >= MOST_REMEMBERED:
                        self._right.clear()
                    self._right.add(checksum)
        roles = frozenset({self._roles.get(user, DEFAULT_ROLE)})
        return Caller(user=user, roles=roles, address=address, request_id=request_id)

    def _log_in(self, user: str, password: bytes, known: bytes, address: str) -> None:
        import bcrypt

        wait_s = self._logins.wait_s(address)
        if wait_s:
            raise falcon.HTTPTooManyRequests(
                title="Too many logins",
                description="too many passwords came from this address",
                retry_after=math.ceil(wait_s),
            )
        # bcrypt refuses more than 72 bytes; no hash is that of a longer password.
        is_right = bcrypt.checkpw(password[:LONGEST_PASSWORD], known)
        if not is_right or len(password) > LONGEST_PASSWORD or known.endswith(_NO_HASH):
            LOG.warning("Login of %s from %s failed", one_line(user)[:80], address)
            raise _unauthorized()

    def _users(self) -> dict[str, bytes]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else "it is not UTF-8 text"
            text = f"[api] http_basic_auth_user_file {self._path} cannot be read: {why}"
            raise ConfigurationError(text) from reason
        users = {}
        for number, line in enumerate(text.splitlines(), 1):
            user, colon, known = line.strip().partition(":")
            if not user or user.startswith("#"):
                continue
            if not colon or known[:4] not in ("$2y$", "$2a$", "$2b$"):
                raise ConfigurationError(
                    f"{self._path}:{number}: no USER:HASH with a hash of bcrypt; "
                    f"'htpasswd -B {self._path} USER' writes one"
                )
            users[user] = known.encode()
        return users


def _costliest(hashes: Iterable[bytes]) -> bytes:
    """Return the beginning of the hash that takes longest to compare: its kind and its cost.

    >>> _costliest([b"$2y$05$salt", b"$2b$12$salt"])
    b'$2b$12$'
    """
    return max((known[:7] for known in hashes), key=lambda known: known[4:], default=b"$2b$12$")


def _given(request: falcon.Request) -> tuple[str, bytes]:
    """Return user and password of a request; raises falcon.HTTPUnauthorized."""
    scheme, _, token = (request.auth or "").partition(" ")
    try:
        user, colon, password = base64.b64decode(token.strip(), validate=True).partition(b":")
        if scheme.lower() == "basic" and colon:
            return user.decode(), password
    except ValueError:  # not base64, or not UTF-8
        pass
    raise _unauthorized()


def _unauthorized() -> falcon.HTTPUnauthorized:
    return falcon.HTTPUnauthorized(
        title="Unauthorized",
        description="user and password are needed, and one of them is wrong or missing",
        challenges=['Basic realm="actionplan"'],
    )


def _address(request: falcon.Request) -> str:
    return request.remote_addr or ""


#: The parameter of the query that has the token.
PARAMETER = "token"
_RIGHT = "actionplan.token_is_right"
#: The WSGI variable with ``?token=TOKEN`` for links and redirects; empty if the token is wrong.
AGAIN = "actionplan.query"


class AddressWithToken:
    """An authentication strategy, and the WSGI wrapper that checks the token and removes it.

    The strategy accepts only requests that came through the wrapper (:meth:`around`).
    """

    def __init__(self, token: str, user: str) -> None:
        self._token, self._user = token.encode(), user

    def around(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """Return an application that removes the token from the query, and calls the given one."""

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            given = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
            tokens = [value for name, value in given if name == PARAMETER]
            right = len(tokens) == 1 and hmac.compare_digest(tokens[0].encode(), self._token)
            rest = urlencode([(name, value) for name, value in given if name != PARAMETER])
            # Links and redirects of the application need the token again.
            again = f"?{urlencode({PARAMETER: tokens[0]})}" if right else ""
            own = {"QUERY_STRING": rest, _RIGHT: right, AGAIN: again}
            return application({**environ, **own}, start_response)

        return answer

    def __call__(self, request: falcon.Request, request_id: str) -> Caller:
        """Return the user, with the role ``admin``; raise falcon.HTTPForbidden without the token.

        The host in the request must be a loopback one.
        """
        nobody = anonymous(request, request_id)
        if not request.env.get(_RIGHT):
            raise falcon.HTTPForbidden(
                title="Wrong address",
                description="use the whole address that 'actionplan watch --web' printed",
            )
        return replace(nobody, user=self._user, roles=frozenset({"admin"}))
