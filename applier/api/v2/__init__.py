# SPDX-License-Identifier: Apache-2.0
"""ActionPlan's own API, with all operations of the command line on a database of plans."""

from __future__ import annotations

from collections.abc import Mapping

from applier.api.parts import Parts
from applier.api.v2 import (
    actions,
    approvals,
    archives,
    changes,
    events,
    history,
    openapi,
    pictures,
    plans,
    product,
    rehearsals,
    subscriptions,
    workers,
)
from applier.api.v2.operation import Resource


def routes(parts: Parts) -> Mapping[str, Resource]:
    """Return the resource of each path."""
    plan, action = "/v2/plans/{plan}", "/v2/plans/{plan}/actions/{action}"
    found: dict[str, Resource] = {
        "/v2/plans": plans.Plans(parts),
        plan: plans.Plan(parts),
        f"{plan}/actions": actions.Actions(parts),
        action: actions.Action(parts),
        f"{action}/output": actions.Output(parts),
        f"{action}/why": actions.Why(parts),
        f"{plan}/graph.svg": pictures.Graph(parts),
        f"{plan}/timeline.svg": pictures.TimelinePicture(parts),
        f"{plan}/report.html": pictures.ReportPage(parts),
        f"{plan}/diff/{{new}}": pictures.Differences(parts),
        f"{plan}/simulate": pictures.Simulation(parts),
        f"{plan}/rehearsal": rehearsals.Rehearsal(parts),
        f"{plan}/dry-run": rehearsals.DryRun(parts),
        f"{plan}/requests": pictures.Requests(parts),
        f"{plan}/history": history.History(parts),
        f"{plan}/approvals": approvals.Approvals(parts),
        f"{plan}/export": archives.Export(parts),
        f"{plan}/rollback": changes.Rollback(parts),
        "/v2/history": history.History(parts),
        "/v2/events": events.Events(parts),
        "/v2/dead-events": subscriptions.DeadEvents(parts),
        "/v2/subscriptions": subscriptions.Subscriptions(parts),
        "/v2/subscriptions/remove": subscriptions.Removal(parts),
        "/v2/imports": archives.Imports(parts),
        "/v2/durations": archives.Durations(parts),
        "/v2/durations/export": archives.DurationsExport(parts),
        "/v2/purge": archives.Purge(parts),
        "/v2/planners": product.Planners(),
        "/v2/action-types": product.ActionTypes(parts),
        "/v2/schemas": product.Schemas(parts),
        "/v2/schemas/{name}": product.Schema(parts),
        "/v2/services": product.Services(parts),
        "/v2/workers": workers.RegisteredWorkers(parts),
        "/v2/workers/{worker}/drain": workers.DrainedWorker(parts),
    }
    found |= {f"{plan}/{name}": change for name, change in changes.plan_changes(parts).items()}
    found |= {f"{action}/{name}": change for name, change in changes.action_changes(parts).items()}
    return {**found, "/v2/openapi.json": openapi.Description(found)}
