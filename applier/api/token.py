# SPDX-License-Identifier: Apache-2.0
"""Lets only those in who know an address with a token: for a page of one user on this machine.

The token is in the address, not in a cookie: cookies go to all ports of a host, and browsers send
them for pages of other sites, too.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import falcon

from applier.api import authentication
from applier.api.caller import Caller

#: The parameter of the address.
PARAMETER = "token"
_RIGHT = "actionplan.token_is_right"
#: Has the query with the token.
AGAIN = "actionplan.query"


class AddressWithToken:
    """The strategy, and the application around: it takes the token out of each address."""

    def __init__(self, token: str, user: str) -> None:
        self._token, self._user = token.encode(), user

    def around(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """Return an application that looks for the token before another one is asked."""

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            given = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
            tokens = [value for name, value in given if name == PARAMETER]
            right = len(tokens) == 1 and hmac.compare_digest(tokens[0].encode(), self._token)
            rest = urlencode([(name, value) for name, value in given if name != PARAMETER])
            # Where an address leads to another, the token goes with it.
            again = f"?{urlencode({PARAMETER: tokens[0]})}" if right else ""
            own = {"QUERY_STRING": rest, _RIGHT: right, AGAIN: again}
            return application({**environ, **own}, start_response)

        return answer

    def __call__(self, request: falcon.Request, request_id: str) -> Caller:
        """Return the user of this machine, if the token is right."""
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
