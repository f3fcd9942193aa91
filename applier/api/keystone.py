# SPDX-License-Identifier: Apache-2.0
"""Asks Keystone about tokens, and tells apart a token that is not valid from no answer."""

from __future__ import annotations

from typing import Any

import falcon
from keystoneauth1.exceptions import (
    ClientException,
    ConnectFailure,
    DiscoveryFailure,
    RequestTimeout,
)
from keystonemiddleware.auth_token import AuthProtocol
from keystonemiddleware.auth_token._exceptions import InvalidToken, ServiceError
from webob.exc import HTTPServiceUnavailable

#: In the environment of a request whose token could not be checked.
AWAY = "actionplan.keystone_is_away"
_NO_ANSWERS = (ConnectFailure, DiscoveryFailure, RequestTimeout, ServiceError)
_RETRY_AFTER_S = 5


class _NoAnswer(Exception):
    """Keystone did not say whether a token is valid."""


class KeystoneTokens(AuthProtocol):  # type: ignore[misc]
    """The middleware of Keystone, which passes a request on if Keystone does not answer."""

    def fetch_token(self, token: str, **options: Any) -> Any:
        """Return what Keystone says of a token; raises InvalidToken."""
        try:
            return super().fetch_token(token, **options)
        except InvalidToken as invalid:
            # With delay_auth_decision, a token that cannot be checked is called invalid, too.
            if isinstance(invalid.__context__, _NO_ANSWERS):
                raise _NoAnswer from invalid
            raise
        except (ClientException, HTTPServiceUnavailable) as reason:
            raise _NoAnswer from reason

    def process_request(self, request: Any) -> Any:
        """Check the tokens of a request."""
        try:
            return super().process_request(request)
        except _NoAnswer:
            request.environ[AWAY] = True
            return None


def require_answer(request: falcon.Request) -> None:
    """Raise falcon.HTTPServiceUnavailable if Keystone did not answer about a request."""
    if AWAY in request.env:
        raise falcon.HTTPServiceUnavailable(
            title="Keystone does not answer",
            description="Keystone does not answer, so that tokens cannot be checked; ask again",
            retry_after=_RETRY_AFTER_S,
        )
