# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``actionplan-watcher``: those of ``actionplan``, on plans of Watcher."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterable
from typing import Any

from applier.assembly import now
from applier.cli import show, simulate, steering
from applier.cli.arguments import ALL, PLAN, argument, defaults, format_of, one_of
from applier.cli.verb import Verb
from applier.errors import ApplierError, PlanConflict, StoreError
from applier.operations import who_runs
from applier.run import liveness, this_process
from applier.watcher import claims, database, endings
from applier.watcher.main import WatcherSession
from applier.watcher.resume import Follower, reopen, to_appliers
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState

PLAN_HELP = "uuid, a unique beginning of one, 'last', or 'last~1'"
#: Seconds between two looks at the plans.
LOOK_S = 1.0


class OnWatcher(Verb):
    """A verb of ``actionplan-watcher`` that is not one of ``actionplan``."""

    @property
    def session(self) -> WatcherSession:
        app: Any = self.app
        session: WatcherSession = app.session
        return session


class WatcherShow(show.ShowPlan):
    """Show a plan of Watcher wave by wave, or the whole plan as JSON or YAML"""

    EXAMPLES = ("show last", "show last --all", "show 7f3a91c2", "show 7f3a91c2 -f json")
    ARGUMENTS = (PLAN, ALL, defaults(node=None), format_of("message"))

    def about(self, plan: ActionPlan) -> Iterable[str]:
        return who_runs.claimant_lines(self.session.plans, plan, self.session.record, now())


class WatcherSimulate(simulate.Simulate):
    """Predict when actions of a plan of Watcher start, how long it takes, and what determines that

    With several values for max_workers (1..8, or 2,4,8), each has a row. The knee is marked: the
    first row within 5 % of the best.
    """

    EXAMPLES = (
        "simulate last",
        "simulate last --set max_workers=8",
        "simulate last --set max_workers=1..8",
        "simulate last -f json",
    )
    ARGUMENTS = (
        argument("PLAN", PLAN_HELP, dest="file"),
        argument(
            "--set max_workers=N", "number of actions that run at once", action="append", default=[]
        ),
        ALL,
        format_of(),
        # A plan of Watcher is planned already, and is no deployment.
        defaults(planner=None),
        defaults(node=None, task=None, fetch_deps=False, changed_since=None, strict=False),
        defaults(inject=None, times=None, seed=None),
    )


class WatcherActionSet(steering.ActionSet):
    """Set the state of an action in doubt, or of a failed one finished by hand

    Possible only while nobody runs the plan. To continue the plan: actionplan-watcher resume PLAN.
    """

    EXAMPLES = (
        "action set last 2f0c4711 --state succeeded --reason 'looked: it is on compute-4'",
        "action set last 2f0c4711 --state failed --reason 'looked: it never moved'",
    )

    def change_action(self, plan: ActionPlan, action: Action, args: argparse.Namespace) -> None:
        new = ActionState(args.state.upper())
        message = f"set by {this_process.user()}: {args.reason}"
        endings.settle(plan.uuid, action.uuid, new, now=now(), message=message)
        self.say(f"Plan {plan.uuid[:8]}: {action.label} is {new}.")
        self.say(f"Continue the plan: actionplan-watcher resume {plan.uuid[:8]}")


class WatcherResume(OnWatcher):
    """Let a plan go on whose applier has died, or that ended without doing all of its work

    What had begun is verified first. What SUCCEEDED does not run again.
    """

    EXAMPLES = ("resume last", "resume --all", "resume --follow")
    ARGUMENTS = (
        one_of(
            argument("PLAN", PLAN_HELP, nargs="?"),
            argument("--all", "all plans whose applier has died, then end"),
            argument("--follow", "all such plans, now and later, as a service"),
            required=True,
        ),
        argument(
            "--not-begun",
            "of PLAN, which this engine never ran: nobody runs it, and nothing had begun",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.not_begun and not parsed_args.plan:
            raise ApplierError("--not-begun is said of one PLAN, not of all")
        self.session.open()
        uuid = parsed_args.plan and self.session.plans.find_plan(parsed_args.plan)
        over = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: over.set())
        database.prepare()
        if uuid:
            self._reopen(uuid, over, not_begun=parsed_args.not_begun)
        follower = Follower(to_appliers(), self.say, uuid)
        if parsed_args.follow:
            self._follow(follower, over)
        while not over.is_set() and follower.look():
            over.wait(LOOK_S)
        return 0

    def _follow(self, follower: Follower, over: threading.Event) -> None:
        """Call :meth:`Follower.look` each second until ``over`` is set.

        A StoreError is printed, and resets the counts of missed heartbeats.
        """
        me = this_process.claimant()._replace(heartbeat_interval_s=LOOK_S)
        while not over.is_set():
            try:
                claims.follow(me, now=now())
                follower.look()
            except StoreError as reason:
                self.say(str(reason))
                follower.reset()
            over.wait(LOOK_S)

    def _reopen(self, uuid: str, over: threading.Event, *, not_begun: bool) -> None:
        """Make one plan PENDING; before that, wait until its claimant, if any, counts as dead.

        Raises PlanConflict if the claimant is alive, or if the plan cannot be resumed.
        """
        claimant = claims.claimant(uuid)
        if claimant is not None and not liveness.has_died(
            claims, uuid, claimant, tell=self.say, wait=over.wait
        ):
            text = f"plan {uuid}: process {claimant.pid} on {claimant.host} runs it, and is alive"
            raise PlanConflict(uuid, "ONGOING", text)
        reopen(uuid, claimant, not_begun=not_begun)
        self.say(f"plan {uuid} is PENDING, and is sent to the appliers")

    def say(self, text: str = "") -> None:
        super().say(text)
        self.app.stdout.flush()  # a service writes to a pipe


class WatcherPurge(OnWatcher):
    """Delete what is kept of plans that 'watcher-db-manage purge' has removed

    An applier does that for up to 200 plans when it runs its first one.
    """

    EXAMPLES = ("purge",)

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        self.session.open()
        database.prepare()
        number = 0
        while found := endings.purge():
            number += found
        self.say(f"Deleted what was kept of {number} plans.")
        return 0
