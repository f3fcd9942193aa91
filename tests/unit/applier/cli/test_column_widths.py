# SPDX-License-Identifier: Apache-2.0
"""Tables break no word of a name or a type, unless nothing else makes them fit."""

from __future__ import annotations

import argparse
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from applier.cli.reporters import forecasts, formatting, plan_table, recap
from applier.cli.reporters.table import RowTable
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.forecast import forecast
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

WIDTHS = [80, 100, 120, 200]
WORD = st.text("abcdefgh1234", min_size=1, max_size=12)
#: Names as people give them: words with hyphens or slashes between them.
NAMES = st.lists(WORD, min_size=1, max_size=4).map("-".join)
TYPES = st.sampled_from(
    ["nop", "migrate", "change_nova_service_state", "turn_host_to_acpi_s3_state"]
)
SENTENCES = st.lists(WORD, min_size=1, max_size=20).map(" ".join)


class Terminal(io.StringIO):
    """What is written to a terminal of some width."""

    def isatty(self) -> bool:
        return True


def written(columns: int, write) -> list[str]:
    """Return what is written to a terminal, without colours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("TERM", "xterm")
        stream = Terminal()
        write(stream)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


def rows(*given_rows):
    names = ["name", "type", "state", "message"]
    return lambda stream: RowTable().emit_list(names, given_rows, stream, argparse.Namespace())


def a_plan(names, types, reasons, state=ActionState.PENDING) -> ActionPlan:
    actions = tuple(
        Action(
            uuid=f"{i}",
            name=f"{name}-{i}",
            action_type=kind,
            reason=reason,
            state=state,
            tokens=(f"node:{name}",),
            parents=(f"{i - 1}",) if i else (),
            needs=(f"{i - 1}",) if i else (),
        )
        for i, (name, kind, reason) in enumerate(zip(names, types, reasons, strict=True))
    )
    return ActionPlan(uuid="1234567890", planner="weight", actions=actions, state=PlanState.PENDING)


def is_kept(word: str, lines: list[str]) -> bool:
    """Return whether a word stands in one line, or is broken after hyphens only."""
    if any(word in line for line in lines):
        return True
    words = {part for line in lines for part in line.split()}
    return _is_made_of(word, words)


def _is_made_of(word: str, words: set[str]) -> bool:
    pieces = (word[:i] for i in range(1, len(word) + 1) if word[i - 1] == "-" or i == len(word))
    return any(
        piece in words and (piece == word or _is_made_of(word[len(piece) :], words))
        for piece in pieces
    )


@given(st.lists(st.tuples(NAMES, TYPES, st.just("FAILED"), SENTENCES), min_size=1, max_size=4))
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_list_breaks_a_word(columns, given_rows) -> None:
    lines = written(columns, rows(*given_rows))
    assert max(map(cell_len, lines)) <= columns
    for row in given_rows:
        for text in row:
            assert all(is_kept(word, lines) for word in text.split()), (text, lines)


@given(st.lists(st.tuples(NAMES, TYPES, SENTENCES), min_size=1, max_size=4))
@settings(max_examples=25)
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_table_of_a_plan_breaks_a_word(columns, given_actions) -> None:
    names, types, reasons = zip(*given_actions, strict=True)
    made = a_plan(names, types, reasons)
    ended = a_plan(names, types, reasons, ActionState.SUCCEEDED)
    takes = dict.fromkeys((a.uuid for a in made.actions), 5.0)
    found = forecast(made.actions, takes, Concurrency(limits={}, max_workers=2))
    labels = {action.label for action in made.actions}
    for words, write in (
        (labels, lambda stream: plan_table.show(made, stream)),
        (labels, lambda stream: plan_table.show(ended, stream)),
        ({*types, *names}, lambda stream: recap.show(ended, 1.0, stream)),
        (labels, lambda stream: forecasts.show_forecast(made, found, stream)),
    ):
        lines = written(columns, write)
        assert max(map(cell_len, lines)) <= columns
        assert all(is_kept(word, lines) for word in words), (words, lines)


@given(st.lists(st.lists(SENTENCES, min_size=1, max_size=3), min_size=1, max_size=6))
@pytest.mark.parametrize("columns", WIDTHS)
def test_a_word_is_broken_only_if_the_table_does_not_fit_otherwise(columns, texts) -> None:
    extents = [formatting.extent(column) for column in texts]
    found = formatting.widths(extents, columns)
    assert sum(found) <= columns
    if sum(extent.wanted for extent in extents) <= columns:
        assert found == [extent.wanted for extent in extents]
    elif sum(extent.least[0] for extent in extents) <= columns:
        assert all(w >= e.least[0] for w, e in zip(found, extents, strict=True))
        assert sum(found) == columns


@given(st.text("abc-_ ノ", max_size=80), st.integers(2, 30))
def test_broken_lines_fit_and_nothing_is_lost(text, width) -> None:
    lines = [text[begin:end] for begin, end in formatting.lines(text, width)]
    assert max(map(cell_len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_table_uses_the_width_of_the_terminal() -> None:
    sentence = "one word " * 60
    for columns in WIDTHS:
        lines = written(columns, rows(("a", "nop", "FAILED", sentence)))
        assert columns - len("word ") <= max(map(cell_len, lines)) <= columns
