# SPDX-License-Identifier: Apache-2.0
"""Verbs that remove plans and bring them back: ``delete``, ``undelete``, ``purge``."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from applier.cli.arguments import PLAN, REASON, YES, age, argument
from applier.cli.exit_codes import REFUSED
from applier.cli.verb import Verb, make_folder, write_text
from applier.contracts import Claimant
from applier.errors import DamagedRecord, PlanConflict, PlanNotFound
from applier.operations import removal, who_runs
from applier.run.liveness import has_died
from applier.wording import count
from planner.errors import shown

if TYPE_CHECKING:
    from applier.cli.session import Session


OPTION = "--keep-reports"


class DeletePlan(Verb):
    """Remove a plan that is not running, after a question

    The plan is marked DELETED and no longer listed; 'show' with its uuid still shows it, and
    'undelete' brings it back. A damaged plan, which nothing can show, is removed from the record
    for good.
    """

    EXAMPLES = ("delete 7f3a91", "delete 7f3a91 --yes")
    ARGUMENTS = (PLAN, YES)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        store = self.session.store
        uuid = store.find_plan(parsed_args.plan)
        try:
            plan = store.load_plan(uuid)
        except DamagedRecord as damaged:
            return self._remove(uuid, damaged, asks=not parsed_args.yes)
        removal.require_deletable(self.session, plan)
        question = f"Delete {who_runs.named(plan).replace('Plan', 'plan', 1)}, {plan.state}?"
        if not parsed_args.yes and not self.agrees(question):
            self.say("Not deleted. To delete it without a question, add --yes.")
            return REFUSED
        removal.delete(self.session, self.operator, plan)
        return 0

    def _remove(self, uuid: str, damaged: DamagedRecord, *, asks: bool) -> int:
        """Remove a damaged plan, of which only the uuid may be readable; return the exit code.

        If the plan has a claimant, wait until it sends a heartbeat or counts as dead. Raises
        PlanConflict if it is alive. ``asks`` means that the user must confirm the removal.
        """
        store = self.session.store
        for mistake in shown(damaged.mistakes):
            self.say(mistake)
        claimant = self._claimant(uuid)
        if claimant is not None and not has_died(store, uuid, claimant, tell=self.note):
            raise PlanConflict(uuid, "running", f"plan {uuid[:8]}: {who_runs.run_by(claimant)}")
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


class UndeletePlan(Verb):
    """Bring a deleted plan back

    The plan has the state that it had before 'delete'. A deleted plan is named by its whole uuid;
    'list --state DELETED -f json' lists them.
    """

    EXAMPLES = ("undelete 7f3a91c2-51f6-4a3e-9d0c-0d8f9d0b8a11",)
    ARGUMENTS = (argument("UUID", "the whole uuid of the plan", dest="plan"), REASON)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        plan = self.session.plan(parsed_args.plan)
        removal.undelete(self.session, self.operator, plan, parsed_args.reason)
        return 0


class Purge(Verb):
    """Delete plans for good that ended or were deleted long ago, after a question

    Deletes plans that SUCCEEDED, FAILED, were CANCELLED, SUPERSEDED or DELETED before AGE ago
    (12h, 90d, 8w), with their actions, attempts, outputs and history, and what their commands have
    left on this machine; 'job clean ADDRESS' does that on nodes, after a question. Durations that
    forecasts learn from go with them. Nothing brings them back: make a copy before with 'db
    backup', or keep a page about each plan with --keep-reports.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "purge --older-than 90d",
        "purge --older-than 52w --keep-reports reports --yes",
    )
    ARGUMENTS = (
        argument(
            "--older-than AGE",
            "what ended or was deleted longer ago: 12h, 90d, 8w",
            type=age,
            required=True,
        ),
        argument(
            f"{OPTION} DIR", "write the report of each plan to DIR/UUID.html before it is deleted"
        ),
        YES,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        before, assembly = parsed_args.older_than, self.session
        when = f"before {before:%Y-%m-%d %H:%M} UTC"
        number = len(assembly.store.ended_plans(before))
        if not number:
            self.say(f"No plan ended or was deleted {when}.")
            return 0
        text = f"Delete {count(number, 'plan')} for good that ended or were deleted {when}?"
        if not parsed_args.yes and not self.agrees(text):
            self.say("Nothing is deleted. To delete without a question, add --yes.")
            return REFUSED
        path = parsed_args.keep_reports
        if path is None:
            removal.purge(assembly, self.operator, before)
            return 0
        left: list[str] = []
        make_folder(path, OPTION)
        removal.purge(assembly, self.operator, before, partial(self._keep, path, left))
        return REFUSED if left else 0

    def _keep(self, path: str, left: list[str], uuid: str) -> bool:
        """Write the report of a plan; return whether the plan may be deleted.

        If not, add its uuid to ``left``, and write why to standard error.
        """
        why = keep(self.session, path, uuid)
        if why is not None:
            left.append(uuid)
            self.note(f"Not deleted: {why}")
        return why is None


def keep(session: Session, path: str, uuid: str) -> str | None:
    """Write the report of a plan to a folder; return None, or why the plan must not be deleted.

    If another purge deletes the plan meanwhile, nothing is written, and None is returned: that one
    has written the report, and here the plan may have been read in part. Raises ConfigurationError.
    """
    from applier.assembly import now
    from applier.report import content, page

    try:
        plan = session.store.load_plan(uuid)
        made = content.stored(session, plan.uuid, now=now())
        session.store.refresh_plan(plan)
    except PlanNotFound:
        return None
    except DamagedRecord as damaged:
        return f"{damaged}; no report of it can be made; see: actionplan delete {uuid[:8]}"
    write_text(os.path.join(path, f"{uuid}.html"), page.render(made), OPTION)
    return None
