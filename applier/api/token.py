# SPDX-License-Identifier: Apache-2.0
"""Authentication by a token in the URL, for the page that one user serves on this machine.

The token is in the URL, not in a cookie: browsers send cookies to all ports of a host, and with
requests of pages of other sites, too.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import falcon

from applier.api import authentication
from applier.api.caller import Caller

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
        nobody = authentication.anonymous(request, request_id)
        if not request.env.get(_RIGHT):
            raise falcon.HTTPForbidden(
                title="Wrong address",
                description="use the whole address that 'actionplan watch --web' printed",
            )
        roles = frozenset({"admin"})
        return Caller(
            user=self._user, roles=roles, address=nobody.address, request_id=nobody.request_id
        )
