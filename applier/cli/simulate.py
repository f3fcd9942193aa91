# SPDX-License-Identifier: Apache-2.0
"""``actionplan simulate``: how long a plan takes, for several settings, and with faults."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from applier.cli import arguments
from applier.cli.arguments import Add, argument, format_of, group, positive
from applier.cli.verb import Verb, rendered
from applier.operations import creation
from applier.store.worker_jobs import unserved
from applier.wording import duration
from planner.errors import InvalidInput, Mistake
from planner.plan.model import ActionPlan

if TYPE_CHECKING:
    from applier.run.expected_durations import PastDurations
    from applier.scheduling.forecast import Forecast
    from planner.documents import Document

#: The maximum number of combinations; a longer table would not be readable.
MOST_COMBINATIONS = 200


def expand(texts: Sequence[str]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the keys with several values, and all combinations of settings, the last key fastest.

    Raises InvalidInput for a range that runs backwards and for too many combinations.

    >>> expand(["ordering=slots", "migrate.parallelization=1..3"])[0]
    ['migrate.parallelization']
    >>> expand(["a=1..2", "b=x,y"])[1]
    [('a=1', 'b=x'), ('a=1', 'b=y'), ('a=2', 'b=x'), ('a=2', 'b=y')]
    """
    keys, choices, wrong = [], [], []
    for text in texts:
        key, _, value = text.partition("=")
        found = list(_values(value))
        if not found:
            wrong.append(
                Mistake(f"{value!r} is not a range from low to high", place=f"--set {text}")
            )
        if len(found) > 1:
            keys.append(key)
        choices.append([f"{key}={one}" for one in found])
    number = 1
    for choice in choices:
        number *= len(choice)
    if number > MOST_COMBINATIONS:
        text = (
            f"more than {MOST_COMBINATIONS} combinations: at most {MOST_COMBINATIONS} are accepted"
        )
        wrong.append(Mistake(text, place="--set"))
    if wrong:
        raise InvalidInput(wrong)
    return keys, list(itertools.product(*choices))


