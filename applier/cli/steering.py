# SPDX-License-Identifier: Apache-2.0
"""Verbs that change plans and their actions: ``start``, ``stop``, ``action skip`` and others."""

from __future__ import annotations

import argparse
from abc import abstractmethod
from typing import ClassVar

from applier.cli import arguments
from applier.cli.arguments import PLAN, REASON, REASON_NEEDED, argument, one_of
from applier.cli.exit_codes import REFUSED
from applier.cli.verb import Verb
from applier.operations import actions, approving, plans, services, who_runs
from applier.operations.lookup import find_action
from applier.run.plan_cloud import cloud_of
from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ENDED_PLAN, ActionState, PlanState
from planner.schemas.ranges import whole_number

#: Key of the number of workers in the limits of a request.
_WORKERS = "max_workers"


class PlanVerb(Verb):
    """A verb that changes one plan."""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        return self.change(self.session.plan(parsed_args.plan), parsed_args)

    @abstractmethod
    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        """Change a plan, and return the exit code; raises PlanConflict."""


class SetLimits(PlanVerb):
    """Change the limits of a running plan

    They apply to actions that start from now on; running actions continue. A limit for all nodes
    applies to each node separately.
    """

    EXAMPLES = (
        "set last --limit type:migrate=1 --max-workers 2",
        "set 7f3a91 --limit 'node:*=1' --reason 'the network is slow'",
    )
    ARGUMENTS = (
        PLAN,
        argument(
            "--limit TOKEN=N",
            "how many at once may hold a token (type:migrate, node:compute-1, 'node:*')",
            action="append",
            default=[],
        ),
        argument("--max-workers N", "how many actions may run at once", type=arguments.positive),
        REASON,
    )

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        limits = parse_limits(plan, args.limit)
        if args.max_workers:
            limits[_WORKERS] = args.max_workers
        if not limits:
            text = "one of them is needed, such as --limit type:migrate=1, or --max-workers 2"
            raise InvalidInput([Mistake(text, place="--limit, --max-workers")])
        plans.set_limits(self.session, self.operator, plan, limits, args.reason)
        return 0


def parse_limits(plan: ActionPlan, texts: list[str]) -> dict[str, int]:
    """Parse limits; raises InvalidInput for wrong syntax, and for tokens that no action holds."""
    tokens = {token for action in plan.actions for token in action.tokens}
    known = tokens | {f"{token.partition(':')[0]}:*" for token in tokens} | plan.places.keys()
    limits: dict[str, int] = {}
    wrong = []
    for text in texts:
        token, _, value = text.rpartition("=")
        number = whole_number(value)
        if not token or number is None:
            text_of = "TOKEN=N is expected, N from 1 up, such as type:migrate=1"
            wrong.append(Mistake(text_of, place=f"--limit {text}"))
        elif token not in known:
            kinds = [t for t in known if t.endswith(":*") or t.startswith(("type:", "serial:"))]
            text_of = f"no action of the plan holds {token!r}; {accepted(token, kinds)}"
            wrong.append(Mistake(text_of, place=f"--limit {text}"))
        else:
            limits[token] = number
    if wrong:
        raise InvalidInput(wrong)
    return limits


class ActionVerb(PlanVerb):
    """A verb that changes one action."""

    ARGUMENTS: ClassVar[tuple[arguments.Add, ...]] = (PLAN, arguments.ACTION, REASON_NEEDED)

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        self.change_action(plan, find_action(plan, args.action), args)
        return 0

    @abstractmethod
    def change_action(self, plan: ActionPlan, action: Action, args: argparse.Namespace) -> None:
        """Change an action of a plan; raises PlanConflict."""


class StartPlan(PlanVerb):
    """Queue a plan for an applier service

    The plan becomes PENDING. An applier service that uses the same record runs it: at once, or with
    --at at that time and not before. TIME is a time in UTC unless it names a zone
    (2026-11-28T22:00, 2026-11-28T22:00+01:00), or so long from now (30m, 12h, 3d). Of a plan that
    waits, 'start' changes the time, 'stop' cancels it, 'apply' runs it here and now. If the cloud
    is not as planned any more, it is refused: make a new plan.
    """

    EXAMPLES = ("start last", "start 7f3a91 --at 2026-11-28T22:00+01:00", "start last --in-window")
    ARGUMENTS = (
        PLAN,
        one_of(
            argument("--at TIME", "start at TIME and not before", type=arguments.time_or_span),
            argument(
                "--in-window",
                "start with the first window in which the plan is expected to end; if none is "
                "long enough, with the next one",
            ),
        ),
        arguments.ACCEPT_DRIFT,
        REASON,
    )

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        session = self.session
        at = plans.start(
            session,
            self.operator,
            plan,
            at=args.at,
            in_window=args.in_window,
            accept_drift=args.accept_drift,
            why=args.reason,
        )
        self.say(f"Cloud: {cloud_of(plan)}")
        found = services.present(session, session.cloud_needed_by(plan))
        if found:
            for line in services.pending_lines(plan, found[0], is_due=at is None):
                self.say(line)
            return 0
        nobody = services.nobody_present(session)
        if at is not None:
            self.say(f"{nobody} reports on this record: one has to run then.")
            return 0
        self.say(f"{who_runs.named(plan)} is PENDING. {nobody} reports on this record:")
        self.say(f"run it here with: actionplan apply {plan.uuid[:8]}")
        return 0


