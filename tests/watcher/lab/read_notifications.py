# SPDX-License-Identifier: Apache-2.0
"""Reads our notifications with Watcher's own classes; prints their types, or fails."""

from __future__ import annotations

import json

# oslo.messaging's import would choose eventlet for good.
from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from watcher import objects  # noqa: E402

objects.register_all()

from watcher.notifications import action, action_plan, exception  # noqa: E402

from applier.notifications.watcher import notification  # noqa: E402
from planner.plan.states import ActionState, PlanState  # noqa: E402

HEAD = {
    "number": 1,
    "at": "2026-01-02T03:04:05+00:00",
    "plan": "6a1f31f0-8b7e-4a53-9d3c-2a8a3f1b9d10",
    "action": "0b0b31f0-8b7e-4a53-9d3c-2a8a3f1b9d10",
}
OF_ACTION = {"name": "a", "action_type": "nop", "old": "ONGOING", "message": None}
MODULES = (action, action_plan, exception)


def read(payload):
    """Let each class convert the fields of its objects; only ``event`` may be unknown."""
    name, data = payload["watcher_object.name"], payload["watcher_object.data"]
    known = next(getattr(module, name) for module in MODULES if hasattr(module, name))
    assert payload["watcher_object.version"] == known.VERSION, name
    for key, value in data.items():
        if key == "event":
            continue
        field = known.fields[key]
        if isinstance(value, dict):
            assert field._type._obj_name == value["watcher_object.name"], (name, key)
            read(value)
        elif value is None:
            assert field.nullable, (name, key)
        else:
            field.coerce(None, key, field.from_primitive(None, key, value))


def main():
    """Read a notification of each state."""
    plans = [{"type": "plan.state", "data": {"state": str(s), "message": "m"}} for s in PlanState]
    actions = [{"type": "action.state", "data": {**OF_ACTION, "state": s}} for s in ActionState]
    types = set()
    for event in plans + actions:
        made = notification({**HEAD, **event})
        read(made.payload)
        types.add(made.event_type)
    print(json.dumps(sorted(types)))


if __name__ == "__main__":
    main()
