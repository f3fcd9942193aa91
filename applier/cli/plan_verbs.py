# SPDX-License-Identifier: Apache-2.0
"""Verbs about stored plans: ``list``, ``show``, ``delete``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from applier.assembly import user
from applier.cli import claim, hidden_values, plan_files
from applier.cli.arguments import add_format, positive, with_plan
from applier.cli.reporters.cloud_name import NAME
from applier.cli.reporters.formatting import count
from applier.cli.session import now
from applier.cli.verb import ListVerb, Verb
from applier.errors import PlanConflict
from applier.store import PlanSummary
from planner.states import ActionState, PlanState

#: The default number of listed plans.
_NEWEST = 25


class List(ListVerb):
    """List the stored plans, newest first

    Lists the newest 25 by default. Removed plans are listed only with --state DELETED.
    """

    EXAMPLES = ("list", "list --state FAILED -f json", "list --limit 5", "list --all")
    NOTHING = "No plans. To make one: actionplan create FILE"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a state and a number of plans."""
        parser = super().get_parser(prog_name)
        states = [str(s) for s in PlanState]
        parser.add_argument(
            "--state",
            metavar="STATE",
            type=str.upper,
            choices=states,
            help=f"only these: {', '.join(states)}",
        )
        many = parser.add_mutually_exclusive_group()
        many.add_argument(
            "--limit",
            type=positive,
            metavar="N",
            default=_NEWEST,
            help=f"at most so many (default: {_NEWEST})",
        )
        many.add_argument("--all", action="store_true", help="all of them")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each plan."""
        state = PlanState(parsed_args.state) if parsed_args.state else None
        limit = None if parsed_args.all else parsed_args.limit
        plans = self.session.store.list_plans(state=state, limit=limit)
        whole = parsed_args.formatter != "table"
        lost = set() if whole else self._lost(plans)
        for plan in plans:
            if plan.damage is not None:
                self.note(
                    f"Plan {plan.uuid[:8]} is damaged: {plan.damage}; see: actionplan db check"
                )
        if len(plans) == limit:
            self._say_how_many_more(state, limit, whole=whole)
        columns: tuple[str, ...] = (
            "uuid",
            "name",
            "planner",
            "state",
            "actions",
            "ended well",
            "created",
        )
        if whole:
            columns = (*columns, "cloud")
        else:
            self.below = [f"Cloud: {NAME}: no instance, host or volume is real", *self.below]
        return columns, (
            (
                p.uuid if whole else p.uuid[:8],
                p.name or "",
                p.planner,
                self._state(p, lost),
                sum(p.actions.values()),
                p.actions.get(ActionState.SUCCEEDED, 0) + p.actions.get(ActionState.SKIPPED, 0),
                f"{p.created_at:%Y-%m-%d %H:%M:%S}" if p.created_at else "",
                *([NAME] if whole else []),
            )
            for p in plans
        )

    @staticmethod
    def _state(plan: PlanSummary, lost: set[str]) -> str:
        if plan.damage is not None:
            return "damaged"
        return f"{plan.state}, nobody runs it" if plan.uuid in lost else str(plan.state)

    def _lost(self, plans: Sequence[PlanSummary]) -> set[str]:
        """Return the plans whose process is gone, and add a line for each below the table."""
        store = self.session.store
        running = [p.uuid for p in plans if p.state in claim.RUNNING and p.damage is None]
        lost = [uuid for uuid in running if claim.is_gone(store.claimant(uuid))]
        self.below = [f"Continue it: actionplan resume {uuid[:8]}" for uuid in lost]
        return set(lost)

    def _say_how_many_more(self, state: PlanState | None, shown: int, *, whole: bool) -> None:
        """Write how many plans are left out: below the table, or on standard error."""
        more = self.session.store.count_plans(state=state) - shown
        if more <= 0:
            return
        asked = f" --state {state}" if state else ""
        line = f"{count(more, 'older plan')} not listed. To list all: actionplan list{asked} --all"
        if whole:
            self.note(line)
        else:
            self.below = [*self.below, line]


class Show(Verb):
    """Show a plan wave by wave, or the whole plan as JSON or YAML

    '-f message' writes the three-level message of a deployment: nodes, their tasks, and the
    dependencies of each task. 'create' can read it.
    """

    EXAMPLES = (
        "show last",
        "show host-maintenance --all",
        "show 7f3a91 -f json",
        "show last -f message",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a format."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        add_format(parser, "message")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the plan."""
        plan = self.session.plan(parsed_args.plan)
        if parsed_args.format == "message":
            from planner.planners.deployment import message

            known = hidden_values.without(plan, self.session.action_types)
            self.app.stdout.write(plan_files.rendered(message.write(known), "json"))
            return 0
        if parsed_args.format != "table":
            self.app.stdout.write(plan_files.shown(self.session, plan, parsed_args.format))
            return 0
        from applier.cli.reporters import deployment_table, plan_table

        run_by = claim.under_way(self.session.store, plan, self.session.record, now())
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, run_by=run_by)
        if deployment_table.is_shown(plan):
            deployment_table.show(plan, self.app.stdout)
        return 0


class DeletePlan(Verb):
    """Remove a plan that is not running

    The plan is marked DELETED and no longer listed; 'show' with its uuid still shows it.
    """

    EXAMPLES = ("delete 7f3a91",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan."""
        return with_plan(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Mark the plan DELETED."""
        store, plan = self.session.store, self.session.plan(parsed_args.plan)
        state, short = plan.state, plan.uuid[:8]
        if state in (*claim.RUNNING, PlanState.PENDING, PlanState.PAUSED):
            who = claim.headline(store, plan)
            text = f"plan {short} is {state}: cancel it first (actionplan cancel {short})"
            raise PlanConflict(plan.uuid, state, f"{text}. {who}" if who else text)
        if state is PlanState.DELETED:
            raise claim.wrong_state(plan)
        store.move_plan(plan.uuid, PlanState.DELETED, now=now(), message=f"removed by {user()}")
        self.say(f"{claim.named(plan)} is DELETED.")
        return 0
