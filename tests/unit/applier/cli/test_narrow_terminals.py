# SPDX-License-Identifier: Apache-2.0
"""However narrow a terminal is, what is written fits, and nothing of it gets lost."""

from __future__ import annotations

import argparse
import io
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from applier.cli import action_views
from applier.cli.program import Program
from applier.cli.reporters import forecasts, plan_table, recap
from applier.cli.reporters.table import RowTable
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.forecast import forecast
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

from .test_column_widths import Terminal, written

WORDS = st.text("abc -/ノ", min_size=1, max_size=60)


def check_fit(write: Callable[[Terminal], object], *widths: int) -> None:
    """Assert that a writer keeps to each of some widths, and writes the same in all."""
    wide = letters(written(100, write))
    for columns in widths:
        lines = written(columns, write)
        assert max(map(cell_len, lines)) <= columns
        assert letters(lines) == wide


def letters(lines: list[str]) -> Counter[str]:
    """Count what stands in lines, wherever they were broken."""
    return Counter("".join("".join(lines).split())) - Counter({"─": 10**6})


def rows(*given_rows: tuple[object, ...]) -> Callable[[Terminal], object]:
    """Write rows as list verbs do."""
    names = [f"column {i}" for i in range(len(given_rows[0]))]
    return lambda stream: RowTable().emit_list(names, given_rows, stream, argparse.Namespace())


def a_plan(name: str = "move-web-1", state: ActionState = ActionState.PENDING) -> ActionPlan:
    """Make a plan of one action with words to fold."""
    action = Action(
        uuid="a" * 36,
        name=name,
        action_type="migrate",
        description="move web-1 from compute-1 to compute-3",
        reason="weight 30, set 1 of 3",
        tokens=("node:1",),
        state=state,
    )
    other = Action(uuid="b" * 36, name="close-compute-1", action_type="nop", parents=(action.uuid,))
    return ActionPlan(
        uuid="12345678-9", planner="weight", actions=(action, other), state=PlanState.PENDING
    )


def test_a_plan_keeps_every_word() -> None:
    for name in ("move-web-1", "switch-off-compute-1", "batch-1/terminate-" * 3):
        made = a_plan(name)
        check_fit(partial(plan_table.show, made), 30, 40, 60, 72, 79, 80, 81, 99)


@given(
    st.lists(st.tuples(WORDS, WORDS, WORDS, st.integers(0, 9), WORDS), min_size=1, max_size=3),
    st.integers(30, 100),
)
def test_no_table_of_rows_is_cut_off(given_rows, columns) -> None:
    lines = written(columns, rows(*given_rows))
    assert max(map(cell_len, lines)) <= columns
    told = "".join(str(cell) for row in given_rows for cell in row)
    head = "".join(f"column {i}" for i in range(5))
    assert letters(lines) == letters([told, head])


def test_a_bar_stands_in_one_line() -> None:
    made = a_plan("batch-1/terminate-" * 4)
    takes = dict.fromkeys((a.uuid for a in made.actions), 5.0)
    found = forecast(made.actions, takes, Concurrency(limits={}, max_workers=2))
    for columns in (50, 60, 80):
        lines = written(columns, partial(forecasts.show_forecast, made, found))
        bars = re.findall("##+", "\n".join(lines))
        assert bars == ["#" * (columns // 5)] * 2
        assert max(map(cell_len, lines)) <= columns


@pytest.mark.parametrize(("actions", "told"), [(61, "the first 60 critical"), (60, "")])
def test_what_is_left_out_of_a_forecast_is_told(actions, told) -> None:
    names = [f"a{i}" for i in range(actions)]
    chain = tuple(
        Action(uuid=name, action_type="nop", parents=(before,) if before else ())
        for name, before in zip(names, [None, *names], strict=False)
    )
    made = ActionPlan(uuid="12345678-9", planner="weight", actions=chain)
    found = forecast(chain, dict.fromkeys(names, 1.0), Concurrency(limits={}, max_workers=2))
    out = io.StringIO()
    forecasts.show_forecast(made, found, out)
    assert (f"only {told} ones" in out.getvalue()) is bool(told)


def test_the_nodes_of_a_deployment_fit() -> None:
    states = [ActionState.SUCCEEDED, ActionState.FAILED, ActionState.FAILED_DEPENDENCIES]
    states += [ActionState.CANCELLED, ActionState.SKIPPED, ActionState.UNKNOWN]
    actions = tuple(
        Action(uuid=f"{k}/a", name=f"{k}/a", action_type="nop", tokens=(f"node:{k}",), state=state)
        for k, state in enumerate(states)
    )
    made = ActionPlan(
        uuid="12345678-9", planner="deployment", actions=actions, state=PlanState.FAILED
    )
    check_fit(partial(recap.show_nodes, made), 40, 60, 80)


def test_an_action_is_told_in_the_width_that_there_is() -> None:
    made = a_plan(state=ActionState.SUCCEEDED)
    lines = list(action_views.described(made, made.actions[1], [], 50))
    assert max(map(len, lines)) <= 50


VERBS = (
    "service list",
    "event list",
    "event subscription list",
    "planner show weight",
    "action type show shell",
    "--help",
)


@pytest.mark.usefixtures("run")
def test_what_a_verb_writes_fits() -> None:
    for words, columns in product(VERBS, (80, 100, 120, 200)):

        def write(stream: Terminal, words: str = words) -> None:
            Program(stdout=stream, stderr=io.StringIO()).run(words.split())

        lines = written(columns, write)
        assert lines
        assert max(map(cell_len, lines)) <= columns, words
