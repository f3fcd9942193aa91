# SPDX-License-Identifier: Apache-2.0
"""Authenticates requests by the strategy that the option ``[api] auth_strategy`` names."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import falcon
from oslo_config import cfg

from applier.api.caller import Caller
from applier.errors import ConfigurationError
from applier.extras import MissingExtra

#: The user name in the history if requests are not authenticated (``auth_strategy = none``).
ANONYMOUS = "anonymous"
LONGEST_PASSWORD = 72
MOST_REMEMBERED = 1000


class Strategy(Protocol):
    """Authenticates requests; raises falcon.HTTPUnauthorized or HTTPForbidden to reject one."""

    def __call__(self, request: falcon.Request, request_id: str) -> Caller:
        """Return the caller of a request; ``request_id`` becomes a field of the caller."""


def strategy(conf: cfg.ConfigOpts) -> Strategy:
    """Return the configured strategy.

    Raises ConfigurationError if the password file is not valid, or if requests from other machines
    would be accepted without authentication.
    """
    name = conf.api.auth_strategy
    if name == "http_basic":
        return PasswordFile(Path(conf.api.http_basic_auth_user_file))
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
        from keystonemiddleware.auth_token import AuthProtocol
    except ImportError:
        missing = MissingExtra("[api] auth_strategy = keystone", "keystone")
        raise ConfigurationError(str(missing)) from None
    # The application itself rejects invalid tokens: errors of /v1 and /v2 differ in form.
    settings = {"oslo_config_config": conf, "delay_auth_decision": True}
    checked: Callable[..., Any] = AuthProtocol(application, settings)
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

    Raises falcon.HTTPUnauthorized if it has confirmed none.
    """
    if request.get_header("X-Identity-Status") != "Confirmed":
        raise falcon.HTTPUnauthorized(
            title="Unauthorized",
            description="a valid token of Keystone is needed in X-Auth-Token",
            challenges=["Keystone"],
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
    in the file. Raises ConfigurationError, at any request too, if the file is not valid.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._right: set[bytes] = set()
        self._users()

    def __call__(self, request: falcon.Request, request_id: str) -> Caller:
        """Return the user, with the role ``admin``; raise HTTPUnauthorized for a wrong password."""
        user, password = _given(request)
        known = self._users().get(user)
        if known is None or not self._is_right(known, password):
            raise _unauthorized()
        roles = frozenset({"admin"})
        return Caller(user=user, roles=roles, address=_address(request), request_id=request_id)

    def _is_right(self, known: bytes, password: bytes) -> bool:
        import bcrypt

        checksum = hashlib.sha256(known + password).digest()
        if checksum in self._right:
            return True
        # bcrypt refuses more than 72 bytes; no hash is that of a longer password.
        if len(password) > LONGEST_PASSWORD or not bcrypt.checkpw(password, known):
            return False
        if len(self._right) >= MOST_REMEMBERED:
            self._right.clear()
        self._right.add(checksum)
        return True

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
