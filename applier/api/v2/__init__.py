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
    plan_views,
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
        "/v2/plans": plans.PlansV2(parts),
        plan: plans.PlanV2(parts),
        f"{plan}/actions": actions.ActionsV2(parts),
        action: actions.ActionV2(parts),
        f"{action}/output": actions.OutputV2(parts),
        f"{action}/why": actions.WhyV2(parts),
        f"{plan}/graph.svg": plan_views.GraphV2(parts),
        f"{plan}/timeline.svg": plan_views.TimelinePictureV2(parts),
        f"{plan}/report.html": plan_views.ReportPageV2(parts),
        f"{plan}/diff/{{new}}": plan_views.DifferencesV2(parts),
        f"{plan}/simulate": plan_views.SimulationV2(parts),
        f"{plan}/rehearsal": rehearsals.RehearsalV2(parts),
        f"{plan}/dry-run": rehearsals.DryRunV2(parts),
        f"{plan}/requests": plan_views.RequestsV2(parts),
        f"{plan}/history": history.HistoryV2(parts),
        f"{plan}/approvals": approvals.ApprovalsV2(parts),
        f"{plan}/export": archives.ExportV2(parts),
        f"{plan}/rollback": changes.RollbackV2(parts),
        "/v2/history": history.HistoryV2(parts),
        "/v2/events": events.EventsV2(parts),
        "/v2/dead-events": subscriptions.DeadEventsV2(parts),
        "/v2/subscriptions": subscriptions.SubscriptionsV2(parts),
        "/v2/subscriptions/remove": subscriptions.RemovalV2(parts),
        "/v2/imports": archives.ImportsV2(parts),
        "/v2/durations": archives.DurationsV2(parts),
        "/v2/durations/export": archives.DurationsExportV2(parts),
        "/v2/purge": archives.PurgeV2(parts),
        "/v2/planners": product.PlannersV2(),
        "/v2/action-types": product.ActionTypesV2(parts),
        "/v2/schemas": product.SchemasV2(parts),
        "/v2/schemas/{name}": product.SchemaV2(parts),
        "/v2/services": product.ServicesV2(parts),
        "/v2/workers": workers.RegisteredWorkersV2(parts),
        "/v2/workers/{worker}/drain": workers.DrainedWorkerV2(parts),
    }
    found |= {f"{plan}/{name}": change for name, change in changes.plan_changes(parts).items()}
    found |= {f"{action}/{name}": change for name, change in changes.action_changes(parts).items()}
    return {**found, "/v2/openapi.json": openapi.DescriptionV2(found)}
