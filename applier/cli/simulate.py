# SPDX-License-Identifier: Apache-2.0
"""``actionplan simulate``: how long a plan takes, also for several settings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, ClassVar

from applier.cli import arguments, deployment_part, plan_files, rehearsing, set_ranges
from applier.cli.arguments import PLAN_HELP, add_format, add_planning
from applier.cli.verb import Verb
from applier.operations import creation
from applier.operations.creation import read_settings
from applier.store.worker_jobs import unserved
from applier.wording import duration
from planner.model import ActionPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from applier.guarding.nights import Night
    from applier.operations.predictions import Prediction
    from applier.scheduling.forecast import Forecast
    from planner.documents import Document


class Simulate(Verb):
    """Predict when actions start, how long a plan takes, and what determines that

    FILE is a document or a saved plan, PLAN a stored plan. Nothing is stored, and no action is run.
    With several values for a setting (1..8, or 2,4,8), each combination has a row. The knee is
    marked: the first row within 5 % of the best.

    With --inject or --times, the run is rehearsed many times: durations are drawn from earlier
    runs, and faults are injected. A fault of a resource (node:compute-3, or node:* for each node)
    is drawn once for each run; one of an action type or an action, for each attempt.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "simulate maintenance.yaml",
        "simulate last --set max_workers=8",
        "simulate maintenance.yaml --set migrate.parallelization=1..8 --set max_workers=2,4,8",
        "simulate last -f json",
        "simulate last --inject 'fail:migrate=5%,slow:node:compute-3=3x,hang:db-1' --seed 7",
        "simulate last --inject 'fail:node:*=10%' --set max_workers=1,2,4 --times 500",
        "simulate last --split-by-window",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments of create; FILE may also be a stored plan."""
        parser = super().get_parser(prog_name)
        text = f"document or saved plan ('-': standard input); or {PLAN_HELP}"
        add_planning(parser, metavar="FILE|PLAN", help=text)
        deployment_part.add_part(parser)
        parser.add_argument(
            "--split-by-window",
            action="store_true",
            help="also say how many of its windows the plan needs, and what runs in each",
        )
        add_format(parser)
        rehearsing.add_faults(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the forecast, or the figures of rehearsals, for each combination of settings."""
        from applier.cli.reporters import timeline
        from applier.operations import predictions
        from applier.operations.predictions import past_durations, predicted, sentence
        from applier.run.durations import RECORD

        keys, combinations = set_ranges.expand(parsed_args.set)
        document = None
        if arguments.is_file(parsed_args.file):
            document = deployment_part.chosen(
                arguments.opened(parsed_args.file), parsed_args, self.session
            )
        else:
            deployment_part.refuse(parsed_args)
        known = past_durations(self.session)
        plans = [self._planned(parsed_args, document, each) for each in combinations]
        if rehearsing.has_rehearsal_options(parsed_args):
            rehearsing.rehearse(self, parsed_args, keys, combinations, plans, known)
            return 0
        made = [
            (plan, predicted(self.session, plan, known.of(plan), workers))
            for plan, workers in plans
        ]
        if keys:
            rows = [
                (set_ranges.values(keys, each), found.forecast)
                for each, (_, found) in zip(combinations, made, strict=True)
            ]
            self._compare(keys, rows, parsed_args.format)
            if parsed_args.format == "table":
                self.say(sentence(made[0][1].durations))
            return 0
        (plan, found), workers = made[0], plans[0][1]
        if parsed_args.format == "table":
            timeline.show(plan, found.forecast, self.app.stdout, whole=parsed_args.all)
            if found.durations.known_from.get(RECORD):
                self.say(f"If each takes as long as 9 in 10 did: {duration(found.cautious_s)}.")
            self.say(sentence(found.durations))
            if found.unserved:
                self.say(unserved(found.unserved))
            for line in self._nights(parsed_args, plan, found, workers):
                self.say(line)
        else:
            value = predictions.as_dict(plan, found)
            if parsed_args.split_by_window:
                from applier.operations import split_by_window

                value["nights"] = split_by_window.as_list(self._split(plan, found, workers))
            self.app.stdout.write(plan_files.rendered(value, parsed_args.format))
        return 0

    def _nights(
        self, args: argparse.Namespace, plan: ActionPlan, found: Prediction, workers: int
    ) -> list[str]:
        from applier.operations import split_by_window

        if not args.split_by_window:
            return []
        return list(split_by_window.lines(plan, self._split(plan, found, workers)))

    def _split(self, plan: ActionPlan, found: Prediction, workers: int) -> Sequence[Night]:
        from applier.operations import split_by_window

        return split_by_window.split(self.session.assembly, plan, found, workers)

    def _planned(
        self, args: argparse.Namespace, document: Document | None, texts: tuple[str, ...]
    ) -> tuple[ActionPlan, int]:
        """Return the plan for these settings, and the number of workers."""
        settings = read_settings(texts)
        if document is None:
            creation.refuse_planning(settings, args.planner)
            plan = arguments.stored_plan(self.session, args.file)
        else:
            plan = creation.planned(
                document,
                settings,
                self.session.conf,
                planner=args.planner,
                check_types=args.check_types,
                cloud=self.session.assembly.cloud_name,
            )
        return plan, settings.max_workers or self.session.max_workers

    def _compare(self, keys: list[str], rows: list[tuple[list[str], Forecast]], form: str) -> None:
        from applier.cli.reporters import timeline

        best = min(found.timeline.makespan_s for _, found in rows)
        knee = next(i for i, (_, f) in enumerate(rows) if f.timeline.makespan_s <= 1.05 * best)
        if form == "table":
            timeline.compare(keys, rows, knee, self.app.stdout)
            return
        value = [
            {
                **dict(zip(keys, values, strict=True)),
                "makespan_s": found.timeline.makespan_s,
                "lower_bound_s": found.lower_bound_s,
                "knee": i == knee,
            }
            for i, (values, found) in enumerate(rows)
        ]
        self.app.stdout.write(plan_files.rendered({"combinations": value}, form))
