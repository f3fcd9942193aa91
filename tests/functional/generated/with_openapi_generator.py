# SPDX-License-Identifier: Apache-2.0
"""A maintenance by the client that openapi-generator makes: URL as the argument.

It is run by the interpreter of another environment, in the folder with the package
``openapi_client``.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from openapi_client import (
    ActionsApi,
    ApiClient,
    ApiException,
    Configuration,
    EventsApi,
    NeededReason,
    Plan,
    PlansApi,
    Start,
)

ACTIONS = [{"name": f"a{i}", "action_type": "nop", "touches": ["node:a"]} for i in range(3)]
DOCUMENT = {"name": "night", "guards": {"approvals": 1}, "actions": ACTIONS}


def followed(client: ApiClient, plan: Plan) -> Plan:
    """Wait for events of a plan until it has ended."""
    last = 0
    while True:
        shown = PlansApi(client).plans_get(plan.uuid)
        if shown.state in ("SUCCEEDED", "FAILED", "CANCELLED"):
            return shown
        last = EventsApi(client).events_list(plan=plan.uuid, after=last, wait_s=5).last


def listed(api: PlansApi) -> list[str]:
    """Return the uuids of all plans, page by page."""
    page = api.plans_list(limit=1, creator="anonymous")
    found = page.items
    while page.next:
        page = api.plans_list(limit=1, creator="anonymous", after=found[-1].uuid)
        found += page.items
    return [plan.uuid for plan in found]


def main() -> None:
    """Create, start, follow, approve, cancel, page."""
    client = ApiClient(Configuration(host=sys.argv[1]))
    api, reason = PlansApi(client), NeededReason(why="looked at it")
    plan = api.plans_create(DOCUMENT)
    refused: list[ApiException] = []
    try:
        api.plans_start(plan.uuid)
    except ApiException as error:
        refused.append(error)
    assert "needs 1 approval" in refused[0].data.detail
    api.plans_approve(plan.uuid, reason)
    assert api.plans_start(plan.uuid).state == "PENDING"
    ended = followed(client, plan)
    assert ended.state == "SUCCEEDED"
    assert [action.state for action in ended.actions] == ["SUCCEEDED"] * 3
    other = api.plans_create(DOCUMENT)
    api.plans_approve(other.uuid, reason)
    later = Start(at=datetime(2999, 1, 1, tzinfo=UTC))
    assert api.plans_start(other.uuid, start=later).state == "PENDING"
    assert ActionsApi(client).actions_why(other.uuid, "a2").lines
    assert api.plans_cancel(other.uuid).state == "CANCELLED"
    assert listed(api)[:2] == [other.uuid, plan.uuid]
    api.plans_delete(other.uuid)
    print("done")


main()
