# SPDX-License-Identifier: Apache-2.0
"""Verbs that start and stop plans: ``start``, ``pause``, ``resume``, ``cancel``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from applier.assembly import user
from applier.cli import claim
from applier.cli.arguments import with_plan, with_reason
from applier.cli.reporters.cloud_name import cloud_of
from applier.cli.reporters.formatting import ago, count
from applier.cli.session import now
from applier.cli.verb import Verb
from applier.contracts import Request
from applier.errors import PlanConflict
from applier.scheduling.resumption import TO_VERIFY
from applier.store import Service, Store
from planner.model import JOIN, ActionPlan
from planner.states import ENDED_PLAN, ActionState, PlanState


class Start(Verb):
    """Queue a plan for an applier service

    The plan becomes PENDING. An applier service that uses the same record runs it.
    """

    EXAMPLES = ("start last", "start 7f3a91")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan."""
        return with_plan(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Move RECOMMENDED or PAUSED to PENDING."""
        plan = self.session.plan(parsed_args.plan)
        return claim.retried(self.session.store, plan, self._start)

    def _start(self, plan: ActionPlan) -> int:
        store, short = self.session.store, plan.uuid[:8]
        if plan.state not in (PlanState.RECOMMENDED, PlanState.PAUSED):
            raise claim.wrong_state(plan)
        store.move_plan(plan.uuid, PlanState.PENDING, now=now())
        self.say(f"Cloud: {cloud_of(plan)}")
        found = present(store)
        if not found:
            self.say(f"{claim.named(plan)} is PENDING. No applier service reports on this record:")
            self.say(f"run it here with: actionplan apply {short}")
            return 0
        for line in awaited(plan, found[0]):
            self.say(line)
        return 0


def present(store: Store) -> list[Service]:
    """List the services whose process is not known to be gone, latest heartbeat first."""
    from applier.run import liveness

    return [service for service in store.services() if not liveness.is_gone(service)]


def awaited(plan: ActionPlan, last: Service) -> Iterator[str]:
    """Yield lines about a PENDING plan; ``last`` is the service with the latest heartbeat."""
    heard = ago((now() - last.heartbeat_at).total_seconds())
    yield f"{claim.named(plan)} is PENDING, and waits for an applier service."
    yield f"Heard of {heard}: {last.user} on {last.host}, process {last.pid}."
    yield f"Follow it with: actionplan watch {plan.uuid[:8]}"


class PausePlan(Verb):
    """Pause a running plan: no more actions start, running ones end

    To continue: apply or start. After resume, failed actions run again.
    """

    EXAMPLES = ("pause last", "pause 7f3a91 --reason 'network work until noon'")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        return with_reason(with_plan(super().get_parser(prog_name)))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Send a pause request to the claimant; raises PlanConflict if nobody runs the plan."""
        plan = self.session.plan(parsed_args.plan)
        pause = partial(self._pause, why=parsed_args.reason)
        return claim.retried(self.session.store, plan, pause)

    def _pause(self, plan: ActionPlan, why: str | None) -> int:
        store, short = self.session.store, plan.uuid[:8]
        if plan.state is PlanState.PAUSED:
            self.say(
                f"{claim.named(plan)} is PAUSED already. Continue it with: actionplan apply {short}"
            )
            return 0
        if plan.state is not PlanState.ONGOING:
            text = f"plan {short} is {plan.state}: only a running plan can be paused"
            if plan.state is PlanState.PENDING:
                text += f". To keep it from being run: actionplan cancel {short}"
            raise PlanConflict(plan.uuid, plan.state, text)
        request = Request(verb="pause", who=user(), why=why)
        store.add_request(plan.uuid, request, now=now())
        self.say(claim.asked(store, plan, "to pause it"))
        return 0


class Resume(Verb):
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
        from applier.run import resume

        store, plan = self.session.store, self.session.plan(parsed_args.plan)
        short = plan.uuid[:8]
        if resume.refused(plan):
            raise claim.wrong_state(plan)
        if parsed_args.dry_run:
            plan, _ = resume.resumable(store, plan.uuid, tell=self.note)
            commands = self.session.assembly.runner().found_commands(plan.uuid)
            for line in foreseen(plan, resume.to_reset(plan), commands):
                self.say(line)
            return 0
        known = {"who": user(), "why": parsed_args.reason}
        resume.resume(store, plan.uuid, clock=now, tell=self.note, **known)
        plan = store.load_plan(plan.uuid)
        for line in foreseen(plan, ()):
            self.say(line)
        found = present(store)
        if found:
            for line in awaited(plan, found[0]):
                self.say(line)
        else:
            self.say(f"{claim.named(plan)} is PENDING. Run it: actionplan apply {short}")
        return 0


def foreseen(
    plan: ActionPlan, reset: Collection[str], commands: Mapping[str, str] | None = None
) -> list[str]:
    """Return lines that count the actions done, to verify and to run.

    ``commands`` is what is known of the commands of actions to verify, by uuid.
    """
    again = set(reset)
    real = [a for a in plan.actions if a.action_type != JOIN]
    verify = [a for a in real if a.state in TO_VERIFY]
    to_do = [a for a in real if a.state is ActionState.PENDING or a.uuid in again]
    done = len(real) - len(verify) - len(to_do)
    lines = [f"{count(done, 'action')} done, {len(verify)} to verify first, {len(to_do)} to do."]
    for action in verify[:20]:
        why = action.status_message
        if action.state is ActionState.ONGOING:
            why = "it was running, and its end was not recorded"
        why = (commands or {}).get(action.uuid, why)
        lines.append(f"  to verify  {action.label}: {why or 'it is in doubt'}")
    if len(verify) > 20:
        lines.append(f"  and {len(verify) - 20} more")
    return lines


class Cancel(Verb):
    """Cancel a plan

    No more actions start. If the plan is ONGOING, the process that runs it tells its running
    actions to stop, and waits for them.
    """

    EXAMPLES = ("cancel last", "cancel 7f3a91 --reason 'wrong hosts'")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        return with_reason(with_plan(super().get_parser(prog_name)))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Cancel the plan if nobody runs it; otherwise send a request to the claimant."""
        plan = self.session.plan(parsed_args.plan)
        cancel = partial(self._cancel, why=parsed_args.reason)
        return claim.retried(self.session.store, plan, cancel)

    def _cancel(self, plan: ActionPlan, why: str | None) -> int:
        store = self.session.store
        message = f"cancelled by {user()}" + (f": {why}" if why else "")
        if plan.state in ENDED_PLAN:
            text = f"plan {plan.uuid[:8]} is {plan.state}: nothing is left to cancel"
            raise PlanConflict(plan.uuid, plan.state, text)
        claimant = store.claimant(plan.uuid)
        if plan.state in claim.RUNNING and claim.is_gone(claimant):
            self.session.assembly.runner().end_commands(plan.uuid)
            store.move_plan(
                plan.uuid, PlanState.CANCELLED, now=now(), message=message, seen=claimant
            )
            self.say(f"{claim.named(plan)} is CANCELLED: the process that ran it is gone.")
            self.say(
                "The actions that were running are in doubt: actionplan action list "
                f"{plan.uuid[:8]}"
            )
            return 0
        if plan.state is PlanState.CANCELLING:
            self.say(
                f"{claim.named(plan)} is being cancelled already; its running actions are awaited."
            )
            return 0
        if plan.state is PlanState.ONGOING:
            request = Request(verb="cancel", who=user(), why=why)
            store.add_request(plan.uuid, request, now=now())
            self.say(claim.asked(store, plan, "to cancel it"))
            return 0
        store.move_plan(plan.uuid, PlanState.CANCELLED, now=now(), message=message)
        self.say(f"{claim.named(plan)} is CANCELLED.")
        return 0
