# SPDX-License-Identifier: Apache-2.0
"""Verbs that start and stop plans: ``start``, ``pause``, ``resume``, ``cancel``."""

from __future__ import annotations

import argparse

from applier.cli.arguments import (
    add_accept_drift,
    time_or_span,
    with_now,
    with_plan,
    with_reason,
)
from applier.cli.verb import Verb
from applier.operations import claim
from applier.run.plan_cloud import cloud_of


class StartPlan(Verb):
    """Queue a plan for an applier service

    The plan becomes PENDING. An applier service that uses the same record runs it: at once, or with
    --at at that time and not before. TIME is a time in UTC unless it names a zone
    (2026-11-28T22:00, 2026-11-28T22:00+01:00), or so long from now (30m, 12h, 3d). Of a plan that
    waits, 'start' changes the time; 'cancel' cancels it, 'apply' runs it here and now. If the cloud
    is not as planned any more, it is refused: make a new plan.
    """

    EXAMPLES = ("start last", "start 7f3a91 --at 2026-11-28T22:00+01:00", "start last --in-window")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, and when it starts."""
        parser = with_plan(super().get_parser(prog_name))
        when = parser.add_mutually_exclusive_group()
        when.add_argument(
            "--at", metavar="TIME", type=time_or_span, help="start at TIME and not before"
        )
        when.add_argument(
            "--in-window",
            action="store_true",
            help="start with the first window in which the plan is expected to end; if none is "
            "long enough, with the next one",
        )
        add_accept_drift(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Make the plan PENDING, or change when it starts."""
        from applier.operations import plans, services, start_times

        session, operator = self.session, self.operator
        plan, store = session.plan(parsed_args.plan), session.store
        at, in_window = parsed_args.at, parsed_args.in_window
        at = start_times.wanted(session.assembly, operator, plan, at, in_window=in_window)
        accepted = parsed_args.accept_drift
        plans.start(session.assembly, operator, plan, accept_drift=accepted, at=at)
        self.say(f"Cloud: {cloud_of(plan)}")
        found = services.present(store, session.cloud_needed_by(plan))
        if found:
            for line in services.pending_lines(plan, found[0], is_due=at is None):
                self.say(line)
            return 0
        nobody = services.nobody_present(store)
        if at is not None:
            self.say(f"{nobody} reports on this record: one has to run then.")
            return 0
        self.say(f"{claim.named(plan)} is PENDING. {nobody} reports on this record:")
        self.say(f"run it here with: actionplan apply {plan.uuid[:8]}")
        return 0


class PausePlan(Verb):
    """Pause a running plan: no more actions start, running ones end

    Nodes of a rollout that have begun finish first; --now leaves them half done. To continue: apply
    or start. After resume, failed actions run again.
    """

    EXAMPLES = ("pause last", "pause 7f3a91 --reason 'network work until noon'", "pause last --now")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        return with_now(with_reason(with_plan(super().get_parser(prog_name))))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Send a pause request to the claimant; raises PlanConflict if nobody runs the plan."""
        from applier.operations import plans

        plan = self.session.plan(parsed_args.plan)
        why, at_once = parsed_args.reason, parsed_args.now
        plans.pause(self.session.store, self.operator, plan, why, at_once=at_once)
        return 0


class ResumePlan(Verb):
    """Resume a plan that was paused, failed, or whose applier died

    The plan becomes PENDING. Successful actions are not run again. Interrupted actions, and those
    in doubt, are verified first. All others run. It is refused while a living process runs the
    plan.
    """

    EXAMPLES = ("resume last --dry-run", "resume 7f3a91 --reason 'db-1 has room again'")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
        return with_reason(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Show what will be verified and run; without ``--dry-run``, make the plan PENDING."""
        from applier.operations import resuming

        assembly, plan = self.session.assembly, self.session.plan(parsed_args.plan)
        if parsed_args.dry_run:
            resuming.foresee(assembly, self.operator, plan)
        else:
            resuming.resume(assembly, self.operator, plan, parsed_args.reason)
        self.say(f"Cloud: {cloud_of(plan)}")
        return 0


class CancelPlan(Verb):
    """Cancel a plan

    No more actions start. If the plan is ONGOING, the process that runs it tells its running
    actions to stop, and waits for them. Nodes of a rollout that have begun finish first; --now
    leaves them half done.
    """

    EXAMPLES = ("cancel last", "cancel 7f3a91 --reason 'wrong hosts'", "cancel last --now")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        return with_now(with_reason(with_plan(super().get_parser(prog_name))))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Cancel the plan if nobody runs it; otherwise send a request to the claimant."""
        from applier.operations import plans

        plan = self.session.plan(parsed_args.plan)
        why, at_once = parsed_args.reason, parsed_args.now
        plans.cancel(self.session.assembly, self.operator, plan, why, at_once=at_once)
        return 0
