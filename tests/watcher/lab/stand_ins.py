# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for what Nova and Watcher ask: Keystone, Glance, Neutron, Cinder and Prometheus.

They know one image, no network, no volume and one load of hosts and servers, and let everybody in.
"""

from __future__ import annotations

import base64
import json
import uuid
from urllib.parse import parse_qs

from wsgi_serving import body_of, reply

IMAGE = "11111111-2222-3333-4444-555555555555"
REGION = "lab"
ADMINISTRATORS = ("admin", "nova", "placement")
_INTERFACES = ("public", "internal", "admin")


def made_id(name):
    """Return a UUID that depends on the name alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"lab.{name}"))


class Keystone:
    """Tokens and a catalog; a token is its own user and project in base64.

    ``catalog`` is a list of (type, name, URL).
    """

    domain = {"id": "default", "name": "Default"}

    def __init__(self, url, catalog):
        self.url, self.catalog = url, catalog

    def token(self, user, project):
        """Return what a token says."""
        roles = ["reader", "member"]
        if user in ADMINISTRATORS:
            roles += ["admin", "manager", "service"]
        return {
            "token": {
                "methods": ["password"],
                "audit_ids": ["x"],
                "issued_at": "2020-01-01T00:00:00.000000Z",
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "user": {
                    "id": made_id(f"user.{user}").replace("-", ""),
                    "name": user,
                    "domain": self.domain,
                    "password_expires_at": None,
                },
                "project": {
                    "id": made_id(f"project.{project}").replace("-", ""),
                    "name": project,
                    "domain": self.domain,
                },
                "is_domain": False,
                "roles": [{"id": made_id(f"role.{role}"), "name": role} for role in roles],
                "catalog": [self._service(*entry) for entry in self.catalog],
            }
        }

    @staticmethod
    def _service(kind, name, url):
        endpoints = [
            {
                "id": made_id(kind + interface),
                "interface": interface,
                "region": REGION,
                "region_id": REGION,
                "url": url,
            }
            for interface in _INTERFACES
        ]
        return {"id": made_id(kind), "type": kind, "name": name, "endpoints": endpoints}

    def __call__(self, environ, start_response):
        """Answer a request."""
        path = environ["PATH_INFO"].rstrip("/")
        version = {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "media-types": [],
            "links": [{"rel": "self", "href": f"{self.url}/v3/"}],
        }
        if path == "":
            versions = {"versions": {"values": [version]}}
            return reply(start_response, "300 Multiple Choices", versions)
        if path == "/v3":
            return reply(start_response, "200 OK", {"version": version})
        if path == "/v3/auth/tokens" and environ["REQUEST_METHOD"] == "POST":
            return self._new_token(body_of(environ)["auth"], start_response)
        if path == "/v3/auth/tokens":
            return self._known_token(environ.get("HTTP_X_SUBJECT_TOKEN", ""), start_response)
        if path.startswith("/v3/projects/"):
            name = path.split("/")[3]
            project = {"id": name, "name": name, "enabled": True, "domain_id": "default"}
            return reply(start_response, "200 OK", {"project": project})
        if path == "/v3/services":
            wanted = parse_qs(environ["QUERY_STRING"]).get("type", [])
            services = [
                {"id": made_id(kind), "type": kind, "name": name, "enabled": True}
                for kind, name, _ in self.catalog
                if kind in wanted or not wanted
            ]
            return reply(start_response, "200 OK", {"services": services})
        return not_found(start_response, path)

    def _new_token(self, asked, start_response):
        known = asked["identity"].get("password", {}).get("user", {})
        if str(known.get("password")).startswith("wrong"):
            return unauthorized(start_response)
        user = known.get("name", "admin")
        scope = asked.get("scope", {})
        project = scope.get("project", {}).get("name") if isinstance(scope, dict) else None
        words = [user, project or "admin"]
        token = base64.urlsafe_b64encode(json.dumps(words).encode()).decode()
        header = ("X-Subject-Token", token)
        return reply(start_response, "201 Created", self.token(*words), [header])

    def _known_token(self, token, start_response):
        try:
            user, project = json.loads(base64.urlsafe_b64decode(token))
        except ValueError:
            return not_found(start_response, "token")
        header = ("X-Subject-Token", token)
        return reply(start_response, "200 OK", self.token(user, project), [header])


def unauthorized(start_response):
    """Answer 401."""
    error = {"code": 401, "title": "Unauthorized", "message": "The password is wrong."}
    return reply(start_response, "401 Unauthorized", {"error": error})


def not_found(start_response, what):
    """Answer 404."""
    error = {"code": 404, "title": "Not Found", "message": what}
    return reply(start_response, "404 Not Found", {"error": error})


