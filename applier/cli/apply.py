"""``actionplan apply``: show a plan, ask, run it here, say what happened."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from applier.cli import settings as setting
from applier.cli.create import add_planning, opened
from applier.cli.plans import PLAN_HELP
from applier.cli.reporters import plan_table, recap
from applier.cli.reporters.progress import Block, Lines
from applier.cli.reporters.words import count, resources
from applier.cli.session import now
from applier.cli.verb import FAILED, OUT_OF_DATE, PAUSED, REFUSED, Verb
from applier.errors import PlanConflict, PlanNotFound
from applier.runner import Runner
from planner import make_plan, saved
from planner.errors import InvalidInput
from planner.model import JOIN, ActionPlan
from planner.states import ENDED_PLAN, PlanState

EXIT_CODES = {
    PlanState.SUCCEEDED: 0,
    PlanState.FAILED: FAILED,
    PlanState.PAUSED: PAUSED,
    PlanState.CANCELLED: PAUSED,
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        add_planning(parser)
        for action in parser._actions:
            if action.dest == "file":
                action.metavar, action.help = "FILE|PLAN", f"document or saved plan; or {PLAN_HELP}"
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan if need be, ask, run, recap."""
        settings = setting.read(parsed_args.set)
        if not parsed_args.yes and not sys.stdin.isatty():
            self.app.stderr.write(
                "Refused: there is no terminal to ask on; add --yes to run the plan unasked\n"
            )
            return REFUSED
        try:
            plan = self._plan(parsed_args, settings)
        except _OutOfDate as reason:
            self.app.stderr.write(f"Refused: {reason}\n")
            return OUT_OF_DATE
        workers = settings.max_workers or self.session.max_workers
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, max_workers=workers)
        if plan.state in ENDED_PLAN:
            return self._ended(plan)
        if not parsed_args.yes and not self._agreed(plan, workers):
            self.say(f"Not applied. It is kept: actionplan apply {plan.uuid[:8]}")
            return REFUSED
        return self._run(plan, settings, workers)

    def _plan(self, args: argparse.Namespace, settings: setting.Settings) -> ActionPlan:
        """Give the plan that is to run, kept in the record."""
        store = self.session.store
        if args.file != "-" and not Path(args.file).exists():
            try:
                return self.session.plan(args.file)
            except PlanNotFound as reason:
                text = f"no file of that name either; {reason}"
                raise (
                    PlanNotFound(args.file, reason.candidates)
                    if reason.candidates
                    else (_NoFileNorPlan(args.file, text))
                ) from None
        document = opened(args.file)
        if not saved.is_plan(document):
            plan = make_plan(
                document,
                args.planner,
                settings.options,
                self.session.conf,
                check_types=args.check_types,
            )
            store.save_plan(plan)
            return plan
        try:
            plan = saved.read_plan(document)
        except InvalidInput as wrong:
            if all(m.path == ("digest",) for m in wrong.mistakes):
                raise _OutOfDate(str(wrong)) from None
            raise
        return self._kept(plan)

    def _kept(self, plan: ActionPlan) -> ActionPlan:
        """Give the record's plan for a saved one, which is kept now if it was not."""
        store = self.session.store
        try:
            known = store.load_plan(plan.uuid)
        except PlanNotFound:
            store.save_plan(plan)
            return plan
        if known.digest != plan.digest:
            text = f"plan {plan.uuid[:8]} is kept with another content: make the plan again"
            raise _OutOfDate(text)
        return known

    def _ended(self, plan: ActionPlan) -> int:
        if not plan.actions:
            return 0
        text = f"plan {plan.uuid[:8]} is {plan.state}: a plan is applied once; make a new one"
        raise PlanConflict(plan.uuid, plan.state, text)

    def _agreed(self, plan: ActionPlan, workers: int) -> bool:
        """Ask on the terminal, naming what will be touched."""
        hosts, instances = resources(plan.actions, "node"), resources(plan.actions, "instance")
        touched = [
            f"{count(len(found), word)} ({', '.join(found[:6])}{', ...' if len(found) > 6 else ''})"
            if word == "host"
            else count(len(found), word)
            for found, word in ((hosts, "host"), (instances, "instance"))
            if found
        ]
        number = sum(a.action_type != JOIN for a in plan.actions)
        text = f"Apply {count(number, 'action')} to {' and '.join(touched) or 'nothing named'}, "
        self.app.stdout.write(f"{text}at most {workers} at once? [y/N] ")
        self.app.stdout.flush()
        try:
            return sys.stdin.readline().strip().lower() in ("y", "yes")
        except KeyboardInterrupt:
            self.say()
            return False

    def _run(self, plan: ActionPlan, settings: setting.Settings, workers: int) -> int:
        session, store, short = self.session, self.session.store, plan.uuid[:8]
        if plan.state in (PlanState.RECOMMENDED, PlanState.PAUSED):
            store.move_plan(plan.uuid, PlanState.PENDING, now=now())
        watcher = (Block if self.on_terminal else Lines)(plan, self.app.stdout)
        runner = Runner(
            store,
            session.engine(workers),
            session.plugins,
            cloud=session.cloud,
            claimant=session.claimant,
            on_failure=settings.on_failure or session.conf.watcher_applier.on_failure,
            listeners=[watcher],
        )
        began = time.monotonic()
        with signals(runner, self.app.stderr), watcher:
            runner.run(plan.uuid)
        plan = store.load_plan(plan.uuid)
        recap.show(plan, time.monotonic() - began, self.app.stdout)
        if plan.state is PlanState.PAUSED:
            self.say(f"Go on with: actionplan apply {short}")
        if plan.state is PlanState.FAILED:
            self.say(f"Look closer: actionplan action list {short} --state FAILED")
        return EXIT_CODES.get(plan.state, REFUSED)


class _OutOfDate(Exception):
    """A saved plan that must not be applied any more."""


class _NoFileNorPlan(PlanNotFound):
    def __init__(self, reference: str, text: str) -> None:
        super().__init__(reference)
        self.args = (text,)


@contextmanager
def signals(runner: Runner, stream: Any) -> Iterator[None]:
    """Let the first signal pause the plan, the second cancel it, while it runs."""
    seen: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        seen.append(number)
        name = signal.Signals(number).name
        if len(seen) == 1:
            stream.write(f"\n{name}: pausing; what runs ends. Once more cancels the plan.\n")
            runner.pause(why=name)
        elif len(seen) == 2:
            stream.write(f"\n{name}: cancelling; what runs is told to stop.\n")
            runner.cancel(why=name)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
