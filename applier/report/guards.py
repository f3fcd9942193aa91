# SPDX-License-Identifier: Apache-2.0
"""The guards of a plan, from its document and the configuration, as lines of a report's head."""

from __future__ import annotations

from collections.abc import Iterator

from applier.assembly import Assembly
from applier.configuration.option_types import shown_probe
from applier.report.values import Fact
from applier.wording import one_line
from planner.blast_radius import Bounds
from planner.model import ActionPlan

_PAUSES = "nothing new starts, and the plan is paused"


def guards(parts: Assembly, plan: ActionPlan) -> Iterator[Fact]:
    """Yield a line for each guard of a plan; none for a plan without guards."""
    demanded, times = parts.guard.demanded(plan), parts.open_times(plan)
    probe = parts.conf.watcher_applier.health_probe
    if demanded.failure_budget:
        budget = ", ".join(demanded.failure_budget)
        yield Fact("Failure budget", f"{budget}; once more actions fail, {_PAUSES}")
    if probe:
        yield Fact("Health probe", f"{one_line(shown_probe(probe))}; if it fails, {_PAUSES}")
    if times is not None:
        yield Fact("Window", f"{times.words}; at other times no action starts")
    if demanded.blast_radius:
        yield Fact("Blast radius", f"at most {_words(demanded.blast_radius)}")
    if demanded.blast_radius_at_once:
        yield Fact("Blast radius at once", f"at most {_words(demanded.blast_radius_at_once)}")
    if demanded.approvals:
        yield Fact("Approvals", f"needs {demanded.by_words}; the history tells who approved it")


def _words(bounds: Bounds) -> str:
    return ", ".join(f"{bound.kind} {bound.words}" for bound in bounds)
