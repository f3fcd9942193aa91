# SPDX-License-Identifier: Apache-2.0
"""The links of Watcher's API, under the host that the client has asked."""

from __future__ import annotations

from urllib.parse import quote

import falcon


def links(request: falcon.Request, kind: str, name: str = "") -> list[dict[str, str]]:
    """Return the links to a resource; without a ``name``, to the list of all of its kind."""
    below = f"{kind}/{quote(name, safe='')}"
    return [
        {"rel": "self", "href": f"{request.prefix}/v1/{below}"},
        {"rel": "bookmark", "href": f"{request.prefix}/{below}"},
    ]
