# SPDX-License-Identifier: Apache-2.0
"""The policy of an action type: retries, time-out, estimate. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from planner.model import Action


@dataclass(frozen=True, kw_only=True, slots=True)
class TypePolicy:
    """The options of ``[watcher_actions.TYPE]`` that every type has.

    Values of an action in the plan (``retries`` above 0, ``timeout_s``, ``estimate_s``) take
    precedence over these.
    """

    retries: int = 0
    retry_delay_s: float = 0.0
    timeout_s: float | None = None
    estimate_s: float | None = None


#: The policy of a type without a section.
NO_POLICY = TypePolicy()


def timeout_s(action: Action, policies: Mapping[str, TypePolicy]) -> float | None:
    """Return the time-out of an action in seconds; None if it has none."""
    if action.timeout_s is not None:
        return action.timeout_s
    return policies.get(action.action_type, NO_POLICY).timeout_s


class Retries:
    """Counts the retries of each action in one run.

    >>> retries = Retries({"nop": TypePolicy(retries=1, retry_delay_s=5)})
    >>> action = Action(uuid="a", action_type="nop")
    >>> retries.next_delay_s(action), retries.next_delay_s(action)
    (5, None)
    """

    def __init__(self, policies: Mapping[str, TypePolicy]) -> None:
        self._policies = policies
        self._used: Counter[str] = Counter()

    def next_delay_s(self, action: Action) -> float | None:
        """Count a retry; return the seconds until it starts, or None if no retry is left."""
        policy = self._policies.get(action.action_type, NO_POLICY)
        if self._used[action.uuid] >= (action.retries or policy.retries):
            return None
        self._used[action.uuid] += 1
        return policy.retry_delay_s
