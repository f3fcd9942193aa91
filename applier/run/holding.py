# SPDX-License-Identifier: Apache-2.0
"""Makes what holds the actions of a run back: windows, and a health probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from applier.guarding.open_times import OpenTimes
from applier.guarding.several import Several
from applier.guarding.window_holding import WindowHolding
from applier.run.health_probe import HealthProbe, asked
from applier.run.setup import Pause
from applier.scheduling.holding import Holding
from planner.model import Action


def by_windows(
    times: OpenTimes | None,
    expected_s: Callable[[], Callable[[Action], float]],
    clock: Callable[[], datetime],
    tell: Callable[[str], None],
    *,
    hands_back: bool,
) -> Iterator[Holding]:
    """Yield what holds actions back while windows are closed, if there are windows."""
    if times is not None:
        yield WindowHolding(times, expected_s(), clock, tell=tell, hands_back=hands_back)


def by_probe(probe: str | None, pause: Pause) -> Iterator[Holding]:
    """Yield what holds actions back until a health probe has answered, if there is one."""
    if probe:
        yield HealthProbe(lambda: asked(probe), pause)


def of_all(found: Sequence[Holding]) -> Holding:
    """Return several holdings as one."""
    return found[0] if len(found) == 1 else Several(found)
