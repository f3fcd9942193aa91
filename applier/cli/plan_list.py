# SPDX-License-Identifier: Apache-2.0
"""``actionplan list``: the stored plans, the newest first, by state, planner, creator and time."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from applier.cli.arguments import argument, one_of, positive, state_of, time_or_age
from applier.cli.verb import Columns, ListVerb, Rows, rows
from applier.operations import who_runs
from applier.run.plan_cloud import SIMULATED, name_of, shown_name
from applier.store import TIMES, PlanFilters, PlanSummary, given
from applier.wording import count
from planner.plan.states import ActionState, PlanState

#: The default number of listed plans.
_NEWEST = 25
_WELL = (ActionState.SUCCEEDED, ActionState.SKIPPED)
#: The maximum number of further plans that are counted.
_COUNTED = 1000


class List(ListVerb):
    """List the stored plans, newest first

    Lists the newest 25 by default. Removed plans are listed only with --state DELETED. Filters may
    be combined. TIME is a date or a time in UTC (2026-03-01, 2026-03-01T22:00), or so long ago
    (30m, 12h, 90d); with --since or --until, the plans made last come first.
    """

    EXAMPLES = (
        "list",
        "list --state FAILED -f json",
        "list --creator ada --since 7d",
        "list --planner weight --until 2026-03-01 --all",
    )
    NOTHING = "No plans. To make one: actionplan create FILE"
    ARGUMENTS = (
        state_of(PlanState),
        argument("--planner NAME", "only those of this planner"),
        argument("--creator USER", "only those that this user made"),
        argument("--since TIME", "only those made at TIME or later", type=time_or_age),
        argument("--until TIME", "only those made before TIME", type=time_or_age),
        one_of(
            argument(
                "--limit N", f"at most so many (default: {_NEWEST})", type=positive, default=_NEWEST
            ),
            argument("--all", "all of them"),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        limit = None if parsed_args.all else parsed_args.limit
        filters = _filters(parsed_args)
        plans = self.session.store.list_plans(limit=limit, **filters)
        whole = parsed_args.formatter != "table"
        lost = set() if whole else self._lost(plans)
        for plan in plans:
            if plan.damage is not None:
                self.note(
                    f"Plan {plan.uuid[:8]} is damaged: {plan.damage}; see: actionplan db check"
                )
        if len(plans) == limit:
            self._say_how_many_more(filters, limit, whole=whole)
        columns: Columns = {
            "uuid": lambda p: p.uuid if whole else p.uuid[:8],
            "name": lambda p: p.name or "",
            "planner": lambda p: p.planner,
            "state": lambda p: self._state(p, lost),
            "actions": lambda p: sum(p.actions.values()),
            "ended well": lambda p: sum(p.actions.get(state, 0) for state in _WELL),
            "created": lambda p: f"{p.created_at:%Y-%m-%d %H:%M:%S}" if p.created_at else "",
            "creator": lambda p: p.creator or "",
        }
        if not whole:
            self.below = [*self.below, *(_starting(p) for p in plans if p.start_at)]
        of_others = any(name_of(p) != SIMULATED for p in plans)
        if whole:
            columns |= {"cloud": name_of, "starts": _starts}
        elif of_others:
            columns["cloud"] = shown_name
        else:
            self.below = [f"Cloud: {SIMULATED}: no plan touches a real cloud", *self.below]
        return rows(columns, plans)

    def nothing(self, parsed_args: argparse.Namespace) -> str:
        if given(_filters(parsed_args)):
            return "No such plan. To list all: actionplan list --all"
        return self.NOTHING

    @staticmethod
    def _state(plan: PlanSummary, lost: set[str]) -> str:
        if plan.damage is not None:
            return "damaged"
        return f"{plan.state}, nobody runs it" if plan.uuid in lost else str(plan.state)

    def _lost(self, plans: Sequence[PlanSummary]) -> set[str]:
        """Return the uuids of plans whose process is gone; put a line for each below the table."""
        store = self.session.store
        running = [p.uuid for p in plans if p.state in who_runs.RUNNING and p.damage is None]
        lost = [uuid for uuid in running if who_runs.is_gone(store.claimant(uuid))]
        self.below = [f"Continue it: actionplan apply {uuid[:8]}" for uuid in lost]
        return set(lost)

    def _say_how_many_more(self, filters: PlanFilters, shown: int, *, whole: bool) -> None:
        """Write how many plans are not listed: below the table; if ``whole``, on standard error."""
        most = shown + _COUNTED + 1
        more = self.session.store.count_plans(most=most, **filters) - shown
        if more <= 0:
            return
        told = count(more, "older plan") if more <= _COUNTED else f"Over {_COUNTED} older plans"
        line = f"{told} not listed. To list all: {self._command(filters)} --all"
        if whole:
            self.note(line)
        else:
            self.below = [*self.below, line]

    @staticmethod
    def _command(filters: PlanFilters) -> str:
        """Return the command line that lists plans by these filters."""
        words = ["actionplan", "list"]
        for name, value in given(filters).items():
            words += [f"--{name}", value.isoformat() if name in TIMES else str(value)]
        return shlex.join(words)


def _filters(parsed_args: argparse.Namespace) -> PlanFilters:
    return PlanFilters(
        state=PlanState(parsed_args.state) if parsed_args.state else None,
        planner=parsed_args.planner,
        creator=parsed_args.creator,
        since=parsed_args.since,
        until=parsed_args.until,
    )


def _starting(plan: PlanSummary) -> str:
    return f"{plan.uuid[:8]} starts {plan.start_at:%Y-%m-%d %H:%M} UTC"


def _starts(plan: PlanSummary) -> str:
    return f"{plan.start_at:%Y-%m-%d %H:%M:%S}" if plan.start_at else ""
