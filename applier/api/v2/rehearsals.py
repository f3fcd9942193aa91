# SPDX-License-Identifier: Apache-2.0
"""Dry runs of a plan, and rehearsals: many simulated runs with injected faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import falcon

from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.api.words_of_requests import of_api
from applier.operations import dry_run, lookup, predictions, rehearsals
from applier.rehearsal import faults
from applier.run.prechecks import Precheck
from planner.errors import InvalidInput, Mistake

#: The maximum of rehearsals times actions of the plan in one request.
MOST = 400_000
_CHECKED = schemas.mapping(
    {
        "uuid": schemas.TEXT,
        "name": schemas.TEXT_OR_NONE,
        "found": {"enum": [str(found) for found in Precheck]},
        "why": schemas.TEXT_OR_NONE,
    }
)
_DRY_RUN = schemas.mapping(
    {
        "uuid": schemas.TEXT,
        "name": schemas.TEXT_OR_NONE,
        "cloud": schemas.TEXT,
        "refused": schemas.FLAG,
        "guard": schemas.TEXT_OR_NONE,
        "moved": {"type": ["array", "null"], "items": schemas.TEXT},
        "actions": {"type": "array", "items": _CHECKED},
    }
)
_TIMES: schemas.Schema = {"type": "integer", "minimum": 1, "maximum": 100_000}


class DryRunV2(Resource):
    """The prechecks and guards that a run of a plan would meet now, and the drift of the cloud."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:run",
            summary="Ask the cloud, as it is now, what is done already, what would be refused, and "
            "what is not as planned. Nothing is changed.",
            answer=_DRY_RUN,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Answer with the findings of a dry run, which changes nothing."""
        self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        shown = dry_run.as_dict(found, dry_run.dry_run(assembly, found))
        guard = shown["guard"]
        response.media = {**shown, "guard": guard and of_api(guard)}


class RehearsalV2(Resource):
    """Many simulated runs of a plan, with faults."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Rehearse a plan many times with faults such as fail:migrate=5%, "
            "slow:node:compute-3=3x or hang:NAME, and sum up how that ends.",
            query={
                "inject": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 1000},
                    "maxItems": 100,
                },
                "times": _TIMES,
                "seed": _TIMES,
                "max_workers": schemas.WHOLE,
            },
            answer={"type": "object"},
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Rehearse a plan."""
        query = self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        settings = rehearsals.Settings(
            faults=tuple(faults.read(",".join(query["inject"])) if query.get("inject") else ()),
            times=query.get("times", rehearsals.TIMES),
            seed=query.get("seed", 1),
        )
        most = max(1, MOST // max(1, len(found.actions)))
        if settings.times > most:
            text = (
                f"{settings.times} is more than {most}, the most for {len(found.actions)} actions"
            )
            raise InvalidInput([Mistake(text, place="query times")])
        made = rehearsals.rehearsed(
            assembly,
            found,
            predictions.past_durations(assembly),
            settings,
            max_workers=query.get("max_workers") or assembly.max_workers,
            on_failure=assembly.conf.watcher_applier.on_failure,
            failure_budget=assembly.guard.demanded(found).failure_budget,
        )
        made = replace(made, not_rehearsed=rehearsals.left_out(assembly, found))
        response.media = rehearsals.as_dict(made)
