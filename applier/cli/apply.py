# SPDX-License-Identifier: Apache-2.0
"""``actionplan apply``: show a plan, ask for confirmation, run it in this process, show a recap."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from applier.cli import arguments, deployment_part, foreground
from applier.cli.arguments import PLAN_HELP, add_planning
from applier.cli.terminal import lasting
from applier.cli.verb import REFUSED, Verb
from applier.errors import (
    DamagedRecord,
    GuardRefusal,
    OutOfDate,
    PlanNotFound,
    StoreError,
    UnknownActionTypes,
)
from applier.operations import claim, creation, drift
from applier.operations.creation import SetOptions, read_settings
from applier.run.plan_cloud import shown_name
from applier.wording import count, resources, some
from planner.errors import InvalidInput, Mistake
from planner.model import JOIN, ActionPlan
from planner.states import ENDED_PLAN, ActionState


class Apply(Verb):
    """Run a plan in this process: show it, ask, run it, show the results

    FILE is a document or a saved plan, PLAN a stored plan. The first Ctrl-C pauses the plan:
    running actions end, no more start. The second one cancels it. A PAUSED plan continues when it
    is applied again. If the cloud is not as planned any more, nothing runs: make a new plan.
    With --dry-run, each action only checks what it would find now; the exit code is 4 if one would
    be refused, or if the cloud is not as planned.
    """

    EXAMPLES = (
        "apply last",
        "apply maintenance.yaml --yes",
        "apply last --dry-run",
        "apply last --yes --events events.jsonl",
        "apply last --yes --set max_workers=8 --set on_failure=continue",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a file or a plan, and those of create."""
        parser = super().get_parser(prog_name)
        text = f"document or saved plan ('-': standard input); or {PLAN_HELP}"
        add_planning(parser, metavar="FILE|PLAN", help=text)
        deployment_part.add_part(parser)
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only look what each action would find in the cloud as it is now",
        )
        arguments.add_accept_drift(parser)
        arguments.add_events(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Make the plan if FILE is a document, ask for confirmation, run it, show a recap.

        With ``--dry-run``, only call the prechecks of its actions.
        """
        settings = read_settings(parsed_args.set)
        if parsed_args.dry_run:
            return self._look(parsed_args, settings)
        if not may_ask(self, parsed_args):
            return REFUSED
        if parsed_args.events != "-":
            # The run continues if the terminal or the reader of the pipe goes away.
            self.app.stdout = lasting(self.app.stdout)
        if parsed_args.events is None:
            return self._apply(parsed_args, settings, None)
        from applier.cli import event_output

        with event_output.opened(self, parsed_args.events) as events:
            return self._apply(parsed_args, settings, events)

    def _look(self, args: argparse.Namespace, settings: SetOptions) -> int:
        from applier.cli.dry_run import show_dry_run

        plan, _ = self._plan(args, settings)
        _refuse_what_cannot_run(self, plan)
        return show_dry_run(self, plan)

    def _apply(
        self, parsed_args: argparse.Namespace, settings: SetOptions, events: TextIO | None
    ) -> int:
        with _before_anything_runs():
            plan, is_new = self._plan(parsed_args, settings)
        return run_shown(self, plan, settings, parsed_args, is_new=is_new, events=events)

    def _plan(self, args: argparse.Namespace, settings: SetOptions) -> tuple[ActionPlan, bool]:
        """Return the plan to run, and whether it must still be saved to the record.

        A saved plan that is in the record already is returned with its recorded states.
        """
        store = self.session.store
        if not arguments.is_file(args.file):
            plan = arguments.stored_plan(self.session, args.file)
            refuse_late_settings(plan, settings, args.planner)
            deployment_part.refuse(args)
            return plan, False
        document = deployment_part.chosen(arguments.opened(args.file), args, self.session)
        plan = creation.planned(
            document,
            settings,
            self.session.conf,
            planner=args.planner,
            check_types=args.check_types,
            cloud=self.session.assembly.cloud_name,
        )
        if document.is_plan:
            try:
                known = store.load_plan(plan.uuid)
            except PlanNotFound:
                from planner import saved

                saved.require_new(plan, document)
            else:
                refuse_late_settings(known, settings, args.planner)
                return _same(known, plan), False
        return plan, True


def run_shown(
    verb: Verb,
    plan: ActionPlan,
    settings: SetOptions,
    args: argparse.Namespace,
    *,
    is_new: bool,
    events: TextIO | None = None,
) -> int:
    """Show a plan, ask whether to run it, and run it; return the exit code.

    ``args`` are those of :meth:`Apply.get_parser`: ``yes``, ``all`` and ``accept_drift``. A plan
    that ``is_new`` is stored before anything is asked.
    """
    from applier.cli.reporters import plan_table

    workers = settings.max_workers or verb.session.max_workers
    with _before_anything_runs():
        _refuse_what_cannot_run(verb, plan)
        if is_new:
            verb.session.store.save_plan(plan, history=verb.entry("create"))
        plan_table.show(plan, verb.app.stdout, whole=args.all, max_workers=workers)
        if not plan.actions:
            return 0
        _require_allowed(verb, plan, settings)
        if verb.session.cloud_needed_by(plan) is not None:
            accepted, asks = args.accept_drift, not args.yes
            drift.require_no_drift(
                verb.session.assembly, plan, verb.say, accepted=accepted, in_any_case=asks
            )
    if not args.yes and not verb.agrees(question(plan, workers)):
        verb.say(f"Not applied. The plan is stored: actionplan apply {plan.uuid[:8]}")
        return REFUSED
    return foreground.run(verb, plan, settings, workers, events)


@contextmanager
def _before_anything_runs() -> Iterator[None]:
    """Add to an error of the record that nothing has run."""
    try:
        yield
    except (StoreError, DamagedRecord) as reason:
        raise StoreError(f"{reason}. {foreground.NOTHING_RAN}") from reason


def may_ask(verb: Verb, args: argparse.Namespace) -> bool:
    """Return whether there is a terminal to ask on, or ``--yes``; write a note if there is not."""
    if args.yes or sys.stdin.isatty():
        return True
    verb.note("Refused: there is no terminal to ask on; add --yes to run it without confirmation")
    return False


def _require_allowed(verb: Verb, plan: ActionPlan, settings: SetOptions) -> None:
    """Raise GuardRefusal if the plan may not run, or not in this way."""
    assembly = verb.session.assembly
    assembly.require_allowed(plan)
    given = settings.on_failure
    policy = plan.on_failure or assembly.conf.watcher_applier.on_failure
    if given and given != policy and assembly.guard.demanded(plan).approvals:
        text = (
            f"plan {plan.uuid[:8]} is approved with on_failure={policy}: "
            f"--set on_failure={given} is for a plan that needs no approval"
        )
        raise GuardRefusal(plan.uuid, text)


def _refuse_what_cannot_run(verb: Verb, plan: ActionPlan) -> None:
    """Raise an error for a plan that cannot run here and now.

    That is one that has ended, that another process runs, for which an action type is missing or
    broken, or that was made for another cloud than the configured one.
    """
    session = verb.session
    if plan.state in claim.RUNNING and (taken := claim.already_running(session.store, plan.uuid)):
        raise taken
    if plan.state in ENDED_PLAN and plan.actions:
        raise claim.wrong_state(plan)
    needed = {a.action_type for a in plan.actions} - {JOIN}
    known = session.action_types
    unknown = needed - set(known)
    if unknown:
        raise UnknownActionTypes(plan.uuid[:8], unknown, known)
    for name in needed:
        # Importing the plugin raises BrokenPlugin if it cannot be used.
        known[name]
    session.require_own_cloud(plan)


def question(plan: ActionPlan, workers: int) -> str:
    """Return the question whether to run the PENDING actions, with the hosts that they touch."""
    from applier.cli.reporters.plan_table import of_all

    left = [a for a in plan.actions if a.state is ActionState.PENDING and a.action_type != JOIN]
    hosts, instances = resources(left, "node"), resources(left, "instance")
    totals = {share.name: share.total for share in plan.guards.extent}
    touched = [f"{of_all(len(hosts), 'host', totals)} ({some(hosts, 6, ', ')})"] if hosts else []
    touched += [of_all(len(instances), "instance", totals)] if instances else []
    on = f" to {' and '.join(touched)}" if touched else ""
    begun = len(left) < sum(a.action_type != JOIN for a in plan.actions)
    what = f"{'the remaining ' if begun else ''}{count(len(left), 'action')}"
    bound = f"at most {min(workers, len(left))} at once"
    return f"Apply {what}{on}, {bound} (cloud: {shown_name(plan)})?"


def refuse_late_settings(plan: ActionPlan, settings: SetOptions, planner: str | None) -> None:
    """Raise InvalidInput for settings that have no effect on a plan that is already made."""
    creation.refuse_planning(settings, planner)
    given, own = settings.on_failure, plan.on_failure
    if given and own and given != own:
        text = f"plan {plan.uuid[:8]} was made with on_failure={own}; make a new one"
        raise InvalidInput([Mistake(text, place=f"--set on_failure={given}")])


def _same(known: ActionPlan, plan: ActionPlan) -> ActionPlan:
    """Return the stored plan for a saved one; raises OutOfDate if their content differs."""
    if known.digest != plan.digest:
        text = f"plan {plan.uuid[:8]} is stored with other content: make the plan again"
        raise OutOfDate(text)
    return known