class StopPlan(PlanVerb):
    """Stop a plan: pause it, cancel it, or abort one of its actions

    --pause: no more actions start, and running ones end. --cancel: running actions are told to stop
    as well, and are waited for. Nodes of a rollout that have begun finish first; --now leaves them
    half done. --abort tells one running action to stop; the plan continues without it and without
    those that need it. Its action type decides whether it stops, and how soon. With none of these,
    the program asks. To continue: apply or start.
    """

    EXAMPLES = (
        "stop last",
        "stop last --pause --reason 'network work until noon'",
        "stop 7f3a91 --cancel --now",
        "stop last --abort db-1 --reason 'it hangs'",
    )
    ARGUMENTS = (
        PLAN,
        one_of(
            argument(
                "--pause",
                "let running actions end",
                dest="how",
                action="store_const",
                const="pause",
            ),
            argument("--cancel", "stop them", dest="how", action="store_const", const="cancel"),
            argument("--abort ACTION", f"stop only this one: {arguments.ACTION_HELP}"),
        ),
        argument(
            "--now", "also stop nodes of a rollout that have begun; says which are left half done"
        ),
        REASON,
    )

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        session, why, at_once = self.session, args.reason, args.now
        if args.abort is not None:
            if at_once:
                raise InvalidInput([Mistake("it goes with --pause or --cancel", place="--now")])
            action = find_action(plan, args.abort)
            actions.abort(session, self.operator, plan, action, why)
            return 0
        how = args.how or self._asked(plan)
        if how is None:
            self.say("Nothing was stopped.")
            return REFUSED
        if how == "pause":
            plans.pause(session, self.operator, plan, why, at_once=at_once)
        else:
            plans.cancel(session, self.operator, plan, why, at_once=at_once)
        return 0

    def _asked(self, plan: ActionPlan) -> str | None:
        """Ask whether to pause or to cancel; None for any other answer.

        There is no question about a plan that nothing can be asked about: its cancel is refused.
        """
        if plan.state in ENDED_PLAN:
            return "cancel"
        name = f"{who_runs.named(plan)} is {plan.state}"
        if plan.state is not PlanState.ONGOING:
            return "cancel" if self.agrees(f"{name}. Cancel it?") else None
        question = f"{name}. Pause it (p), cancel it (c), or leave it?"
        answer = self.answer(f"{question} [p/c/N]")
        return {"p": "pause", "c": "cancel"}.get(answer[:1])


class ResumePlan(PlanVerb):
    """Resume a plan that was paused, failed, or whose applier died

    The plan becomes PENDING. Successful actions are not run again. Interrupted actions, and those
    in doubt, are verified first. All others run. It is refused while a living process runs the
    plan.
    """

    EXAMPLES = ("resume last --dry-run", "resume 7f3a91 --reason 'db-1 has room again'")
    ARGUMENTS = (
        PLAN,
        argument("--dry-run", "only show what would be done"),
        REASON,
    )

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        if args.dry_run:
            plans.foresee(self.session, self.operator, plan)
        else:
            plans.resume(self.session, self.operator, plan, args.reason)
        self.say(f"Cloud: {cloud_of(plan)}")
        return 0


class Approve(PlanVerb):
    """Approve a plan, for others to run it

    What must be approved is configured (approvals, approvals_for), or demanded by the part
    'guards' of a document. An approval is of the plan as it is: it is void when anything of the
    plan differs. 'show' tells who approved a plan, 'history' as well.
    """

    EXAMPLES = ("approve last --reason 'looked at with the network team'",)
    ARGUMENTS = (PLAN, REASON_NEEDED)

    def change(self, plan: ActionPlan, args: argparse.Namespace) -> int:
        approving.approve(self.session, self.operator, plan, args.reason)
        return 0


_SETTLED = {"succeeded": ActionState.SUCCEEDED, "failed": ActionState.FAILED}


class ActionSkip(ActionVerb):
    """Skip an action that has not started

    It counts as done for the actions that need it. Actions that depend on it are shown first.
    """

    EXAMPLES = ("action skip last db-1 --reason 'moved by hand'",)

    def change_action(self, plan: ActionPlan, action: Action, args: argparse.Namespace) -> None:
        actions.skip(self.session, self.operator, plan, action, args.reason)


class ActionForceComplete(ActionVerb):
    """Let the cloud end a live migration that does not converge

    Nova pauses the instance until it has moved, or switches to post-copy where the host permits
    that. The action then ends as any other does. Not every cloud can do it.
    """

    EXAMPLES = ("action force-complete last move-db-1",)

    ARGUMENTS = (PLAN, arguments.ACTION)

    def change_action(self, plan: ActionPlan, action: Action, args: argparse.Namespace) -> None:  # noqa: ARG002
        actions.force_complete(self.session, self.operator, plan, action)


class ActionSet(ActionVerb):
    """Set the state of an action in doubt, or of a failed one finished by hand

    Possible only while nobody runs the plan. To continue the plan: actionplan apply PLAN.
    """

    EXAMPLES = (
        "action set last db-1 --state succeeded --reason 'looked: it is on compute-4'",
        "action set last db-1 --state failed --reason 'looked: it never moved'",
    )
    ARGUMENTS = (
        *ActionVerb.ARGUMENTS,
        argument("--state", "what it is", choices=sorted(_SETTLED), required=True),
    )

    def change_action(self, plan: ActionPlan, action: Action, args: argparse.Namespace) -> None:
        new = _SETTLED[args.state]
        actions.settle(self.session, self.operator, plan, action, new, args.reason)
