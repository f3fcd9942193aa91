# SPDX-License-Identifier: Apache-2.0
"""Creates the holdings of a run, which keep its actions waiting: windows, and a health probe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from applier.guarding.combined_holding import CombinedHolding
from applier.guarding.node_work import NodeWork
from applier.guarding.open_times import OpenTimes
from applier.guarding.window_holding import WindowHolding
from applier.run.durations import CAUTIOUS, PastDurations, estimates
from applier.run.health_probe import HealthProbe, asked
from applier.run.setup import Pause
from applier.scheduling.holding import Holding
from applier.scheduling.verdict import TypePolicy
from applier.store.samples import Sample
from planner.model import Action


def node_work(
    actions: Iterable[Action],
    look_up: Callable[[Sequence[str]], Mapping[str, Sequence[Sample]]],
    policies: Mapping[str, TypePolicy],
) -> NodeWork:
    """Return how long windows must be open for actions, by the durations of earlier runs."""
    past = PastDurations(look_up, estimates(policies))
    return NodeWork(actions, lambda action: past.expected(action, CAUTIOUS))


def by_windows(
    times: OpenTimes | None,
    work: Callable[[], NodeWork],
    clock: Callable[[], datetime],
    tell: Callable[[str], None],
    *,
    hands_back: bool,
) -> Iterator[Holding]:
    """Yield a holding that keeps actions waiting while windows are closed; none without windows.

    ``work`` is called only if there are windows.
    """
    if times is not None:
        yield WindowHolding(times, work(), clock, tell=tell, hands_back=hands_back)


def by_probe(probe: str | None, pause: Pause) -> Iterator[Holding]:
    """Yield a holding that keeps actions waiting until a health probe succeeds, if there is one.

    ``probe`` is a URL or a command line.
    """
    if probe:
        yield HealthProbe(lambda: asked(probe), pause)


def of_all(found: Sequence[Holding]) -> Holding:
    """Combine one or more holdings into one; with several, an action waits if any of them holds."""
    return found[0] if len(found) == 1 else CombinedHolding(found)
