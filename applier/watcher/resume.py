# SPDX-License-Identifier: Apache-2.0
"""The verb ``actionplan-watcher resume``: makes plans PENDING, and sends them to the appliers."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable
from typing import Any

from cliff.command import Command

from applier.errors import ApplierError, PlanConflict, StoreError
from applier.run import liveness
from applier.watcher import claims, database, reopening
from applier.watcher.following import Follower

#: Seconds between two looks at the plans.
LOOK_S = 1.0


class ResumeWatcherPlan(Command):
    """Let a plan go on whose applier has died, or that ended without doing all of its work

    What had begun is verified first. What SUCCEEDED does not run again.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, or --all, or --follow; and --not-begun for a plan."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("plan", metavar="PLAN", nargs="?", help="uuid of a plan of Watcher")
        which.add_argument(
            "--all", action="store_true", help="all plans whose applier has died, then end"
        )
        which.add_argument(
            "--follow", action="store_true", help="all such plans, now and later, as a service"
        )
        parser.add_argument(
            "--not-begun",
            action="store_true",
            help="of PLAN, which this engine never ran: nobody runs it, and nothing had begun",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Make the plans PENDING, and send them to the appliers until one has claimed each.

        With --follow, it ends only after SIGTERM.
        """
        if parsed_args.not_begun and not parsed_args.plan:
            raise ApplierError("--not-begun is said of one PLAN, not of all")
        over = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: over.set())
        database.prepare()
        if parsed_args.plan:
            self._reopen(parsed_args.plan, over, not_begun=parsed_args.not_begun)
        follower = Follower(_cast(), self._say, parsed_args.plan)
        if parsed_args.follow:
            self._follow(follower, over)
        while not over.is_set() and follower.look():
            over.wait(LOOK_S)
        return 0

    def _follow(self, follower: Follower, over: threading.Event) -> None:
        """Call :meth:`applier.watcher.following.Follower.look` each second until ``over`` is set.

        A StoreError is printed, and resets the counts of missed heartbeats.
        """
        while not over.is_set():
            try:
                follower.look()
            except StoreError as reason:
                self._say(str(reason))
                follower.reset()
            over.wait(LOOK_S)

    def _reopen(self, uuid: str, over: threading.Event, *, not_begun: bool) -> None:
        """Make one plan PENDING; before that, wait until its claimant, if any, counts as dead.

        Raises PlanConflict if the claimant is alive, or if the plan cannot be resumed.
        """
        claimant = claims.claimant(uuid)
        if claimant is not None and not liveness.has_died(
            claims, uuid, claimant, tell=self._say, wait=over.wait
        ):
            text = f"plan {uuid}: process {claimant.pid} on {claimant.host} runs it, and is alive"
            raise PlanConflict(uuid, "ONGOING", text)
        reopening.reopen(uuid, claimant, not_begun=not_begun)
        self._say(f"plan {uuid} is PENDING, and is sent to the appliers")

    def _say(self, text: str) -> None:
        self.app.stdout.write(f"{text}\n")
        self.app.stdout.flush()


def _cast() -> Callable[[str], None]:
    """Return a function that sends a plan to Watcher's appliers."""
    from watcher.applier.rpcapi import ApplierAPI
    from watcher.common.context import make_context

    appliers: Any = ApplierAPI()
    context = make_context(is_admin=True)
    return lambda uuid: appliers.launch_action_plan(context, uuid)
