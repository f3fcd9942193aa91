# SPDX-License-Identifier: Apache-2.0
"""``actionplan watch``: follow a running plan from any terminal, as events, or on a page."""

from __future__ import annotations

import argparse
import logging
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from applier.assembly import now
from applier.cli import foreground
from applier.cli.arguments import PLAN, argument
from applier.cli.exit_codes import PAUSED
from applier.cli.verb import Verb
from applier.console_scripts import INTERRUPTED
from applier.contracts import Report
from applier.errors import ConfigurationError, PlanConflict
from applier.extras import MissingExtra
from applier.notifications import schema
from applier.operations import services, who_runs
from applier.run import liveness
from applier.run.plan_cloud import cloud_of
from applier.run.this_process import user
from applier.store.entries import READERS
from applier.store.worker_jobs import ALL_SERVED
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

#: The length of the subscription. It is prolonged when less than half of that is left.
LASTS = timedelta(minutes=5)
#: How many events are read at once.
PAGE = 200


class PlanEvents:
    """Reads the events of a plan, from the oldest that is kept, in the order of their numbers.

    Repeat three calls: :meth:`subscribe`, load the plan, :meth:`read`. If the recorded events do
    not lead to the state of the plan, because some were deleted or not recorded before the
    subscription, an additional event with that state is returned. It has the number of the last
    event before it, or 0 if there is none.
    """

    def __init__(
        self,
        store: SqlStore,
        plan: str,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._store, self._plan, self._clock = store, plan, clock
        self._until: datetime | None = None
        self._after = 0
        #: Whether the record had more events than the last read returned.
        self.has_more = False
        #: The state of the plan in the last event that was returned.
        self._told: str | None = None

    def subscribe(self) -> None:
        """Subscribe as a reader; prolong that when half of it has passed. Raises StoreError."""
        now = self._clock()
        if self._until is None or self._until < now + LASTS / 2:
            self._until = now + LASTS
            self._store.subscribe(READERS, now=now, until=self._until)

    def read(self, plan: ActionPlan) -> Sequence[schema.Event]:
        """Return the next events, none if there are no more.

        ``plan`` must have been loaded after :meth:`subscribe`. So the event of its state, if it was
        recorded, is in the record before this call.
        """
        page = self._store.events(self._after, limit=PAGE, plan=self._plan)
        self._after, self.has_more = page.last, page.last < page.newest
        for event in page.events:
            if event["type"] == schema.PLAN_STATE:
                self._told = event["data"]["state"]
        if page.events or self._told == plan.state:
            return page.events
        self._told = plan.state
        at, message = self._clock(), plan.status_message
        return [schema.of_plan(plan.uuid, plan.state, message, number=page.last, at=at)]


#: The address of the server, which only programs on this machine can reach.
HOST = "127.0.0.1"


def show_page(verb: Verb, uuid: str) -> int:
    """Print the address of the page, and serve it until Ctrl-C or SIGTERM; return 0.

    The address has a random token. Raises ConfigurationError, for example if actionplan[api] is not
    installed.
    """
    try:
        from applier.api import routing
        from applier.api.authentication import PARAMETER, AddressWithToken
        from applier.api.server import Server
    except ImportError:
        raise ConfigurationError(str(MissingExtra("watch --web", "api"))) from None
    logging.getLogger("cheroot").setLevel(logging.ERROR)
    assembly = verb.session
    token = secrets.token_urlsafe(24)
    strategy = AddressWithToken(token, user())
    application = strategy.around(routing.make(assembly, strategy))
    server = Server(assembly.conf, application, (HOST, 0))
    server.open()
    verb.say(f"Open {server.url}/plans/{uuid}?{PARAMETER}={token}")
    verb.say("Whoever has this address may do what you may. Ctrl-C ends the page, not the plan.")
    verb.app.stdout.flush()

    def end(_number: int, _frame: Any) -> None:
        # In a thread of its own: ``end`` waits for the server, and a signal handler must not block.
        threading.Thread(target=server.end, name="end").start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


#: Seconds between two reads of the record.
INTERVAL_S = 1.0
_GOING = (PlanState.PENDING, *who_runs.RUNNING)


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
    ARGUMENTS = (
        PLAN,
        argument(
            "-f --format",
            "write a line of JSON to standard output for each event of the plan, and "
            "everything else to standard error",
            choices=["json"],
        ),
        argument(
            "--web",
            "show a page that goes on by itself, for a browser on this machine, until Ctrl-C",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.web:
            return show_page(self, self.session.store.find_plan(parsed_args.plan))
        if parsed_args.format is None:
            return self._watch(parsed_args.plan, self._followed)
        with foreground.opened(self, "-") as events:
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
        cloud = self.session.cloud_needed_by(plan)
        if plan.state is PlanState.PENDING and not services.present(self.session, cloud):
            nobody = services.nobody_present(self.session)
            self.say(f"{nobody} reports on this record. To run the plan here:")
            self.say(f"actionplan apply {plan.uuid[:8]}")
        try:
            plan = follow(plan)
        except KeyboardInterrupt:
            self.say(f"Stopped watching; {who_runs.named(plan)} continues.")
            return INTERRUPTED
        if plan.state in _GOING:
            self.say(f"{who_runs.headline(self.session.store, plan) or who_runs.named(plan)}.")
            self.say(f"Nobody runs it any more. Continue it: actionplan apply {plan.uuid[:8]}")
            return PAUSED
        from applier.operations import last_run

        return foreground.recap(self, plan, last_run.planned_s(self.session, plan))

    def _followed(self, plan: ActionPlan) -> ActionPlan:
        """Show changes until the plan stops or its claimant has died; return the plan read last."""
        from applier.operations import last_run

        if plan.state not in _GOING:
            return plan
        # The starts of a plan that is PENDING again are those of an earlier run.
        runs = plan.state in who_runs.RUNNING
        first = last_run.began(self.session.store, plan) if runs else None
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
                if (text := services.waits_in_vain(self.session, plan)) != told:
                    progress.tell(text or ALL_SERVED)
                    told = text
                never.wait(INTERVAL_S)
                known, plan = plan, self.session.store.load_plan(plan.uuid)

    def _told(self, plan: ActionPlan, *, events: TextIO) -> ActionPlan:
        """Write events until the plan stops or its claimant has died; return the plan read last."""
        from applier.notifications.schema import line

        never, silence, store = threading.Event(), liveness.SilenceWatch(), self.session.store
        reader = PlanEvents(store, plan.uuid, clock=now)
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

    def _is_lost(self, plan: ActionPlan, silence: liveness.SilenceWatch) -> bool:
        """Return whether the claimant has died; False for a plan that is not running.

        Also False without a claimant: then the run has just ended, and the next read shows that.
        """
        if plan.state not in who_runs.RUNNING:
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
