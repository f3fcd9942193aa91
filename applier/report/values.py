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
    """An action that is not done: its number, its name, its state and why."""

    number: int
    name: str
    state: str
    why: str


class ShownDifferences(NamedTuple):
    """The differences from an earlier plan of the same name, ``other``, as lines of text."""

    other: str
    lines: Sequence[str]


class ProgressBar(NamedTuple):
    """How many actions are in each state: state, how many are to the left of it, and how many."""

    total: int
    parts: Sequence[tuple[str, int, int]]
    words: str


class Running(NamedTuple):
    """An action that runs: for how long, and how long it is expected to run on."""

    number: int
    name: str
    since: str
    left: str


class Button(NamedTuple):
    """A button that sends a request: ``verb`` is the end of its path, ``rule`` who may press it.

    ``kind`` is how it looks: primary, danger, or neither. ``why`` says whether a reason is asked
    for: it must be given, may be given, or none. ``state`` is part of a request to settle.
    """

    verb: str
    label: str
    rule: str
    kind: str = ""
    why: str = "may"
    state: str = ""


class Need(NamedTuple):
    """What waits for a person; ``buttons`` are about the action with the uuid, if there is one."""

    text: str
    uuid: str = ""
    buttons: Sequence[Button] = ()


class Work(NamedTuple):
    """What comes first on the page of a plan: how far it is, what runs, what is left, who must act.

    ``running`` and ``left`` are the first ones, without ``more_running`` and ``more_left`` further.
    """

    progress: ProgressBar
    buttons: Sequence[Button]
    needs: Sequence[Need]
    running: Sequence[Running]
    more_running: int
    left: Sequence[Left]
    more_left: int


class Listed(NamedTuple):
    """A plan in the list of plans. ``needs`` is what it waits for, if that is a person."""

    uuid: str
    name: str
    state: str
    mark: str
    progress: ProgressBar
    needs: str
    planner: str
    made: str
    took: str
    creator: str


class StateLink(NamedTuple):
    """A link of the list of plans to those in a state; ``word`` is the class of its badge."""

    word: str
    label: str
    query: str
    is_chosen: bool


class ReportContent(NamedTuple):
    """All that a report shows. ``timeline``, ``graph`` and ``curve`` are elements of SVG.

    ``timeline`` is folded if there are many actions; ``lanes`` is then the whole one, else empty.
    ``rows`` has the first of the ``actions``
    actions. ``differences`` is None if there is no earlier plan of the same name.
    """

    uuid: str
    title: str
    state: str
    mark: str
    summary: str
    about: str
    work: Work
    is_open: bool
    facts: Sequence[Fact]
    warnings: Sequence[str]
    next_steps: Sequence[str]
    timeline: str
    lanes: str
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
