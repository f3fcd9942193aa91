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
        "/": entry.RootV1(),
        "/v1": entry.VersionV1(),
        "/v1/action_plans": plans.PlansV1(parts),
        "/v1/action_plans/detail": plans.PlansV1(parts, detail=True),
        "/v1/action_plans/{uuid}": plans.PlanV1(parts),
        "/v1/action_plans/{uuid}/start": plans.StartV1(parts),
        "/v1/actions": actions.ActionsV1(parts),
        "/v1/actions/detail": actions.ActionsV1(parts, detail=True),
        "/v1/actions/{uuid}": actions.ActionV1(parts),
        "/v1/services": services.ServicesV1(parts),
        "/v1/services/detail": services.ServicesV1(parts, detail=True),
        "/v1/services/{name}": services.ServiceV1(parts),
    }
