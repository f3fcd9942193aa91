# SPDX-License-Identifier: Apache-2.0
"""Completes the events of a plan that is about to be deleted.

Name and type of an action are in the rows of its plan, and not in each of its events. The events
outlive the plan, because some may not be delivered yet.
"""

from __future__ import annotations

from applier.notifications.schema import ACTION_STATE
from applier.storage import event_statements as of_events
from applier.storage import statements
from applier.storage.damaged_rows import SoundRows
from applier.storage.kept_events import EVENTS
from applier.storage.transactions import Transaction
from planner import json_text

_text = json_text.compact()


def complete_events(transaction: Transaction, plan: str) -> None:
    """Write names and types of actions into the events of a plan that is about to be deleted.

    The events of its joins, which are never delivered, are deleted. Damaged ones are left as they
    are.
    """
    asked = {"after": 0, "most": statements.ALL, "plan_uuid": plan}
    rows = SoundRows(transaction)
    found = rows.of(EVENTS, of_events.EVENTS_OF_PLAN, asked)
    if not (found or rows.damaged):
        return
    told = [
        {"of_number": event["number"], "new_data": _text(event["data"])}
        for event in found
        if event["type"] == ACTION_STATE
    ]
    if told:
        transaction.write(of_events.SET_DATA, *told)
    transaction.write(of_events.DELETE_OF_JOINS, {"plan_uuid": plan})
