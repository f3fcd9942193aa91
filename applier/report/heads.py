# SPDX-License-Identifier: Apache-2.0
"""The head of a report: what the plan is, who made and ran it, when, and what it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from applier.assembly import Assembly
from applier.contracts import HistoryEntry
from applier.operations.timelines import Observed
from applier.report.action_rows import names_of_resources
from applier.report.guards import guards
from applier.report.values import Fact
from applier.run.plan_cloud import cloud_of
from applier.store import Store
from applier.timeline import words
from applier.wording import count, duration, gains, resources, result, some, standing
from planner.guarantees import guarantees
from planner.model import JOIN, ActionPlan
from planner.states import ActionState

#: How many resources of a kind are named.
_NAMED = 8
_NOT_KNOWN = "nothing was known of how long some action takes"
_KINDS = (("node", "host"), ("instance", "instance"), ("volume", "volume"))
#: The text for each value of ``on_failure``.
_AFTER_FAILURE = {
    "skip_descendants": "actions that need a failed one do not run; all others do",
    "pause": "the plan is paused",
    "continue": "all actions run in spite of it",
}


def summary(plan: ActionPlan, found: Observed) -> str:
    """Return the number of actions by result, and the expected and the taken time, as sentences.

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
    times = found.times
    if times.began is None:
        return ""
    end_s = max((i.end_s for i in times.intervals.values()), default=0.0)
    text = words.taken(plan, times.began, times.now_s, end_s)
    if times.now_s is not None and plan.state not in words.STILL:
        return f"{text}, expected to end after {duration(end_s)}"
    return text


def facts(
    parts: Assembly,
    plan: ActionPlan,
    found: Observed,
    history: Sequence[HistoryEntry],
    workers: int,
    store: Store | None,
) -> Iterator[Fact]:
    """Yield the lines of the head; ``store`` is None for a plan that is not stored."""
    began = found.times.began
    yield Fact(
        "State",
        standing(plan.state, plan.start_at)
        + (f": {plan.status_message}" if plan.status_message else ""),
    )
    yield Fact("Cloud", cloud_of(plan))
    made = next((entry for entry in history if entry.verb == "create"), None)
    yield Fact("Made", _when(plan.created_at) + (f" by {made.who}" if made else ""))
    if began is not None:
        claimant = store.last_claimant(plan.uuid) if store else None
        by = f" by {claimant.user} on {claimant.host}" if claimant else ""
        yield Fact("First run", _when(began) + by)
    if began is not None and found.times.now_s is None:
        ends = [a.ended_at for a in plan.actions if a.ended_at is not None]
        yield Fact("Last end", _when(max(ends, default=None)))
    is_planned = found.is_known or began is None
    yield Fact("Planned", duration(found.whole_s) if is_planned else f"not known: {_NOT_KNOWN}")
    if began is not None:
        yield Fact("Taken", _took(plan, found).removeprefix("took "))
    yield Fact("Touches", _touches(plan))
    yield Fact("Limits", _limits(plan, workers))
    policy = plan.on_failure or parts.conf.watcher_applier.on_failure
    yield Fact("After a failure", _AFTER_FAILURE.get(policy, policy))
    for text in guarantees(plan):
        yield Fact("Guarantee", text)
    yield from guards(parts, plan)
    for text in gains(plan):
        yield Fact("Gain", text)
    yield Fact("Planner", plan.planner)
    yield Fact("Plan", plan.uuid)
    yield Fact("Digest", plan.digest)


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


def _limits(plan: ActionPlan, workers: int) -> str:
    limits = [f"{token} {number}" for token, number in plan.limits.items()]
    return ", ".join([f"at most {workers} actions at once", *limits])