class Glance:
    """Answers for Glance: one image, and those that are made of servers; their data are dropped."""

    def __init__(self):
        self._images = {IMAGE: self._image(IMAGE, {"name": "cirros", "size": 1048576})}

    def __call__(self, environ, start_response):
        """Answer a request."""
        path = environ["PATH_INFO"].rstrip("/")
        if path in ("", "/versions"):
            link = {"rel": "self", "href": f"http://{environ['HTTP_HOST']}/v2/"}
            versions = {"versions": [{"id": "v2.15", "status": "CURRENT", "links": [link]}]}
            return reply(start_response, "300 Multiple Choices", versions)
        if path == "/v2/schemas/image":
            types = {int: "integer", bool: "boolean", list: "array", str: "string"}
            fields = {k: {"type": types[type(v)]} for k, v in self._images[IMAGE].items()}
            schema = {"name": "image", "properties": fields, "additionalProperties": {}}
            return reply(start_response, "200 OK", schema)
        if path == "/v2/images":
            return self._listed_or_made(environ, start_response)
        image = self._images.get(path.removeprefix("/v2/images/").removesuffix("/file"))
        if image is None:
            return not_found(start_response, path)
        if environ["REQUEST_METHOD"] == "DELETE":
            del self._images[image["id"]]
        return reply(start_response, "200 OK", image)

    def _listed_or_made(self, environ, start_response):
        if environ["REQUEST_METHOD"] != "POST":
            found = list(self._images.values())
            listed = {"images": found, "schema": "/v2/schemas", "first": "/v2/images"}
            return reply(start_response, "200 OK", listed)
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        image = self._image(made_id(f"image {len(self._images)} {asked.get('name')}"), asked)
        self._images[image["id"]] = image
        return reply(start_response, "201 Created", image)

    @staticmethod
    def _image(image_id, fields):
        return {
            "status": "active",
            "visibility": "public",
            "container_format": "bare",
            "disk_format": "raw",
            "virtual_size": 1048576,
            "min_disk": 0,
            "min_ram": 0,
            "protected": False,
            "tags": [],
            "owner": made_id("project.admin").replace("-", ""),
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2020-01-01T00:00:00Z",
            "checksum": "x" * 32,
            "file": "",
            "schema": "/v2/schemas/image",
            **fields,
            "id": image_id,
            "self": f"/v2/images/{image_id}",
        }


def neutron(environ, start_response):
    """Answer for Neutron: every list is empty."""
    path = environ["PATH_INFO"].rstrip("/")
    if path == "":
        link = {"rel": "self", "href": f"http://{environ['HTTP_HOST']}/v2.0/"}
        versions = {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]}
        return reply(start_response, "200 OK", versions)
    if environ["REQUEST_METHOD"] == "GET" and path.count("/") == 2:
        return reply(start_response, "200 OK", {path.rsplit("/", 1)[1].replace("-", "_"): []})
    error = {"type": "NotFound", "message": path, "detail": ""}
    return reply(start_response, "404 Not Found", {"NeutronError": error})


def cinder(environ, start_response):
    """Answer for Cinder: its version."""
    path = environ["PATH_INFO"].rstrip("/")
    if path not in ("", "/v3"):
        error = {"code": 404, "message": path}
        return reply(start_response, "404 Not Found", {"itemNotFound": error})
    version = {
        "id": "v3.0",
        "status": "CURRENT",
        "version": "3.71",
        "min_version": "3.0",
        "links": [{"rel": "self", "href": f"http://{environ['HTTP_HOST']}/v3/"}],
    }
    status = "200 OK" if path else "300 Multiple Choices"
    return reply(start_response, status, {"versions": [version]})


#: What Prometheus knows: of a query with such a word, the answer.
METRICS = {
    "node_cpu_seconds_total": 10,  # percent
    "node_memory_MemAvailable_bytes": 2 << 20,  # KiB
    "ceilometer_cpu": 20,  # percent
    "ceilometer_memory_usage": 256,  # MiB
}


class Prometheus:
    """Answers for Prometheus: each host and each server has the same load."""

    def __init__(self, hosts):
        self._targets = [{"labels": {"fqdn": host}} for host in hosts]

    def __call__(self, environ, start_response):
        """Answer a request."""
        path = environ["PATH_INFO"].removeprefix("/api/v1/")
        if path == "targets":
            found = {"activeTargets": self._targets}
        elif path == "query":
            [query] = parse_qs(environ["QUERY_STRING"])["query"]
            value = next(number for name, number in METRICS.items() if name in query)
            found = {"resultType": "vector", "result": [{"metric": {}, "value": [0, str(value)]}]}
        else:
            return not_found(start_response, path)
        return reply(start_response, "200 OK", {"status": "success", "data": found})
