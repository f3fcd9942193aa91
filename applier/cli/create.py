# SPDX-License-Identifier: Apache-2.0
"""``actionplan create`` and ``rollback``: make plans, of documents and of other plans."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from applier.cli import arguments
from applier.cli.arguments import ALL, PLAN, REASON, argument, format_of
from applier.cli.verb import Verb, shown_plan, write_plan
from applier.errors import GuardRefusal
from applier.operations import creation
from applier.wording import duration
from planner.errors import PlannerError
from planner.plan.model import ActionPlan

if TYPE_CHECKING:
    from planner.making.planning import ReadProblem


#: The orderings of the weight planner, the only one that has several.
_ORDERINGS = {"weight": ("chunks", "slots")}


class Create(Verb):
    """Make a plan from a document, show it, and store it

    FILE is a document (YAML or JSON; '-' reads standard input) or a saved plan. The plan is stored
    as RECOMMENDED; no action is run.
    """

    EXAMPLES = (
        "create maintenance.yaml",
        "create maintenance.yaml --set migrate.parallelization=3 --set ordering=slots",
        "create maintenance.yaml --planner workload_stabilization --dry-run",
        "create maintenance.yaml --out plan.json -f json",
        "create moves.yaml --facts-from simulated",
        "create deployment.yaml --node 2,3 --task netconfig --fetch-deps",
        "create --from-playbook site.yml --inventory hosts.yml --limit web",
    )
    ARGUMENTS = (
        arguments.FILE_OR_PLAYBOOK,
        arguments.PLANNER,
        arguments.SET,
        ALL,
        arguments.PLAYBOOK,
        arguments.PART,
        argument("--out FILE", "also write the plan to a file (JSON), for apply"),
        argument(
            "--facts-from CLOUD",
            "plan with what this cloud holds now (simulated, openstack or a plugin); it must "
            "be the configured one, and the document must have no facts",
        ),
        argument("--dry-run", "show the plan, do not store it"),
        argument(
            "--no-check-types",
            "also plan action types that no plugin offers, without checking parameters",
            dest="check_types",
            action="store_false",
        ),
        format_of(),
        REASON,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with _without_collector():
            return self._create(parsed_args)

    def _create(self, parsed_args: argparse.Namespace) -> int:
        from applier.cli.reporters import plan_table
        from applier.configuration import check
        from planner.making import planning, saved

        settings = creation.read_settings(parsed_args.set)
        conf = self.session.conf
        document = arguments.chosen(arguments.document_of(parsed_args), parsed_args, self.session)
        document = creation.with_facts(document, self.session, parsed_args.facts_from)
        problem = None
        if document.is_plan:
            planner, checked = parsed_args.planner, parsed_args.check_types
            plan = creation.planned(self.session, document, settings, planner, check_types=checked)
        else:
            problem = planning.read_problem(
                document,
                parsed_args.planner,
                conf,
                check_types=parsed_args.check_types,
                cloud=self.session.cloud_name,
                demands=creation.demands_of(settings, conf),
            )
            plan = creation.with_policy(problem.plan(settings.options), settings)
            for text in check.two_meanings(conf, plan.planner):
                self.note(f"Warning: {text}")
        keep = not parsed_args.dry_run
        if keep and problem is None:
            saved.require_new(plan, document)
        workers = settings.max_workers or self.session.max_workers
        if parsed_args.out is not None:
            write_plan(parsed_args.out, plan)
        differs = self._differs_from_last(plan) if keep and parsed_args.format == "table" else None
        if keep:
            self.session.store.save_plan(plan, history=self.entry("create", parsed_args.reason))
        if settings.max_workers:
            self._tell_not_stored(workers)
        if parsed_args.format != "table":
            self.app.stdout.write(shown_plan(self.session, plan, parsed_args.format))
            return 0
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, max_workers=workers)
        expected = None
        if problem and plan.actions:
            expected = self._compared(problem, settings.options, plan, workers, recorded=keep)
        for line in filter(None, (expected, differs)):
            self.say(line)
        if keep and plan.actions:
            self._tell_next(plan)
        if not keep:
            self.say("Not stored (--dry-run).")
        return 0

    def _tell_not_stored(self, workers: int) -> None:
        from applier.configuration.plugin_options import engine_name
        from planner.making import registry

        section = registry.section_of(registry.ENGINES, engine_name(self.session.conf))
        self.note(
            f"Note: max_workers={workers} is not stored in the plan; pass it to apply, or set "
            f"it in [{section}]."
        )

    def _tell_next(self, plan: ActionPlan) -> None:
        """Write why a new plan may not run yet, or the commands that apply and draw it."""
        short = plan.uuid[:8]
        try:
            self.session.require_allowed(plan)
        except GuardRefusal as refused:
            self.say(f"Not to be run yet: {refused}")
            return
        self.say(f"Next: actionplan apply {short}, or actionplan graph {short} -f mermaid")

    def _differs_from_last(self, plan: ActionPlan) -> str | None:
        from applier.operations import differences

        return differences.from_last_of_its_name(self.session, plan)

    def _compared(
        self,
        problem: ReadProblem,
        options: Mapping[str, Any],
        plan: ActionPlan,
        workers: int,
        *,
        recorded: bool,
    ) -> str | None:
        """Return a sentence with the makespan of the plan in each ordering of its planner.

        None if the planner has only one ordering, the duration of an action is not known, or
        another ordering cannot be planned.
        """
        from applier.operations.predictions import makespan_s, past_durations

        orderings = _ORDERINGS.get(plan.planner)
        known = past_durations(self.session)
        # Checked first: without durations, nothing can be compared, and no second plan is needed.
        if not orderings or not known.are_known(plan, recorded=recorded):
            return None
        chosen, parts = problem.resolve(options).ordering, []
        for ordering in orderings:
            try:
                other = plan
                if ordering != chosen:
                    other = problem.plan({**options, "ordering": ordering})
            except PlannerError:
                # The requested plan exists already. The other one is only for comparison.
                return None
            durations = known.of(other, recorded=recorded)
            seconds = makespan_s(self.session, other, durations, workers)
            parts.append(f"{ordering} {duration(seconds)}")
        return f"Expected: {', '.join(parts)}"


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn the garbage collector off inside a block.

    Nearly all objects that ``create`` makes exist until its end. The collector would scan all of
    them again and again, so that the time per action would grow with the size of the plan.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Rollback(Verb):
    """Make a plan that undoes another plan in reverse order; show it and store it

    The limits of the other plan apply. No action is run: read the plan, then apply it.
    """

    EXAMPLES = ("rollback last", "rollback 7f3a91 --all")
    ARGUMENTS = (PLAN, ALL)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.cli.reporters import plan_table

        session = self.session
        plan = session.plan(parsed_args.plan)
        made = creation.roll_back(session, self.operator, plan)
        plan_table.show(
            made, self.app.stdout, whole=parsed_args.all, max_workers=session.max_workers
        )
        self.say(f"It undoes what plan {plan.uuid[:8]} did.")
        self.say(f"Next: actionplan apply {made.uuid[:8]}")
        return 0
