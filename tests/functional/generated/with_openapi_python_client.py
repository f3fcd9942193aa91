# SPDX-License-Identifier: Apache-2.0
"""A maintenance by the client that openapi-python-client makes: URL as the argument.

It is run by the interpreter of another environment, in the folder with the package ``client``.
"""

from __future__ import annotations

import sys

from client import Client
from client.api.actions import actions_list, actions_why
from client.api.events import events_list
from client.api.plans import (
    plans_approve,
    plans_cancel,
    plans_create,
    plans_delete,
    plans_get,
    plans_list,
    plans_start,
)
from client.models import ActionsListFieldsItem as Field
from client.models import ActionState as State
from client.models import Document, NeededReason, Plan, Problem, Start

ACTIONS = [{"name": f"a{i}", "action_type": "nop", "touches": ["node:a"]} for i in range(3)]
DOCUMENT = {"name": "night", "guards": {"approvals": 1}, "actions": ACTIONS}
NEVER = "2999-01-01T00:00:00+00:00"


def followed(api: Client, plan: Plan) -> Plan:
    """Wait for events of a plan until it has ended."""
    last = 0
    while True:
        shown = plans_get.sync(plan.uuid, client=api)
        assert isinstance(shown, Plan)
        if shown.state in ("SUCCEEDED", "FAILED", "CANCELLED"):
            return shown
        page = events_list.sync(client=api, plan=plan.uuid, after=last, wait_s=5)
        last = page.last


def listed(api: Client) -> list[str]:
    """Return the uuids of all plans, page by page."""
    page = plans_list.sync(client=api, limit=1, creator="anonymous")
    found = page.items
    while page.next_:
        page = plans_list.sync(client=api, limit=1, creator="anonymous", after=found[-1].uuid)
        found += page.items
    return [plan.uuid for plan in found]


def main() -> None:
    """Create, start, follow, approve, cancel, page."""
    api = Client(base_url=sys.argv[1])
    document, reason = Document.from_dict(DOCUMENT), NeededReason("looked at it")
    plan = plans_create.sync(client=api, body=document, idempotency_key="one")
    assert isinstance(plan, Plan)
    again = plans_create.sync(client=api, body=document, idempotency_key="one")
    assert again.uuid == plan.uuid
    refused = plans_start.sync(plan.uuid, client=api)
    assert isinstance(refused, Problem)
    assert "needs 1 approval" in refused.detail
    tag = plans_get.sync_detailed(plan.uuid, client=api).headers["ETag"]
    plans_approve.sync(plan.uuid, client=api, body=reason, if_match=tag)
    assert plans_start.sync(plan.uuid, client=api, if_match=tag).status == 412
    assert plans_start.sync(plan.uuid, client=api).state == "PENDING"
    assert plans_get.sync(plan.uuid, client=api).guards.approvals == 1
    ended = followed(api, plan)
    assert ended.state == "SUCCEEDED"
    assert [action.state for action in ended.actions] == ["SUCCEEDED"] * 3
    other = plans_create.sync(client=api, body=document)
    plans_approve.sync(other.uuid, client=api, body=reason)
    later = plans_start.sync(other.uuid, client=api, body=Start.from_dict({"at": NEVER}))
    assert later.state == "PENDING"
    assert actions_why.sync(other.uuid, "a2", client=api).lines
    assert plans_cancel.sync(other.uuid, client=api).state == "CANCELLED"
    assert followed(api, other).state == "CANCELLED"
    assert listed(api) == [other.uuid, plan.uuid]
    waiting = actions_list.sync(other.uuid, client=api, state=State.CANCELLED, fields=[Field.NAME])
    assert [action.name for action in waiting.items] == ["a0", "a1", "a2"]
    assert plans_delete.sync_detailed(other.uuid, client=api).status_code == 204
    print("done")


main()
