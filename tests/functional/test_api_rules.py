# SPDX-License-Identifier: Apache-2.0
"""No path of the API is open by mistake."""

from __future__ import annotations

from api_client import configured
from command_line import CommandLine

from applier import configuration
from applier.api import monitoring, policies, v1, v2
from applier.api.parts import Parts
from applier.assembly import Assembly

#: Paths that answer everybody.
OPEN = {"/", "/healthz", "/readyz"}


def test_every_change_observes_an_idempotency_key(actionplan: CommandLine) -> None:
    assembly = Assembly(configuration.load([str(configured(actionplan).configuration)]))
    routes = v2.routes(Parts(assembly=assembly, policy=policies.Policy(assembly.conf)))
    posts = {path: r.OPERATIONS["POST"] for path, r in routes.items() if "POST" in r.OPERATIONS}
    assert len(posts) > 15
    assert [path for path, post in posts.items() if not post.idempotency_key] == []


def test_every_method_has_a_rule_of_the_policy(actionplan: CommandLine) -> None:
    conf = configuration.load([str(configured(actionplan).configuration)])
    parts = Parts(assembly=Assembly(conf), policy=policies.Policy(conf))
    routes = {**v1.routes(parts), **v2.routes(parts), **monitoring.routes(parts)}
    known = {rule.name for rule in policies.RULES}
    public = {path for path, resource in routes.items() if getattr(resource, "PUBLIC", False)}
    assert public == OPEN
    for path in routes.keys() - public:
        methods = {
            name.removeprefix("on_").partition("_")[0].upper()
            for name in dir(routes[path])
            if name.startswith("on_")
        }
        assert methods, path
        assert methods == set(routes[path].RULES), path
        assert set(routes[path].RULES.values()) <= known, path
