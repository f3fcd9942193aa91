# SPDX-License-Identifier: Apache-2.0
"""Watcher's API for action plans, actions and services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.api.parts import Parts
from applier.api.v1 import actions, entry, plans, services


def routes(parts: Parts) -> Mapping[str, Any]:
    """Return the resource of each path."""
    return {
        "/": entry.Root(),
        "/v1": entry.Version(),
        "/v1/action_plans": plans.Plans(parts),
        "/v1/action_plans/detail": plans.Plans(parts, detail=True),
        "/v1/action_plans/{uuid}": plans.Plan(parts),
        "/v1/action_plans/{uuid}/start": plans.Start(parts),
        "/v1/actions": actions.Actions(parts),
        "/v1/actions/detail": actions.Actions(parts, detail=True),
        "/v1/actions/{uuid}": actions.Action(parts),
        "/v1/services": services.Services(parts),
        "/v1/services/detail": services.Services(parts, detail=True),
        "/v1/services/{name}": services.Service(parts),
    }
