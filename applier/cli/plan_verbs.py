# SPDX-License-Identifier: Apache-2.0
"""Verbs about stored plans: ``list``, ``show``, ``delete``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from applier.assembly import now
from applier.cli import host_state, plan_files
from applier.cli.arguments import add_format, positive, with_plan
from applier.cli.reporters.cloud_name import shown_name
from applier.cli.verb import REFUSED, ListVerb, Verb
from applier.contracts import Claimant
from applier.errors import DamagedRecord, PlanConflict
from applier.operations import claim, hidden_values
from applier.plan_cloud import SIMULATED, name_of
from applier.store import PlanSummary
from applier.wording import count
from planner.errors import InvalidInput, Mistake, shown
from planner.model import ActionPlan
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
        of_others = any(name_of(p) != SIMULATED for p in plans)
        if whole or of_others:
            columns = (*columns, "cloud")
        else:
            self.below = [f"Cloud: {SIMULATED}: no plan touches a real cloud", *self.below]
        return columns, (
            (
                p.uuid if whole else p.uuid[:8],
                p.name or "",
                p.planner,
                self._state(p, lost),
                sum(p.actions.values()),
                p.actions.get(ActionState.SUCCEEDED, 0) + p.actions.get(ActionState.SKIPPED, 0),
                f"{p.created_at:%Y-%m-%d %H:%M:%S}" if p.created_at else "",
                *([name_of(p)] if whole else [shown_name(p)] if of_others else []),
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
    dependencies of each task. 'create' can read it. '--node HOST' looks at the cloud, and says what
    left the host, what remains on it and why, and whether it is safe to power off.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "show last",
        "show host-maintenance --all",
        "show 7f3a91 -f json",
        "show last -f message",
        "show last --node compute-1",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a format."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        parser.add_argument("--node", metavar="HOST", help="show one host of the cloud instead")
        add_format(parser, "message")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the plan."""
        plan = self.session.plan(parsed_args.plan)
        if parsed_args.node:
            return self._show_host(plan, parsed_args.node, parsed_args.format)
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

    def _show_host(self, plan: ActionPlan, host: str, form: str) -> int:
        """Write what became of a host; the cloud is asked now."""
        if form == "message":
            raise InvalidInput([Mistake("a host has no message", place="--node")])
        self.session.require_own_cloud(plan)
        state = host_state.of(plan, host, self.session.assembly.facts())
        if form == "table":
            for line in host_state.lines(state):
                self.say(line)
        else:
            self.app.stdout.write(plan_files.rendered(state, form))
        return 0


class DeletePlan(Verb):
    """Remove a plan that is not running

    The plan is marked DELETED and no longer listed; 'show' with its uuid still shows it. A damaged
    plan, which nothing can show, is removed from the record for good, after a question.
    """

    EXAMPLES = ("delete 7f3a91", "delete 7f3a91 --yes")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, and whether to ask."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Mark the plan DELETED, or remove it if it is damaged."""
        from applier.operations import plans

        store = self.session.store
        uuid = store.find_plan(parsed_args.plan)
        try:
            plan = store.load_plan(uuid)
        except DamagedRecord as damaged:
            return self._remove(uuid, damaged, asks=not parsed_args.yes)
        plans.delete(store, self.operator, plan)
        return 0

    def _remove(self, uuid: str, damaged: DamagedRecord, *, asks: bool) -> int:
        """Remove a damaged plan, of which only the uuid may be known, unless somebody runs it."""
        from applier.run.liveness import has_died

        store = self.session.store
        for mistake in shown(damaged.mistakes):
            self.say(mistake)
        claimant = self._claimant(uuid)
        if claimant is not None and not has_died(store, uuid, claimant, tell=self.note):
            raise PlanConflict(uuid, "running", f"plan {uuid[:8]}: {claim.run_by(claimant)}")
        text = "Remove it for good? Actions of it that run go on, and nobody follows them."
        if asks and not self.agrees(text):
            self.say("Not removed.")
            return REFUSED
        store.remove_damaged_plan(uuid, history=self.entry("remove", "it was damaged"))
        self.say(f"Plan {uuid[:8]} is removed from the record.")
        return 0

    def _claimant(self, uuid: str) -> Claimant | None:
        try:
            return self.session.store.claimant(uuid)
        except DamagedRecord:
            return None
