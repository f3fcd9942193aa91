# SPDX-License-Identifier: Apache-2.0
"""The part of ``actionplan simulate`` that rehearses a run many times with injected faults."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from applier.cli import plan_files, set_ranges
from applier.cli.arguments import positive
from applier.cli.verb import Verb

if TYPE_CHECKING:
    from applier.run.durations import PastDurations
    from planner.model import ActionPlan

#: The highest number of rehearsals and the highest seed.
_MOST = 100_000


def add_faults(parser: argparse.ArgumentParser) -> None:
    """Add the options of a rehearsal."""
    group = parser.add_argument_group(
        "a rehearsal",
        "Windows and the health probe are not rehearsed: actions never wait for them.",
    )
    group.add_argument(
        "--inject",
        metavar="FAULT,...",
        action="append",
        help="faults: fail:TARGET[=PERCENT%%], slow:TARGET=FACTORx, hang:TARGET[=PERCENT%%]; "
        "TARGET is an action type, an action, or a resource (node:compute-3, node:*)",
    )
    group.add_argument("--times", metavar="N", type=_times, help="how many runs (default: 200)")
    group.add_argument(
        "--seed", metavar="N", type=_times, help="the same seed meets the same chances (default: 1)"
    )


def has_rehearsal_options(args: argparse.Namespace) -> bool:
    """Return whether the command line has one of the options of a rehearsal."""
    return any(given is not None for given in (args.inject, args.times, args.seed))


def rehearse(
    verb: Verb,
    args: argparse.Namespace,
    keys: Sequence[str],
    combinations: Sequence[tuple[str, ...]],
    plans: Sequence[tuple[ActionPlan, int]],
    known: PastDurations,
) -> None:
    """Rehearse each plan with its number of workers, and write the figures.

    ``plans`` has one pair for each of ``combinations``. Without ``keys``, there is only one.
    """
    from applier.cli.reporters import rehearsal_table
    from applier.cli.reporters.progress_bar import progress_bar
    from applier.operations import rehearsals
    from applier.rehearsal import faults

    settings = rehearsals.Settings(
        faults=tuple(faults.read(",".join(args.inject)) if args.inject else ()),
        times=args.times or rehearsals.TIMES,
        seed=args.seed or 1,
    )
    with progress_bar("rehearsing", settings.times * len(plans)) as advance:
        found = [
            replace(
                rehearsals.rehearsed(
                    verb.session,
                    plan,
                    known,
                    settings,
                    max_workers=workers,
                    on_failure=verb.session.conf.watcher_applier.on_failure,
                    failure_budget=verb.session.assembly.guard.demanded(plan).failure_budget,
                    advise=not keys,
                    progress=advance,
                ),
                not_rehearsed=rehearsals.left_out(verb.session.assembly, plan),
            )
            for plan, workers in plans
        ]
    if args.format != "table":
        written = [rehearsals.as_dict(one) for one in found]
        value = {"combinations": _with_keys(keys, combinations, written)} if keys else written[0]
        verb.app.stdout.write(plan_files.rendered(value, args.format))
    elif keys:
        rows = [
            (set_ranges.values(keys, each), one)
            for each, one in zip(combinations, found, strict=True)
        ]
        rehearsal_table.compare(keys, rows, verb.app.stdout)
    else:
        rehearsal_table.show(found[0], verb.app.stdout, whole=args.all)


def _with_keys(
    keys: Sequence[str], combinations: Sequence[tuple[str, ...]], written: list[dict[str, object]]
) -> list[dict[str, object]]:
    return [
        {"set": dict(zip(keys, set_ranges.values(keys, each), strict=True)), **one}
        for each, one in zip(combinations, written, strict=True)
    ]


def _times(text: str) -> int:
    number = positive(text)
    if number > _MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than {_MOST}")
    return number
