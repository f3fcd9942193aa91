# SPDX-License-Identifier: Apache-2.0
"""Reads the faults that a rehearsal injects, and finds the actions that each concerns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from planner.errors import InvalidInput, Mistake, accepted
from planner.model import JOIN, Action


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
