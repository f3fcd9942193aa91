# SPDX-License-Identifier: Apache-2.0
"""The content of a report, as its templates use it. Texts are not escaped, except in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Fact(NamedTuple):
    """A line of the head of a report."""

    name: str
    value: str


class Tried(NamedTuple):
    """An ended attempt of an action.

    ``worker`` is the worker on another machine that carried it out; empty if the applier did.
    ``is_cut`` is true if the output is only the end of the whole one.
    """

    number: int
    state: str
    began: str
    took: str
    message: str
    output: str
    worker: str
    is_cut: bool


class Row(NamedTuple):
    """An action in the table.

    Columns of times are sorted by ``start_s``, ``took_s`` and ``slack_s``, which are None if not
    known. ``about`` is the description of the action, ``reason`` the planner's reason for its place
    in the plan. ``waits`` has a text for each time in which it waited.
    """

    number: int
    uuid: str
    name: str
    action_type: str
    where: str
    state: str
    mark: str
    start: str
    start_s: float | None
    took: str
    took_s: float | None
    slack: str
    slack_s: float | None
    tries: int
    is_critical: bool
    about: str
    reason: str
    message: str
    waits: Sequence[str]
    attempts: Sequence[Tried]


class Slow(NamedTuple):
    """One of the slowest actions."""

    name: str
    action_type: str
    planned: str
    took: str
    slack: str
    is_critical: bool


class TypeTimes(NamedTuple):
    """The planned and the taken time of all actions of a type.

    ``error`` is the difference in percent of the planned time, or "-" if that is 0.
    """

    action_type: str
    actions: int
    planned: str
    taken: str
    error: str


class HistoryLine(NamedTuple):
    """A line of the history."""

    at: str
    what: str
    action: str
    who: str
    why: str


class CurvePoint(NamedTuple):
    """A point of the what-if curve: a number of workers, and the makespan with it."""

    workers: int
    seconds: float
    took: str
    is_now: bool
    is_knee: bool


class Left(NamedTuple):
    """An action that is not done: its name, its state and why."""

    name: str
    state: str
    why: str


class ShownDifferences(NamedTuple):
    """The differences from an earlier plan of the same name, ``other``, as lines of text."""

    other: str
    lines: Sequence[str]


class Listed(NamedTuple):
    """A plan in the list of plans: ``ended`` of ``total`` actions have ended, ``bad`` not well."""

    uuid: str
    name: str
    state: str
    mark: str
    total: int
    ended: int
    bad: int
    made: str
    creator: str


class ReportContent(NamedTuple):
    """All that a report shows. ``timeline``, ``graph`` and ``curve`` are elements of SVG.

    ``graph`` is empty if the picture would be too large. ``rows`` has the first of the ``actions``
    actions, ``left`` the first unfinished ones, without ``more_left`` further ones.
    ``differences`` is None if there is no earlier plan of the same name.
    """

    uuid: str
    title: str
    state: str
    mark: str
    summary: str
    is_open: bool
    facts: Sequence[Fact]
    warnings: Sequence[str]
    left: Sequence[Left]
    more_left: int
    next_steps: Sequence[str]
    timeline: str
    graph: str
    rows: Sequence[Row]
    actions: int
    points: Sequence[CurvePoint]
    curve: str
    slack: str
    slowest: Sequence[Slow]
    types: Sequence[TypeTimes]
    differences: ShownDifferences | None
    approvals: Sequence[str]
    history: Sequence[HistoryLine]
    durations: str
    input: str
    configuration: str
    made: str
