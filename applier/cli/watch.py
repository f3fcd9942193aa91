# SPDX-License-Identifier: Apache-2.0
"""``actionplan watch``: follow a running plan from any terminal."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TextIO

from applier.assembly import now
from applier.cli import foreground
from applier.cli.arguments import with_plan
from applier.cli.verb import PAUSED, Verb
from applier.console_scripts import INTERRUPTED
from applier.contracts import Report
from applier.errors import PlanConflict
from applier.operations import claim, worker_lines
from applier.operations.services import nobody_present, present
from applier.run.plan_cloud import cloud_of
from applier.store.worker_jobs import ALL_SERVED
from applier.wording import planned_and_taken
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

if TYPE_CHECKING:
    from applier.run.liveness import SilenceWatch

#: Seconds between two reads of the record.
INTERVAL_S = 1.0
_GOING = (PlanState.PENDING, *claim.RUNNING)


class Watch(Verb):
    """Follow a plan that another process runs, until it ends

    If the plan is PENDING, the command waits for its start. Ctrl-C ends only this command, not the
    plan. With -f json, it subscribes to events, and writes those of the plan. With --web, it serves
    the page of the plan, with buttons to steer it, at an address that only you are told.
    """

    EXAMPLES = (
        "watch last",
        "watch 7f3a91",
        "watch last -f json > events.jsonl",
        "watch last --web",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, the format of events, and whether to show a page instead."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument(
            "-f",
            "--format",
            choices=["json"],
            help="write a line of JSON to standard output for each event of the plan, and "
            "everything else to standard error",
        )
        parser.add_argument(
            "--web",
            action="store_true",
            help="show a page that goes on by itself, for a browser on this machine, until Ctrl-C",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Show the stored progress, or the events, until the plan has stopped."""
        if parsed_args.web:
            from applier.cli import web_page

            return web_page.show(self, self.session.store.find_plan(parsed_args.plan))
        if parsed_args.format is None:
            return self._watch(parsed_args.plan, self._followed)
        from applier.cli import event_output

        with event_output.opened(self, "-") as events:
            return self._watch(parsed_args.plan, partial(self._told, events=events))

    def _watch(self, reference: str, follow: Callable[[ActionPlan], ActionPlan]) -> int:
        plan = self.session.plan(reference)
        if plan.state is PlanState.RECOMMENDED:
            short = plan.uuid[:8]
            text = f"plan {short} is {plan.state}: nobody runs it. To run it: actionplan apply"
            raise PlanConflict(plan.uuid, plan.state, f"{text} {short}")
        if plan.state in _GOING:
            # That of a plan that has stopped is in its recap.
            self.say(f"Cloud: {cloud_of(plan)}")
        store, cloud = self.session.store, self.session.cloud_needed_by(plan)
        if plan.state is PlanState.PENDING and not present(store, cloud):
            self.say(f"{nobody_present(store)} reports on this record. To run the plan here:")
            self.say(f"actionplan apply {plan.uuid[:8]}")
        try:
            plan = follow(plan)
        except KeyboardInterrupt:
            self.say(f"Stopped watching; {claim.named(plan)} continues.")
            return INTERRUPTED
        if plan.state in _GOING:
            self.say(f"{claim.headline(self.session.store, plan) or claim.named(plan)}.")
            self.say(f"Nobody runs it any more. Continue it: actionplan resume {plan.uuid[:8]}")
            return PAUSED
        from applier.cli.reporters import recap
        from applier.operations.last_run import last_run, next_steps

        run = last_run(self.session, self.session.store, plan, self.session.max_workers)
        recap.show(plan, run.taken_s, self.app.stdout)
        if run.planned_s is not None:
            self.say(f"{planned_and_taken(run.planned_s, run.taken_s).capitalize()}.")
        for line in next_steps(plan):
            self.say(line)
        return foreground.exit_code(plan)

    def _followed(self, plan: ActionPlan) -> ActionPlan:
        """Show changes until the plan stops or its claimant has died; return the plan read last."""
        from applier.operations.last_run import first_start
        from applier.run import liveness

        if plan.state not in _GOING:
            return plan
        # The starts of a plan that is PENDING again are those of an earlier run.
        runs = plan.state in claim.RUNNING
        first = first_start(self.session.store, plan) if runs else None
        # Never set: used to sleep in a way that Ctrl-C interrupts.
        never, known = threading.Event(), replace(plan, actions=_unstarted(plan))
        silence, told = liveness.SilenceWatch(), ""
        with foreground.progress_of(self, plan, at=now(), first=first) as progress:
            progress.on_plan(plan.state, plan.status_message)
            while True:
                goes, news = plan.state in _GOING, plan.state is not known.state
                if goes and news:
                    progress.on_plan(plan.state, plan.status_message)
                progress.on_reports(list(changes(known.actions, plan.actions)))
                if not goes and news:
                    progress.on_plan(plan.state, plan.status_message)
                if not goes or self._is_lost(plan, silence):
                    return plan
                if (text := worker_lines.waits_in_vain(self.session.store, plan)) != told:
                    progress.tell(text or ALL_SERVED)
                    told = text
                never.wait(INTERVAL_S)
                known, plan = plan, self.session.store.load_plan(plan.uuid)

    def _told(self, plan: ActionPlan, *, events: TextIO) -> ActionPlan:
        """Write events until the plan stops or its claimant has died; return the plan read last."""
        from applier.cli.plan_events import PlanEvents
        from applier.notifications.lines import line
        from applier.run import liveness

        never, silence, store = threading.Event(), liveness.SilenceWatch(), self.session.store
        reader = PlanEvents(store, plan.uuid, clock=now, tell=self.note)
        while True:
            reader.subscribe()
            plan = store.refresh_plan(plan)
            is_over = plan.state not in _GOING or self._is_lost(plan, silence)
            found = reader.read(plan)
            events.writelines(f"{line(event)}\n" for event in found)
            events.flush()
            if is_over and not found:
                return plan
            # After the end of the plan, events are read without a pause until none is left.
            if not is_over and not reader.has_more:
                never.wait(INTERVAL_S)

    def _is_lost(self, plan: ActionPlan, silence: SilenceWatch) -> bool:
        """Return whether the claimant has died; False for a plan that is not running.

        Also False without a claimant: then the run has just ended, and the next read shows that.
        """
        if plan.state not in claim.RUNNING:
            return False
        claimant = self.session.store.claimant(plan.uuid)
        silence.begin_round()
        return claimant is not None and silence.is_dead(plan.uuid, claimant)


