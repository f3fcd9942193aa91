"""Verbs about kept plans: ``start``, ``list``, ``show``, ``cancel``, ``delete``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from applier.cli import claim
from applier.cli.arguments import add_format, positive, with_plan
from applier.cli.files import rendered
from applier.cli.reporters import plan_table
from applier.cli.session import now, user
from applier.cli.verb import ListVerb, Verb
from applier.contracts import Wish
from applier.errors import PlanConflict
from planner.states import ActionState, PlanState


class Start(Verb):
    """Leave a plan to an applier

    The plan becomes PENDING; an applier service that uses the same record runs it.
    """

    EXAMPLES = ("start last", "start 7f3a91")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan."""
        return with_plan(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Move RECOMMENDED or PAUSED to PENDING."""
        store = self.session.store
        plan = self.session.plan(parsed_args.plan)
        store.move_plan(plan.uuid, PlanState.PENDING, now=now())
        self.say(f"{claim.named(plan)} is PENDING. No applier service has reported on this record:")
        self.say(f"run it here with: actionplan apply {plan.uuid[:8]}")
        return 0


class List(ListVerb):
    """List the kept plans, newest first

    Removed plans are listed with --state DELETED only.
    """

    EXAMPLES = ("list", "list --state FAILED -f json", "list --limit 5")
    NOTHING = "No plans. To make one: actionplan create FILE"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a state and how many."""
        parser = super().get_parser(prog_name)
        states = [str(s) for s in PlanState]
        parser.add_argument(
            "--state", metavar="STATE", choices=states, help=f"only these: {', '.join(states)}"
        )
        parser.add_argument("--limit", type=positive, metavar="N", help="at most so many")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Give a row for each plan."""
        state = PlanState(parsed_args.state) if parsed_args.state else None
        plans = self.session.store.list_plans(state=state, limit=parsed_args.limit)
        whole = parsed_args.formatter != "table"
        columns = ("uuid", "name", "planner", "state", "actions", "ended well", "created")
        return columns, (
            (
                p.uuid if whole else p.uuid[:8],
                p.name or "",
                p.planner,
                str(p.state),
                sum(p.actions.values()),
                p.actions.get(ActionState.SUCCEEDED, 0) + p.actions.get(ActionState.SKIPPED, 0),
                f"{p.created_at:%Y-%m-%d %H:%M:%S}" if p.created_at else "",
            )
            for p in plans
        )


class Show(Verb):
    """Show a plan: wave by wave, or whole as JSON or YAML"""

    EXAMPLES = ("show last", "show host-maintenance --all", "show 7f3a91 -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan and a format."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load and write."""
        plan = self.session.plan(parsed_args.plan)
        if parsed_args.format != "table":
            self.app.stdout.write(rendered(plan, parsed_args.format))
            return 0
        run_by = claim.headline(self.session.store, plan)
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, run_by=run_by)
        return 0


class Cancel(Verb):
    """Cancel a plan

    Actions that have not started never start. What runs of an ONGOING plan is told to stop, and
    awaited, by whoever runs it.
    """

    EXAMPLES = ("cancel last", "cancel 7f3a91 --reason 'wrong hosts'")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan and a reason."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--reason", metavar="TEXT", help="why, for the record")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Cancel at once what nobody runs; ask the claimant otherwise."""
        store, plan = self.session.store, self.session.plan(parsed_args.plan)
        if plan.state is PlanState.CANCELLING:
            self.say(f"{claim.named(plan)} is being cancelled already; what runs is awaited.")
            return 0
        if plan.state is PlanState.ONGOING:
            wish = Wish(verb="cancel", who=user(), why=parsed_args.reason)
            store.add_wish(plan.uuid, wish, now=now())
            self.say(claim.asked(store, plan, "to cancel it"))
            return 0
        why = f": {parsed_args.reason}" if parsed_args.reason else ""
        message = f"cancelled by {user()}{why}"
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=now(), message=message)
        self.say(f"{claim.named(plan)} is CANCELLED.")
        return 0


class Delete(Verb):
    """Remove a plan that is not under way

    It is marked DELETED and no longer listed; its uuid still shows it.
    """

    EXAMPLES = ("delete 7f3a91",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan."""
        return with_plan(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Mark it DELETED."""
        store, plan = self.session.store, self.session.plan(parsed_args.plan)
        state, short = plan.state, plan.uuid[:8]
        if state in (*claim.RUNNING, PlanState.PENDING, PlanState.PAUSED):
            who = claim.headline(store, plan)
            text = f"plan {short} is {state}: cancel it first (actionplan cancel {short})"
            raise PlanConflict(plan.uuid, state, f"{text}. {who}" if who else text)
        store.move_plan(plan.uuid, PlanState.DELETED, now=now(), message=f"removed by {user()}")
        self.say(f"{claim.named(plan)} is DELETED.")
        return 0
