# SPDX-License-Identifier: Apache-2.0
"""``actionplan apply``: show a plan, ask, run it in this process, show a recap; or only look."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from applier import errors
from applier.cli import arguments, foreground
from applier.cli.arguments import ACCEPT_DRIFT, REASON, YES, argument
from applier.cli.exit_codes import OUT_OF_DATE, REFUSED
from applier.cli.terminal import lasting
from applier.cli.verb import Verb
from applier.operations import creation, drift, refusals, who_runs
from applier.operations.creation import SetOptions
from applier.run.plan_cloud import cloud_of, shown_name
from applier.run.prechecks import Precheck, Prechecked
from applier.wording import count, one_line, resources, some
from planner.errors import InvalidInput, Mistake
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ENDED_PLAN, ActionState

#: The colours of findings.
_STYLES = {
    Precheck.NOT_NEEDED: "cyan",
    Precheck.REFUSED: "bold red",
    Precheck.NO_ANSWER: "yellow",
}


def show_dry_run(verb: Verb, plan: ActionPlan) -> int:
    """Write what the prechecks found, how the cloud differs from the plan, and a refusing guard.

    Return the exit code, OUT_OF_DATE if a run would be refused. Nothing is stored or changed.
    """
    found = drift.dry_run(verb.session, plan, runs_commands=True)
    verb.say(f"Cloud: {cloud_of(plan)}")
    _show(verb, found.checked)
    if found.moved is not None:
        verb.say("The cloud is as planned." if not found.moved else "The cloud is not as planned:")
        for sentence in found.moved:
            verb.say(f"  {one_line(sentence)}")
    if found.guard is not None:
        verb.say(f"A guard refuses it: {found.guard}")
    verb.say("Nothing was changed, and nothing was stored.")
    return OUT_OF_DATE if found.is_refused else 0


def _show(verb: Verb, found: Sequence[Prechecked]) -> None:
    from applier.cli.reporters.plan_table import cell, console, put, table_of

    if found:
        table = table_of("action", "what", "now", "why")
        for one in found:
            state = cell(str(one.found))
            state.stylize(_STYLES.get(one.found, ""))
            what = cell(one.action.description or one.action.action_type)
            table.add_row(cell(one.action.label), what, state, cell(one.why or ""))
        put(console(verb.app.stdout), table)
    counts = Counter(one.found for one in found)
    parts = [f"{counts[kind]} {kind}" for kind in Precheck if counts[kind]]
    verb.say(f"{count(len(found), 'action')}: {', '.join(parts) or 'nothing is left to do'}.")


class Apply(Verb):
    """Run a plan in this process: show it, ask, run it, show the results

    FILE is a document or a saved plan, PLAN a stored plan. The first Ctrl-C pauses the plan:
    running actions end, no more start. The second one cancels it. A plan that was paused or failed,
    or whose applier died, goes on: what had begun is verified, what failed runs again. If the cloud
    is not as planned any more, nothing runs: make a new plan.
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
    ARGUMENTS = (
        arguments.FILE_OR_PLAN,
        arguments.PLANNER,
        arguments.SET,
        arguments.ALL,
        arguments.PART,
        YES,
        argument("--dry-run", "only look what each action would find in the cloud as it is now"),
        ACCEPT_DRIFT,
        argument(
            "--events FILE",
            "append a line of JSON to FILE for each change of a state; '-': standard output, "
            "and everything else goes to standard error",
        ),
        REASON,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        settings = creation.read_settings(parsed_args.set)
        if parsed_args.dry_run:
            return self._look(parsed_args, settings)
        if not may_ask(self, parsed_args):
            return REFUSED
        if parsed_args.events != "-":
            # The run continues if the terminal or the reader of the pipe goes away.
            self.app.stdout = lasting(self.app.stdout)
        if parsed_args.events is None:
            return self._apply(parsed_args, settings, None)
        with foreground.opened(self, parsed_args.events) as events:
            return self._apply(parsed_args, settings, events)

    def _look(self, args: argparse.Namespace, settings: SetOptions) -> int:

        plan, _ = self._plan(args, settings)
        stopped = who_runs.goes_on(self.session.store, plan)
        _refuse_what_cannot_run(self, plan, stopped=stopped)
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
            arguments.refuse(args)
            return plan, False
        document = arguments.chosen(arguments.opened(args.file), args, self.session)
        document = creation.with_facts(document, self.session)
        plan = creation.planned(self.session, document, settings, args.planner)
        if document.is_plan:
            try:
                known = store.load_plan(plan.uuid)
            except errors.PlanNotFound:
                from planner.making import saved

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
    from applier.operations import plans

    workers = settings.max_workers or verb.session.max_workers
    stopped = not is_new and who_runs.goes_on(verb.session.store, plan)
    with _before_anything_runs():
        _refuse_what_cannot_run(verb, plan, stopped=stopped)
        if is_new:
            verb.session.store.save_plan(plan, history=verb.entry("create", args.reason))
        plan_table.show(plan, verb.app.stdout, whole=args.all, max_workers=workers)
        if not plan.actions:
            return 0
        _require_allowed(verb, plan, settings)
        if verb.session.cloud_needed_by(plan) is not None:
            accepted, asks = args.accept_drift, not args.yes
            drift.require_no_drift(
                verb.session, plan, verb.say, accepted=accepted, in_any_case=asks
            )
        dead = plans.foresee(verb.session, verb.operator, plan) if stopped else None
    asked = f"Go on with plan {plan.uuid[:8]}?" if stopped else question(plan, workers)
    if not args.yes and not verb.agrees(asked):
        verb.say(f"Not applied. The plan is stored: actionplan apply {plan.uuid[:8]}")
        return REFUSED
    if stopped:
        with _before_anything_runs():
            plan = plans.go_on(verb.session, verb.operator, plan, args.reason, dead)
    return foreground.run(verb, plan, settings, events, args.reason)


@contextmanager
def _before_anything_runs() -> Iterator[None]:
    """Add to an error of the record that nothing has run."""
    try:
        yield
    except (errors.StoreError, errors.DamagedRecord) as reason:
        raise errors.StoreError(f"{reason}. {foreground.NOTHING_RAN}") from reason


def may_ask(verb: Verb, args: argparse.Namespace) -> bool:
    """Return whether there is a terminal to ask on, or ``--yes``; write a note if there is not."""
    if args.yes or sys.stdin.isatty():
        return True
    verb.note("Refused: there is no terminal to ask on; add --yes to run it without confirmation")
    return False


def _require_allowed(verb: Verb, plan: ActionPlan, settings: SetOptions) -> None:
    """Raise GuardRefusal if the plan may not run, or not in this way."""
    from applier.configuration import plugin_options

    assembly = verb.session
    assembly.require_allowed(plan)
    given = settings.on_failure
    policy = plugin_options.on_failure_of(assembly.conf, plan)
    if given and given != policy and assembly.guard.demanded(plan).approvals:
        text = (
            f"plan {plan.uuid[:8]} is approved with on_failure={policy}: "
            f"--set on_failure={given} is for a plan that needs no approval"
        )
        raise errors.GuardRefusal(plan.uuid, text)


def _refuse_what_cannot_run(verb: Verb, plan: ActionPlan, *, stopped: bool) -> None:
    """Raise an error for a plan that cannot run here and now, unless it was ``stopped`` before.

    That is one that has ended, that another process runs, for which an action type is missing or
    broken, or that was made for another cloud than the configured one.
    """
    session = verb.session
    if plan.state in who_runs.RUNNING and not stopped:
        taken = refusals.already_running(session.store, plan.uuid)
        if taken is not None:
            raise taken
    if plan.state in ENDED_PLAN and plan.actions and not stopped:
        raise refusals.wrong_state(plan)
    needed = {a.action_type for a in plan.actions} - {JOIN}
    known = session.action_types
    unknown = needed - set(known)
    if unknown:
        raise errors.UnknownActionTypes(plan.uuid[:8], unknown, known)
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
        raise errors.OutOfDate(text)
    return known