def _unstarted(plan: ActionPlan) -> tuple[Action, ...]:
    """Return the actions with ONGOING ones as PENDING, so that their start is shown."""
    return tuple(
        replace(a, state=ActionState.PENDING, attempts=a.attempts - 1)
        if a.state is ActionState.ONGOING
        else a
        for a in plan.actions
    )


def changes(old: tuple[Action, ...], new: tuple[Action, ...]) -> Iterator[Report]:
    """Yield the changes of actions between two reads of the record, a start before an end.

    Of several attempts between the reads, only the last is reported.

    >>> before = Action(uuid="a", action_type="nop")
    >>> after = replace(before, state=ActionState.SUCCEEDED, attempts=1)
    >>> [str(report.state) for report in changes((before,), (after,))]
    ['ONGOING', 'SUCCEEDED']
    """
    known: Mapping[str, Action] = {a.uuid: a for a in old}
    for action in new:
        was = known[action.uuid]
        state = was.state
        if action.attempts > was.attempts:
            if state is not ActionState.PENDING:
                yield Report(uuid=action.uuid, old=state, state=ActionState.PENDING)
            yield Report(uuid=action.uuid, old=ActionState.PENDING, state=ActionState.ONGOING)
            state = ActionState.ONGOING
        if action.state is not state:
            yield Report(
                uuid=action.uuid,
                old=state,
                state=action.state,
                outcome=action.outcome,
                message=action.status_message,
            )
