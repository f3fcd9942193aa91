# SPDX-License-Identifier: Apache-2.0
"""The faults that a rehearsal injects, and how and after how long each attempt ends with them."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from applier.scheduling.failures import TypePolicy, timeout_s
from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState, Outcome


class FaultKind(StrEnum):
    """What a fault does to an attempt of an action."""

    #: The attempt fails at its end.
    FAIL = "fail"
    #: The attempt takes longer.
    SLOW = "slow"
    #: The attempt does not end by itself.
    HANG = "hang"


class Fault(NamedTuple):
    """A fault: its kind, the actions that it concerns, and its chance or factor.

    ``target`` is an action type, the name of an action, or a resource such as ``node:compute-3``;
    ``node:*`` means each node by itself. ``chance`` is from 0 to 1. A fault of a resource is drawn
    once for each run and resource, any other once for each attempt. ``factor`` is how many times as
    long an attempt takes.
    """

    kind: FaultKind
    target: str
    chance: float = 1.0
    factor: float = 1.0

    def __str__(self) -> str:
        amount = f"={self.factor:g}x" if self.kind is FaultKind.SLOW else ""
        if self.kind is not FaultKind.SLOW and self.chance < 1:
            amount = f"={self.chance * 100:g}%"
        return f"{self.kind}:{self.target}{amount}"


class Concerned(NamedTuple):
    """A fault that concerns an action, by the resource or, if that is None, by type or name."""

    fault: Fault
    resource: str | None = None


_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
_TIMES = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)x")
_FORM = "fail:TARGET[=PERCENT%], slow:TARGET=FACTORx or hang:TARGET[=PERCENT%]"


def read(text: str) -> list[Fault]:
    """Read faults, separated by commas; raises InvalidInput with every mistake.

    >>> [str(fault) for fault in read("fail:migrate=5%,slow:node:compute-3=3x,hang:db-1")]
    ['fail:migrate=5%', 'slow:node:compute-3=3x', 'hang:db-1']
    """
    found: list[Fault] = []
    mistakes: list[Mistake] = []
    for part in text.split(","):
        try:
            found.append(_fault(part.strip()))
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=f"--inject {part}".strip()))
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def _fault(text: str) -> Fault:
    kind, _, rest = text.partition(":")
    if kind not in set(FaultKind):
        raise ValueError(f"{kind!r} is no fault: accepted is {_FORM}")
    target, equals, amount = rest.rpartition("=")
    if not equals:
        target, amount = rest, ""
    if not target:
        raise ValueError(f"it names no action: accepted is {_FORM}")
    if kind == FaultKind.SLOW:
        times = _TIMES.fullmatch(amount)
        if not times or float(times[1]) < 1:
            raise ValueError(f"{amount!r} is not a factor of 1 or more such as 3x")
        return Fault(FaultKind.SLOW, target, factor=float(times[1]))
    percent = _PERCENT.fullmatch(amount)
    if equals and (not percent or not 0 < float(percent[1]) <= 100):
        raise ValueError(f"{amount!r} is not a percentage above 0 and up to 100 such as 5%")
    return Fault(FaultKind(kind), target, chance=float(percent[1]) / 100 if percent else 1.0)


def concerned(
    faults: Sequence[Fault], actions: Sequence[Action]
) -> Mapping[str, Sequence[Concerned]]:
    """Return the faults that concern each action, by uuid.

    A target is an action type of the plan, else a name in it, else a resource that actions hold.
    Raises InvalidInput for targets that the plan does not have.
    """
    working = [a for a in actions if a.action_type != JOIN]
    types = {a.action_type for a in working}
    names = {a.label for a in working}
    resources = {t for a in working for t in a.tokens if not t.startswith("type:")}
    kinds = {f"{token.partition(':')[0]}:*" for token in resources}
    found: defaultdict[str, list[Concerned]] = defaultdict(list)
    mistakes = []
    for fault in faults:
        target = fault.target
        if target not in types and target not in names and target not in resources | kinds:
            known = sorted({*types, *names, *resources, *kinds})
            text = f"the plan has no {target!r}; {accepted(target, known)}"
            mistakes.append(Mistake(text, place=f"--inject {fault}"))
            continue
        for action in working:
            found[action.uuid] += _matches(fault, action, by_name=target not in types)
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def _matches(fault: Fault, action: Action, *, by_name: bool) -> list[Concerned]:
    if fault.target == (action.label if by_name else action.action_type):
        return [Concerned(fault)]
    kind, _, name = fault.target.partition(":")
    return [
        Concerned(fault, token)
        for token in action.tokens
        if token == fault.target or (name == "*" and token.startswith(f"{kind}:"))
    ]


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


def chance(*words: object) -> float:
    """Return a number from 0 to below 1, evenly distributed, the same for the same words.

    >>> chance(1, "a") == chance(1, "a"), chance(1, "a") == chance(2, "a")
    (True, False)
    """
    text = "\0".join(map(str, words)).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48
