# SPDX-License-Identifier: Apache-2.0
"""The documents at / and /v1, which name versions and resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.token import AGAIN
from applier.api.v1 import versions
from applier.api.v1.watcher_links import links

#: The resources that are served.
RESOURCES = ("actions", "action_plans", "services")


class RootV1:
    """The list of API versions, which needs no authentication."""

    PUBLIC = True
    RULES: Mapping[str, str] = {}

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with the versions; redirect a browser to the list of plans."""
        if "text/html" in (request.get_header("Accept") or ""):
            raise falcon.HTTPSeeOther(f"/plans{request.env.get(AGAIN, '')}")
        version = {
            "id": "v1",
            "status": "CURRENT",
            "min_version": str(versions.OLDEST),
            "max_version": str(versions.NEWEST),
            "links": [{"rel": "self", "href": f"{request.prefix}/v1/"}],
        }
        response.media = {
            "name": "ActionPlan API",
            "description": "Action plans, actions and services, as OpenStack Watcher's API "
            "version 1 gives them.",
            "versions": [version],
            "default_version": version,
        }


class VersionV1:
    """The resources of version 1."""

    RULES: Mapping[str, str] = {"GET": "product:read"}

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with the resources."""
        document: dict[str, Any] = {
            "id": "v1",
            "media_types": [
                {
                    "base": "application/json",
                    "type": "application/vnd.openstack.watcher.v1+json",
                }
            ],
            "links": [{"rel": "self", "href": f"{request.prefix}/v1/"}],
        }
        response.media = document | {kind: links(request, kind) for kind in RESOURCES}
