# SPDX-License-Identifier: Apache-2.0
"""Decides how each attempt of an action ends in a rehearsal, and how long it takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from applier.rehearsal.chances import chance
from applier.rehearsal.faults import Concerned, FaultKind
from applier.scheduling.verdict import TypePolicy, timeout_s
from planner.model import Action
from planner.states import ActionState, Outcome


class AttemptEnd(NamedTuple):
    """How an attempt ends, and after how many seconds: infinite if it does not end."""

    seconds: float
    state: ActionState
    outcome: Outcome | None


#: Returns the duration of an action for a number from 0 to below 1.
Drawn = Callable[[Action, float], float]


class Attempts:
    """Draws the ends of attempts.

    ``faults`` are those of each action by uuid. An attempt that takes longer than its time-out is
    stopped then: it is FAILED if its type is one of ``verified``, whose plugins can verify whether
    the work was done, else UNKNOWN. Without a time-out, an attempt that hangs never ends.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        drawn: Drawn,
        *,
        faults: Mapping[str, Sequence[Concerned]],
        policies: Mapping[str, TypePolicy],
        verified: Collection[str],
        seed: int,
    ) -> None:
        self._drawn, self._faults, self._seed = drawn, faults, seed
        self._verified = verified
        self._limits = {a.uuid: timeout_s(a, policies) for a in actions}
        self._keys: dict[str, str] = {}
        #: Actions are drawn by type and name, because uuids differ in two plans of one document.
        seen = Counter[str]()
        for action in actions:
            name = f"{action.action_type} {action.label if action.name else action.resource_id}"
            self._keys[action.uuid] = f"{name} {seen[name]}"
            seen[name] += 1

    def end(self, run: int, action: Action, attempt: int) -> AttemptEnd:
        """Return the end of an attempt; runs and attempts count from 1."""
        key = self._keys[action.uuid]
        seconds = self._drawn(action, chance(self._seed, run, key, attempt, "seconds"))
        state, outcome = ActionState.SUCCEEDED, Outcome.CHANGED
        for fault, resource in self._faults.get(action.uuid, ()):
            which = (resource,) if resource is not None else (key, attempt)
            if chance(self._seed, run, fault, *which) >= fault.chance:
                continue
            if fault.kind is FaultKind.SLOW:
                seconds *= fault.factor
            elif fault.kind is FaultKind.HANG:
                seconds = math.inf
            else:
                state, outcome = ActionState.FAILED, Outcome.FAILED
        limit = self._limits[action.uuid]
        if limit is not None and seconds > limit:
            if action.action_type in self._verified:
                return AttemptEnd(limit, ActionState.FAILED, Outcome.ERROR)
            return AttemptEnd(limit, ActionState.UNKNOWN, None)
        return AttemptEnd(seconds, state, outcome)
