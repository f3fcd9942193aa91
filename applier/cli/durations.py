"""How long the actions of a plan are taken to need, and how that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from applier.cli.reporters.words import count
from applier.cli.session import Session
from applier.scheduling.forecast import Forecast, forecast
from applier.tasks import workerless
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN

#: What is taken of an action of which nothing is known.
OTHERWISE_S = 1.0
ESTIMATE, RECORD, NOTHING = "estimate", "record", "nothing"


@dataclass(frozen=True)
class Durations:
    """Seconds by uuid, and of how many of the actions that are left they are known from what."""

    seconds: Mapping[str, float]
    known_from: Mapping[str, int]

    def sentence(self) -> str:
        """Say where the durations come from.

        >>> Durations({}, {"estimate": 2, "nothing": 1}).sentence()
        'Durations: 2 actions from the plan, 1 action taken for 1 s each.'
        """
        words = {
            ESTIMATE: "from the plan",
            RECORD: "from earlier runs (median of the type)",
            NOTHING: f"taken for {OTHERWISE_S:g} s each",
        }
        parts = [
            f"{count(self.known_from[source], 'action')} {text}"
            for source, text in words.items()
            if self.known_from.get(source)
        ]
        return f"Durations: {', '.join(parts) or 'nothing is left to do'}."


class History:
    """Knows what earlier runs on the record took; asks for each action type once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._medians: dict[str, float | None] = {}

    def of(self, plan: ActionPlan, *, recorded: bool = True) -> Durations:
        """Give how long each action takes: its estimate, else the median of its type's runs.

        The record is opened only if an estimate is missing, and not at all unless ``recorded``.
        """
        left = [a for a in plan.actions if a.state in OPEN and a.action_type != JOIN]
        if recorded:
            self._look_up({a.action_type for a in left if a.estimate_s is None})
        seconds: dict[str, float] = dict.fromkeys((a.uuid for a in plan.actions), 0.0)
        known_from: Counter[str] = Counter()
        for action in left:
            seconds[action.uuid], source = self._one(action)
            known_from[source] += 1
        return Durations(seconds, known_from)

    def _one(self, action: Action) -> tuple[float, str]:
        if action.estimate_s is not None:
            return action.estimate_s, ESTIMATE
        found = self._medians.get(action.action_type)
        return (OTHERWISE_S, NOTHING) if found is None else (found, RECORD)

    def _look_up(self, names: Iterable[str]) -> None:
        new = sorted(set(names) - set(self._medians))
        found = self._session.store.durations(new) if new else {}
        self._medians |= {name: median(found[name]) if found.get(name) else None for name in new}


def predicted(
    session: Session, plan: ActionPlan, durations: Durations, max_workers: int
) -> Forecast:
    """Forecast what is left of a plan as whoever runs it would schedule it."""
    return forecast(
        plan.actions,
        durations.seconds,
        limits=plan.limits,
        max_workers=max_workers,
        workerless=_workerless(session, plan),
    )


def _workerless(session: Session, plan: ActionPlan) -> set[str]:
    # A plan may name types that no plugin here offers.
    names = {a.action_type for a in plan.actions} & set(session.action_types)
    return workerless(plan.actions, {name: session.plugins[name] for name in names})
