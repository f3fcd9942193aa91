"""``actionplan apply``: show a plan, ask, run it here, say what happened."""

from __future__ import annotations

import argparse
import sys

from applier.cli import claim, files, foreground, parts, set_options
from applier.cli.arguments import PLAN_HELP, add_planning
from applier.cli.reporters.formatting import count, resources, some
from applier.cli.reporters.lasting import lasting
from applier.cli.verb import REFUSED, Verb
from applier.errors import PlanNotFound, UnknownActionTypes
from planner.errors import InvalidInput, Mistake
from planner.model import JOIN, ActionPlan
from planner.states import ENDED_PLAN, ActionState


class Apply(Verb):
    """Run a plan here: show it, ask, run it, say what happened

    FILE is a document or a saved plan, PLAN one that is kept. The first Ctrl-C lets what runs end
    and pauses the plan; the second cancels it. A PAUSED plan goes on when it is applied again.
    """

    EXAMPLES = (
        "apply last",
        "apply maintenance.yaml --yes",
        "apply last --yes --set max_workers=8 --set on_failure=continue",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a file or a plan, and what create takes."""
        parser = super().get_parser(prog_name)
        text = f"document or saved plan ('-': standard input); or {PLAN_HELP}"
        add_planning(parser, metavar="FILE|PLAN", help=text)
        parts.add_part(parser)
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan if need be, ask, run, recap."""
        from applier.cli.reporters import plan_table

        settings = set_options.read(parsed_args.set)
        if not parsed_args.yes and not sys.stdin.isatty():
            self.note("Refused: there is no terminal to ask on; add --yes to run the plan unasked")
            return REFUSED
        # Whoever asked for a plan to run wants it to run, also when nobody reads on.
        self.app.stdout = lasting(self.app.stdout)
        workers = settings.max_workers or self.session.max_workers
        plan = self._plan(parsed_args, settings)
        self._refuse_what_cannot_run(plan)
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, max_workers=workers)
        if not plan.actions:
            return 0
        if not parsed_args.yes and not self._agreed(plan, workers):
            self.say(f"Not applied. The plan is kept: actionplan apply {plan.uuid[:8]}")
            return REFUSED
        return foreground.run(self, plan, settings, workers)

    def _plan(self, args: argparse.Namespace, settings: set_options.SetOptions) -> ActionPlan:
        """Give the plan that is to run, kept in the record."""
        from planner import saved

        store = self.session.store
        if not files.is_file(args.file):
            plan = files.kept(self.session, args.file)
            setting_too_late(plan, settings, args.planner)
            parts.refuse(args)
            return plan
        document = parts.chosen(files.opened(args.file), args, self.session)
        plan = files.planned(
            document,
            settings,
            self.session.conf,
            planner=args.planner,
            check_types=args.check_types,
        )
        if saved.is_plan(document):
            try:
                known = store.load_plan(plan.uuid)
            except PlanNotFound:
                files.refuse_begun(plan, document)
            else:
                setting_too_late(known, settings, args.planner)
                return _same(known, plan)
        store.save_plan(plan)
        return plan

    def _refuse_what_cannot_run(self, plan: ActionPlan) -> None:
        """Raise for a plan that ended, that somebody runs, or that no plugin here can run."""
        taken = claim.taken(self.session.store, plan.uuid)
        if taken:
            raise taken
        if plan.state in ENDED_PLAN and plan.actions:
            raise claim.stands(plan)
        needed = {a.action_type for a in plan.actions} - {JOIN}
        known = self.session.action_types
        unknown = needed - set(known)
        if unknown:
            raise UnknownActionTypes(plan.uuid[:8], unknown, known)
        for name in needed:
            # Loads the plugin; raises BrokenPlugin.
            known[name]

    def _agreed(self, plan: ActionPlan, workers: int) -> bool:
        """Ask on the terminal, naming what will be touched."""
        from rich.text import Text

        from applier.cli.reporters import plan_table

        text = Text(f"{question(plan, workers)} [y/N]")
        try:
            plan_table.console(self.app.stdout).print(text, end=" ")
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = ""
        if not answer.endswith("\n"):
            self.say()
        return answer.strip().lower() in ("y", "yes")


def question(plan: ActionPlan, workers: int) -> str:
    """Ask whether to do what is left of a plan, naming what that touches."""
    left = [a for a in plan.actions if a.state is ActionState.PENDING and a.action_type != JOIN]
    hosts, instances = resources(left, "node"), resources(left, "instance")
    touched = [f"{count(len(hosts), 'host')} ({some(hosts, 6, ', ')})"] if hosts else []
    touched += [count(len(instances), "instance")] if instances else []
    on = f" to {' and '.join(touched)}" if touched else ""
    begun = len(left) < sum(a.action_type != JOIN for a in plan.actions)
    what = f"{'the remaining ' if begun else ''}{count(len(left), 'action')}"
    return f"Apply {what}{on}, at most {min(workers, len(left))} at once?"


def setting_too_late(
    plan: ActionPlan, settings: set_options.SetOptions, planner: str | None
) -> None:
    """Raise InvalidInput for what a plan that is made cannot heed any more."""
    files.refuse_planning(settings, planner)
    given, own = settings.on_failure, plan.on_failure
    if given and own and given != own:
        text = f"plan {plan.uuid[:8]} was made with on_failure={own}; make a new one"
        raise InvalidInput([Mistake(text, place=f"--set on_failure={given}")])


def _same(known: ActionPlan, plan: ActionPlan) -> ActionPlan:
    """Give the record's plan for a saved one."""
    if known.digest != plan.digest:
        text = f"plan {plan.uuid[:8]} is kept with another content: make the plan again"
        raise files.OutOfDate(text)
    return known