def chosen_values(keys: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Return the value of each key in a combination of settings.

    >>> chosen_values(["b"], ["a=1", "b=x"])
    ['x']
    """
    given = dict(setting.split("=", 1) for setting in settings)
    return [given[key] for key in keys]


def _values(text: str) -> Iterator[str]:
    between = re.fullmatch(r"([0-9]{1,6})\.\.([0-9]{1,6})", text)
    if between:
        return map(
            str,
            range(int(between[1]), min(int(between[2]), int(between[1]) + MOST_COMBINATIONS) + 1),
        )
    return iter(text.split(",")) if "," in text and ":" not in text else iter([text])


#: The highest number of rehearsals and the highest seed.
_MOST_REHEARSALS = 100_000


def _times(text: str) -> int:
    number = positive(text)
    if number > _MOST_REHEARSALS:
        raise argparse.ArgumentTypeError(f"{text} is more than {_MOST_REHEARSALS}")
    return number


FAULTS = group(
    "a rehearsal",
    argument(
        "--inject FAULT,...",
        "faults: fail:TARGET[=PERCENT%%], slow:TARGET=FACTORx, hang:TARGET[=PERCENT%%]; "
        "TARGET is an action type, an action, or a resource (node:compute-3, node:*)",
        action="append",
    ),
    argument("--times N", "how many runs (default: 200)", type=_times),
    argument("--seed N", "the same seed meets the same chances (default: 1)", type=_times),
    about="Windows and the health probe are not rehearsed: actions never wait for them.",
)


def has_rehearsal_options(args: argparse.Namespace) -> bool:
    """Return whether the command line has one of the options of a rehearsal."""
    return any(given is not None for given in (args.inject, args.times, args.seed))


def rehearse(
    verb: Verb,
    args: argparse.Namespace,
    keys: Sequence[str],
    values: Sequence[Sequence[str]],
    plans: Sequence[tuple[ActionPlan, int]],
    known: PastDurations,
) -> None:
    """Rehearse each plan with its number of workers, and write the figures.

    ``plans`` has one pair for each of ``values``, which are those of ``keys``.
    """
    from applier.cli.reporters import forecasts
    from applier.operations import rehearsals
    from applier.rehearsal import faults

    settings = rehearsals.Settings(
        faults=tuple(faults.read(",".join(args.inject)) if args.inject else ()),
        times=args.times or rehearsals.TIMES,
        seed=args.seed or 1,
    )
    with forecasts.progress_bar("rehearsing", settings.times * len(plans)) as advance:
        found = [
            rehearsals.rehearsed(
                verb.session,
                plan,
                known,
                settings,
                max_workers=workers,
                advise=not keys,
                progress=advance,
            )
            for plan, workers in plans
        ]
    if args.format != "table":
        written = [rehearsals.as_dict(one) for one in found]
        each = zip(values, written, strict=True)
        tried = [{"set": dict(zip(keys, given, strict=True)), **one} for given, one in each]
        verb.write(rendered({"combinations": tried} if keys else written[0], args.format))
    elif keys:
        rows = list(zip(values, found, strict=True))
        forecasts.compare_rehearsals(keys, rows, verb.app.stdout)
    else:
        forecasts.show_rehearsals(found[0], verb.app.stdout, whole=args.all)


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
    )
    ARGUMENTS: ClassVar[tuple[Add, ...]] = (
        arguments.FILE_OR_PLAN,
        arguments.PLANNER,
        arguments.SET,
        arguments.ALL,
        arguments.PART,
        format_of(),
        FAULTS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.cli.reporters import forecasts
        from applier.operations import predictions
        from applier.run.expected_durations import RECORD

        keys, combinations = expand(parsed_args.set)
        document = None
        if arguments.is_file(parsed_args.file):
            document = arguments.chosen(
                arguments.opened(parsed_args.file), parsed_args, self.session
            )
            document = creation.with_facts(document, self.session)
        else:
            arguments.refuse(parsed_args)
        values = [chosen_values(keys, each) for each in combinations]
        known = predictions.past_durations(self.session)
        plans = [self._planned(parsed_args, document, each) for each in combinations]
        if has_rehearsal_options(parsed_args):
            rehearse(self, parsed_args, keys, values, plans, known)
            return 0
        made = [
            (plan, predictions.predicted(self.session, plan, known.of(plan), workers))
            for plan, workers in plans
        ]
        if keys:
            rows = [(given, one.forecast) for given, (_, one) in zip(values, made, strict=True)]
            self._compare(keys, rows, parsed_args.format)
            if parsed_args.format == "table":
                self.say(predictions.sentence(made[0][1].durations))
            return 0
        (plan, found), workers = made[0], plans[0][1]
        nights = predictions.split_by_window(self.session, plan, found, workers)
        if parsed_args.format == "table":
            forecasts.show_forecast(plan, found.forecast, self.app.stdout, whole=parsed_args.all)
            if found.durations.known_from.get(RECORD):
                self.say(f"If each takes as long as 9 in 10 did: {duration(found.cautious_s)}.")
            self.say(predictions.sentence(found.durations))
            if found.unserved:
                self.say(unserved(found.unserved))
            for line in predictions.window_lines(plan, nights):
                self.say(line)
        else:
            value = predictions.as_dict(plan, found)
            if nights:
                value["nights"] = predictions.windows_as_list(nights)
            self.write(rendered(value, parsed_args.format))
        return 0

    def _planned(
        self, args: argparse.Namespace, document: Document | None, texts: tuple[str, ...]
    ) -> tuple[ActionPlan, int]:
        """Return the plan for these settings, and the number of workers."""
        settings = creation.read_settings(texts)
        if document is None:
            creation.refuse_planning(settings, args.planner)
            plan = arguments.stored_plan(self.session, args.file)
        else:
            plan = creation.planned(self.session, document, settings, args.planner)
        return plan, settings.max_workers or self.session.max_workers

    def _compare(
        self, keys: list[str], rows: Sequence[tuple[Sequence[str], Forecast]], form: str
    ) -> None:
        from applier.cli.reporters import forecasts

        best = min(found.timeline.makespan_s for _, found in rows)
        knee = next(i for i, (_, f) in enumerate(rows) if f.timeline.makespan_s <= 1.05 * best)
        if form == "table":
            forecasts.compare_forecasts(keys, rows, knee, self.app.stdout)
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
        self.write(rendered({"combinations": value}, form))
