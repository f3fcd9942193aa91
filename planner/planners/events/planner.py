# SPDX-License-Identifier: Apache-2.0
"""Events planner: plans only the actions that a change can affect, in the order of the events.

Source: Solar, "events propagation"; its three examples are cases in tests/cases/events. Decisions
0030 and 0032 answer the questions that it leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from planner.contract import Options, Planner
from planner.errors import InvalidInput
from planner.plan.model import Action, ActionPlan, Blocker, Trigger
from planner.plan.states import Outcome
from planner.planners.draft import action_of
from planner.planners.events.document import SCHEMA, EventsProblem, Outcomes, read_problem
from planner.planners.events.event_graph import cycle_mistakes, event_graph
from planner.planners.events.unroll import Run, UnbreakableCycles, selected, unroll

_FAILURES = (Outcome.FAILED, Outcome.ERROR)
#: The number of triggering events that the reason of an action names.
_NAMED = 2


class EventsPlanner(Planner[EventsProblem]):
    """Plans the staged actions and all that they may trigger; the outcomes decide which run.

    An order becomes a parent, and an event becomes a trigger. The source of an event is a need as
    well, unless the event is a failure or the fan-in of the target is any. There are two kinds of
    failure: if an event is one of them, the target is blocked by the other. A staged action has no
    triggers. An action that would close a cycle of events runs a second time instead: ``NAME#1``
    after ``NAME#0``.
    """

    NAME = "events"
    KIND = "events"
    SCHEMA = SCHEMA

    def parse(self, document: Mapping[str, Any]) -> EventsProblem:
        return read_problem(document, self.surroundings)

    def plan(self, problem: EventsProblem, options: Options) -> ActionPlan:  # noqa: ARG002
        """Build the event graph, unroll its cycles, and keep the requested part.

        Raises InvalidInput for a cycle without an event that can be cut, and for unknown names in
        the requested part.
        """
        found = event_graph(problem)
        try:
            whole = unroll(found)
        except UnbreakableCycles as error:
            raise InvalidInput(cycle_mistakes(problem, found, error.components)) from None
        runs, left_open = selected(whole, problem.subset)
        uuids = self.surroundings.new_ids(len(runs))
        return self.surroundings.new_plan(
            self.NAME,
            [_action(problem, runs, uuids, i) for i in range(len(runs))],
            name=problem.name,
            warnings=(*problem.warnings, *_without_effect(problem, whole), *left_open),
        )


def _action(problem: EventsProblem, runs: Sequence[Run], uuids: Sequence[str], i: int) -> Action:
    """Make the action of one run: orders become parents, events become triggers and needs."""
    run = runs[i]
    proposed = problem.proposed(run.action)
    unasked = {j: _failures_not_asked_for(outcomes) for j, outcomes in run.events.items()}
    failing = [j for j, failures in unasked.items() if failures != _FAILURES]
    others = [j for j, failures in unasked.items() if failures == _FAILURES]
    any_of = run.action in problem.any_of
    parents, needs, groups = run.after, [] if any_of else others, []
    if run.staged:
        # A staged action has no triggers, but it waits for the actions that would trigger it, and
        # their failures block it.
        parents = sorted({*run.after, *failing, *(others if any_of else ())})
        groups = [others] if any_of and others and not failing else []
    return action_of(
        proposed,
        uuids[i],
        name=run.label,
        reason=_reason(problem, runs, run),
        parents=tuple([uuids[j] for j in parents]),
        needs=tuple([uuids[j] for j in needs]),
        needs_any=tuple([tuple([uuids[j] for j in group]) for group in groups]),
        triggers=()
        if run.staged
        else tuple([Trigger(uuids[j], outcomes) for j, outcomes in run.events.items()]),
        blocked_by=()
        if any_of
        else tuple([Blocker(uuids[j], unasked[j]) for j in failing if unasked[j]]),
    )


@cache
def _failures_not_asked_for(outcomes: Outcomes) -> Outcomes:
    """Return the kinds of failure that are not outcomes of an event.

    >>> _failures_not_asked_for((Outcome.CHANGED, Outcome.FAILED))
    (<Outcome.ERROR: 'error'>,)
    """
    return tuple([failure for failure in _FAILURES if failure not in outcomes])


def _reason(problem: EventsProblem, runs: Sequence[Run], run: Run) -> str:
    if run.staged:
        return "staged" if run.action in problem.staged and not run.repeat else "chosen"
    named = islice(run.events.items(), _NAMED)
    events = [f"{runs[j].label} {_outcome_text(outcomes)}" for j, outcomes in named]
    more = f" +{len(run.events) - _NAMED}" if len(run.events) > _NAMED else ""
    reason = f"on {', '.join(events)}{more}"
    return f"runs again {reason}: that closes a cycle" if run.repeat else reason


@cache
def _outcome_text(outcomes: Outcomes) -> str:
    """Write outcomes as in documents: ``changed`` includes ``created``, which is left out.

    >>> _outcome_text((Outcome.CHANGED, Outcome.OK, Outcome.CREATED))
    'changed|ok'
    """
    implied = Outcome.CREATED if Outcome.CHANGED in outcomes else None
    return "|".join(outcome for outcome in outcomes if outcome is not implied)


def _without_effect(problem: EventsProblem, runs: Sequence[Run]) -> list[str]:
    """Return warnings for parts of the document that have no effect and may be misspelt."""
    targets = {run.action for run in runs if run.events}
    return [
        *(
            f"{name} is staged, but is not defined in 'actions': it does nothing"
            for name in sorted(problem.staged)
            if problem.actions and name not in problem.actions
        ),
        *(
            f"fan_in of {name} has no effect: no event triggers it"
            for name in sorted(problem.any_of - targets - problem.triggerable)
        ),
    ]
