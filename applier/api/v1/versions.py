# SPDX-License-Identifier: Apache-2.0
"""The versions of Watcher's API: middleware for microversions, and the documents at / and /v1."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import falcon

from applier.api.authentication import AGAIN
from applier.api.endpoints import Call, Endpoint
from applier.api.errors import is_watchers
from applier.api.v1.requests import links

HEADER = "OpenStack-API-Version"
#: The type of Watcher's service, by which the header names it.
SERVICE = "infra-optim"
#: The resources that are served.
RESOURCES = ("actions", "action_plans", "services")


class Version(NamedTuple):
    """A version of the API."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST, NEWEST = Version(1, 0), Version(1, 7)
#: From this version on, plans and actions have messages, and actions can be skipped.
SKIPPED = Version(1, 5)


class Versions:
    """Middleware that rejects unsupported microversions, and adds version headers, below /v1."""

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:  # noqa: ARG002
        """Store the version of a request; raise falcon.HTTPNotAcceptable for an unsupported one."""
        if is_watchers(request):
            request.context.version = _served(asked(request.get_header(HEADER)))

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        """Set the headers with the oldest and newest supported versions, and with the one used."""
        if not is_watchers(request):
            return
        response.append_header("Vary", HEADER)
        response.set_header("OpenStack-API-Minimum-Version", str(OLDEST))
        response.set_header("OpenStack-API-Maximum-Version", str(NEWEST))
        version = getattr(request.context, "version", None)
        if version is not None:
            response.set_header(HEADER, f"{SERVICE} {version}")


def asked(header: str | None) -> Version:
    """Return the version in a header; raises falcon.HTTPNotAcceptable for one such as ``1.2.3``.

    A header without a number for this service means the oldest version, and so does ``1``. Of
    several versions for this service, the last one counts. It may be an unsupported one.

    >>> asked("infra-optim 1.5"), asked("compute 2.90"), asked("infra-optim latest")
    (Version(major=1, minor=5), Version(major=1, minor=0), Version(major=1, minor=7))
    """
    texts = [
        words[1]
        for part in (header or "").split(",")
        if len(words := part.split()) == 2 and words[0].lower() == SERVICE
    ]
    if not texts:
        return OLDEST
    if texts[-1].lower() == "latest":
        return NEWEST
    numbers = texts[-1].split(".")
    if not all(re.fullmatch("[0-9]+", number) for number in numbers) or numbers == ["1"]:
        return OLDEST
    if len(numbers) != 2:
        raise falcon.HTTPNotAcceptable(description=f"Invalid value for {HEADER} header")
    # A number of more than 6 digits becomes 10**6, because int() refuses thousands of digits.
    major, minor = (int(number[-6:]) if len(number) < 7 else 10**6 for number in numbers)
    return Version(major, minor)


def knows_messages(request: falcon.Request) -> bool:
    """Return whether the version of a request has messages, and lets actions be skipped."""
    return bool(request.context.version >= SKIPPED)


def _served(version: Version) -> Version:
    """Return the version, if it is supported; raises falcon.HTTPNotAcceptable."""
    accepted = f"The supported version range is: [{OLDEST}, {NEWEST}]."
    if version.major != OLDEST.major:
        raise falcon.HTTPNotAcceptable(
            description=f"Mutually exclusive versions requested. Version {version} requested but "
            f"not supported by this service. {accepted}"
        )
    if not OLDEST <= version <= NEWEST:
        raise falcon.HTTPNotAcceptable(
            description=f"Version {version} was requested but the minor version is not supported "
            f"by this service. {accepted}"
        )
    return version


@Endpoint("GET /", None)
def root(call: Call) -> dict[str, Any]:
    """Answer with the versions; redirect a browser to the list of plans."""
    request = call.request
    if "text/html" in (request.get_header("Accept") or ""):
        raise falcon.HTTPSeeOther(f"/plans{request.env.get(AGAIN, '')}")
    current = {
        "id": "v1",
        "status": "CURRENT",
        "min_version": str(OLDEST),
        "max_version": str(NEWEST),
        "links": [{"rel": "self", "href": f"{request.forwarded_prefix}/v1/"}],
    }
    return {
        "name": "ActionPlan API",
        "description": "Action plans, actions and services, as OpenStack Watcher's API "
        "version 1 gives them.",
        "versions": [current],
        "default_version": current,
    }


@Endpoint("GET /v1", "product:read")
def resources(call: Call) -> dict[str, Any]:
    """Answer with the resources."""
    base, own = "application/json", "application/vnd.openstack.watcher.v1+json"
    return {
        "id": "v1",
        "media_types": [{"base": base, "type": own}],
        "links": [{"rel": "self", "href": f"{call.request.forwarded_prefix}/v1/"}],
        **{kind: links(call.request, kind) for kind in RESOURCES},
    }
