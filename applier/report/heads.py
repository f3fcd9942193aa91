# SPDX-License-Identifier: Apache-2.0
"""The head of a report: what the plan is, who made and ran it, when, and what it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from applier.assembly import Assembly
from applier.configuration import plugin_options
from applier.configuration.option_types import shown_probe
from applier.contracts import HistoryEntry
from applier.operations.who_runs import RUNNING
from applier.report.action_rows import names_of_resources
from applier.run.plan_cloud import cloud_of, shown_name
from applier.timeline.waits import Observed
from applier.wording import (
    count,
    duration,
    gains,
    one_line,
    resources,
    result,
    run_options,
    some,
    standing,
)
from planner.guards.blast_radius import Bounds
from planner.plan.guarantees import guarantees
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ActionState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


#: How many resources of a kind are named.
_NAMED = 8
_NOT_KNOWN = "nothing was known of how long some action takes"
_KINDS = (("node", "host"), ("instance", "instance"), ("volume", "volume"))
#: The text for each value of ``on_failure``.
_AFTER_FAILURE = {
    "skip_descendants": "actions that need a failed one do not run; all others do",
    "pause": "the plan is paused",
    "continue": "all actions run in spite of it",
    "only_after_failure": "only then, what comes after the failed one runs",
}


def summary(plan: ActionPlan, found: Observed) -> str:
    """Return sentences: how many actions had which result, and the expected and the actual time.

    >>> from applier.timeline.times import times, NOTHING
    >>> plan = ActionPlan(uuid="p", planner="weight", actions=())
    >>> nothing = times(plan, now=datetime(2026, 1, 2), expected=NOTHING, attempts={})
    >>> summary(plan, Observed(nothing, {}, (), 0.0))
    'Nothing to do: the plan has no actions.'
    """
    actions = [a for a in plan.actions if a.action_type != JOIN]
    if not actions:
        return "Nothing to do: the plan has no actions."
    size = count(len(actions), "action")
    if found.times.began is None:
        return f"{size}, nothing has run. Expected to take {duration(found.whole_s)}."
    runs = [a for a in actions if a.state is ActionState.ONGOING]
    waits = [a for a in actions if a.state is ActionState.PENDING]
    results = Counter(map(result, (a for a in actions if a not in runs and a not in waits)))
    parts = [f"{number} {word}" for word, number in results.items()]
    parts += [f"{len(runs)} running"] if runs else []
    parts += [f"{len(waits)} waiting"] if waits else []
    took = _took(plan, found)
    told = f"Planned {duration(found.whole_s)}, {took}" if found.is_known else took.capitalize()
    return f"{size}: {', '.join(parts)}. {told}."


def _took(plan: ActionPlan, found: Observed) -> str:
    if plan.state not in RUNNING:
        return found.taken
    end_s = max((i.end_s for i in found.times.intervals.values()), default=0.0)
    return f"{found.taken}, expected to end after {duration(end_s)}"


def about(plan: ActionPlan, history: Sequence[HistoryEntry]) -> str:
    """Return the line below the name of a plan: its cloud, its planner, who made it, and when."""
    at = f"made {plan.created_at.astimezone():%Y-%m-%d %H:%M}" if plan.created_at else ""
    made = f"{at}{_by_maker(history)}"
    return " · ".join(filter(None, (f"cloud {shown_name(plan)}", plan.planner, made)))


def _by_maker(history: Sequence[HistoryEntry]) -> str:
    return next((f" by {entry.who}" for entry in history if entry.verb == "create"), "")


def facts(
    parts: Assembly,
    plan: ActionPlan,
    found: Observed,
    history: Sequence[HistoryEntry],
    workers: int,
    store: SqlStore | None,
) -> Iterator[tuple[str, str]]:
    """Yield the lines of the head; ``store`` is None for a plan that is not stored."""
    began, claimant = found.times.began, store.last_claimant(plan.uuid) if store else None
    options = claimant.options if claimant else None
    why = f": {plan.status_message}" if plan.status_message else ""
    yield "State", standing(plan.state, plan.start_at) + why
    yield "Cloud", cloud_of(plan)
    yield "Made", _when(plan.created_at) + _by_maker(history)
    if began is not None:
        by = f" by {claimant.user} on {claimant.host}" if claimant else ""
        yield "First run", _when(began) + by
    if began is not None and found.times.now_s is None:
        ends = [a.ended_at for a in plan.actions if a.ended_at is not None]
        yield "Last end", _when(max(ends, default=None))
    is_planned = found.is_known or began is None
    yield "Planned", duration(found.whole_s) if is_planned else f"not known: {_NOT_KNOWN}"
    if began is not None:
        yield "Taken", _took(plan, found).removeprefix("took ")
    yield "Touches", _touches(plan)
    yield "Limits", _limits(plan, found, workers)
    policy = str(plugin_options.on_failure_of(parts.conf, plan))
    if options and began is not None:
        yield "Run with", run_options(options)
        policy = options.on_failure
    yield "After a failure", _AFTER_FAILURE.get(policy, policy)
    for text in guarantees(plan):
        yield "Guarantee", text
    yield from guards(parts, plan)
    for text in gains(plan):
        yield "Gain", text
    yield "Planner", plan.planner
    yield "Plan", plan.uuid
    yield "Digest", plan.digest


def _when(at: datetime | None) -> str:
    return "not known" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S %z}"


def _touches(plan: ActionPlan) -> str:
    known = names_of_resources(plan)
    parts = [
        f"{count(len(ids), word)} ({some([known.get(one, one) for one in ids], _NAMED, ', ')})"
        for kind, word in _KINDS
        if (ids := resources(plan.actions, kind))
    ]
    return "; ".join(parts) or "no host or instance"


def _limits(plan: ActionPlan, found: Observed, workers: int) -> str:
    """Return the limits, and for a plan that has run how many actions ran at once, too."""
    limits = [f"{token} {number}" for token, number in plan.limits.items()]
    if found.times.began is None:
        return ", ".join([f"at most {workers} actions at once", *limits])
    ran = [found.times.intervals[a.uuid] for a in plan.actions if a.started_at is not None]
    # At one moment, ends come before starts.
    changes = sorted([(one.start_s, 1) for one in ran] + [(one.end_s, -1) for one in ran])
    most = max(accumulate(change for _, change in changes), default=0)
    return ", ".join([f"max_workers {workers}, at most {most} ran at once", *limits])


_PAUSES = "nothing new starts, and the plan is paused"


def guards(parts: Assembly, plan: ActionPlan) -> Iterator[tuple[str, str]]:
    """Yield a line for each guard of a plan; none for a plan without guards."""
    demanded, times = parts.guard.demanded(plan), parts.open_times(plan)
    probe = parts.conf.watcher_applier.health_probe
    if demanded.failure_budget:
        budget = ", ".join(demanded.failure_budget)
        yield "Failure budget", f"{budget}; once more actions fail, {_PAUSES}"
    if probe:
        yield "Health probe", f"{one_line(shown_probe(probe))}; if it fails, {_PAUSES}"
    if times is not None:
        yield "Window", f"{times.words}; at other times no action starts"
    if demanded.blast_radius:
        yield "Blast radius", f"at most {_words(demanded.blast_radius)}"
    if demanded.blast_radius_at_once:
        yield "Blast radius at once", f"at most {_words(demanded.blast_radius_at_once)}"
    if demanded.approvals:
        yield "Approvals", f"needs {demanded.by_words}; the history tells who approved it"


def _words(bounds: Bounds) -> str:
    return ", ".join(f"{bound.kind} {bound.words}" for bound in bounds)
