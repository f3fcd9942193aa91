# SPDX-License-Identifier: Apache-2.0
"""All that the command line does with a record can be done over HTTP."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from api_client import configured
from command_line import CommandLine

from applier import configuration
from applier.api import policies, v2
from applier.api.parts import Parts
from applier.assembly import Assembly

PLAN, ACTION = "/v2/plans/{plan}", "/v2/plans/{plan}/actions/{action}"
#: What does over HTTP what a verb does with a record.
ROUTES = {
    "action_abort": f"POST {ACTION}/abort",
    "action_force-complete": f"POST {ACTION}/force-complete",
    "action_list": f"GET {PLAN}/actions",
    "action_set": f"POST {ACTION}/settle",
    "action_show": f"GET {ACTION}",
    "action_skip": f"POST {ACTION}/skip",
    "action_type_list": "GET /v2/action-types",
    "action_type_show": "GET /v2/schemas/{name}",
    "approve": f"POST {PLAN}/approve",
    "cancel": f"POST {PLAN}/cancel",
    "create": "POST /v2/plans",
    "delete": f"DELETE {PLAN}",
    "diff": f"GET {PLAN}/diff/{{new}}",
    "duration_export": "GET /v2/durations/export",
    "duration_import": "POST /v2/durations",
    "duration_list": "GET /v2/durations",
    "event_list": "GET /v2/events",
    "event_subscription_list": "GET /v2/subscriptions",
    "event_subscription_remove": "POST /v2/subscriptions/remove",
    "export": f"GET {PLAN}/export",
    "graph": f"GET {PLAN}/graph.svg",
    "history": "GET /v2/history",
    "import": "POST /v2/imports",
    "list": "GET /v2/plans",
    "pause": f"POST {PLAN}/pause",
    "planner_list": "GET /v2/planners",
    "purge": "POST /v2/purge",
    "report": f"GET {PLAN}/report.html",
    "resume": f"POST {PLAN}/resume",
    "rollback": f"POST {PLAN}/rollback",
    "schema": "GET /v2/schemas/{name}",
    "service_list": "GET /v2/services",
    "set": f"POST {PLAN}/limits",
    "show": f"GET {PLAN}",
    "simulate": f"GET {PLAN}/simulate",
    "start": f"POST {PLAN}/start",
    "undelete": f"POST {PLAN}/undelete",
    "watch": "GET /v2/events",
    "why": f"GET {ACTION}/why",
    "worker_drain": "POST /v2/workers/{worker}/drain",
    "worker_list": "GET /v2/workers",
}
#: Why a verb has no route.
WITHOUT = {
    "apply": "it runs a plan in its own process; 'start' queues one for a service",
    **dict.fromkeys(
        ("drain", "undrain", "facts"), "it writes a document of what the cloud holds, not a record"
    ),
    **dict.fromkeys(
        ("example_copy", "example_list", "example_show"), "it reads files of the package"
    ),
    **dict.fromkeys(
        ("config_show", "planner_show", "simulator_reset", "simulator_show"),
        "it is about the configuration of its own machine",
    ),
    **dict.fromkeys(("job_clean", "job_list"), "it is about the processes of its own machine"),
    **dict.fromkeys(
        ("db_backup", "db_check", "db_upgrade"), "it is about the database below the record"
    ),
}


@pytest.fixture
def routes(actionplan: CommandLine) -> set[str]:
    """Return the methods and paths of ``/v2``."""
    conf = configuration.load([str(configured(actionplan).configuration)])
    parts = Parts(assembly=Assembly(conf), policy=policies.Policy(conf))
    found = v2.routes(parts)
    return {f"{method} {path}" for path in found for method in found[path].OPERATIONS}


def test_each_verb_has_a_route_or_a_reason(routes: set[str]) -> None:
    verbs = {verb.name for verb in entry_points(group="actionplan.cli")}
    assert len(verbs) > 40
    assert verbs == ROUTES.keys() | WITHOUT.keys()
    assert not ROUTES.keys() & WITHOUT.keys()
    assert set(ROUTES.values()) <= routes
