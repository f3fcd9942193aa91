# SPDX-License-Identifier: Apache-2.0
"""Asks Keystone about tokens, and tells apart a token that is not valid from no answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import falcon
from keystoneauth1.exceptions import (
    ClientException,
    ConnectFailure,
    DiscoveryFailure,
    RequestTimeout,
)
from keystonemiddleware.auth_token import AuthProtocol, list_opts
from keystonemiddleware.auth_token._exceptions import InvalidToken, ServiceError
from oslo_config import cfg
from webob.exc import HTTPServiceUnavailable

from applier.api.access import BEGAN

#: In the environment of a request whose token could not be checked.
AWAY = "actionplan.keystone_is_away"
_NO_ANSWERS = (ConnectFailure, DiscoveryFailure, RequestTimeout, ServiceError)
#: What comes of an answer that is not of Keystone, such as a page about maintenance.
_NO_TOKENS = (ValueError, KeyError, TypeError)
_RETRY_AFTER_S = 5
#: The default of ``[keystone_authtoken] http_connect_timeout``, in seconds, for each of four tries.
#: Without any, a Keystone that hangs holds a thread of the API for each token.
ANSWER_S = 5


class _NoAnswer(Exception):
    """Keystone did not say whether a token is valid."""


class KeystoneTokens(AuthProtocol):  # type: ignore[misc]
    """The middleware of Keystone, which passes a request on if Keystone does not answer."""

    def __init__(self, application: Callable[..., Any], conf: cfg.ConfigOpts) -> None:
        for group, options in list_opts():
            conf.register_opts(options, group)
        conf.set_default("http_connect_timeout", ANSWER_S, "keystone_authtoken")
        # The application itself rejects invalid tokens: errors of /v1 and /v2 differ in form.
        super().__init__(application, {"oslo_config_config": conf, "delay_auth_decision": True})

    def fetch_token(self, token: str, **options: Any) -> Any:
        """Return what Keystone says of a token; raises InvalidToken."""
        try:
            return super().fetch_token(token, **options)
        except InvalidToken as invalid:
            # With delay_auth_decision, a token that cannot be checked is called invalid, too.
            if isinstance(invalid.__context__, _NO_ANSWERS):
                raise _NoAnswer from invalid
            raise
        except (ClientException, HTTPServiceUnavailable, *_NO_TOKENS) as reason:
            raise _NoAnswer from reason

    def process_request(self, request: Any) -> Any:
        """Check the tokens of a request."""
        request.environ[BEGAN] = time.monotonic()
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
