# SPDX-License-Identifier: Apache-2.0
"""``list`` shows the newest plans, and says how many it leaves out."""

from __future__ import annotations

import argparse
import io
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_plans import MADE, new_plan

from applier.cli.reporters.table import RowTable
from applier.contracts import HistoryEntry
from applier.storage.sql_store import SqlStore

from .conftest import Run
from .test_column_widths import written

CELLS = st.text("ab -/é日\t", max_size=40) | st.integers(0, 10**6)
ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=4)
)


@pytest.fixture
def kept(store: SqlStore) -> list[str]:
    """Keep 27 plans; gives their names, newest first."""
    names = [f"plan-{number:02}" for number in range(27)]
    for name in names:
        store.save_plan(new_plan("a", name=name))
    return names[::-1]


def rows(out: str) -> list[str]:
    return [line.split()[1] for line in out.splitlines()[2:] if "plan-" in line]


def test_the_newest_25_are_listed_and_the_rest_counted(run: Run, kept: list[str]) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert rows(out) == kept[:25]
    assert out.splitlines()[-1].startswith("2 older plans ")
    assert out.endswith(": actionplan list --all\n")


def test_who_made_a_plan_is_shown_and_filtered_by(run: Run, store: SqlStore) -> None:
    for who, made in (("ada", MADE), ("bob", MADE + timedelta(days=1))):
        entry = HistoryEntry(verb="create", who=who, at=MADE)
        store.save_plan(new_plan("a", name=f"plan-of-{who}", created_at=made), history=entry)
    listed = json.loads(run("list", "-f", "json")[1])
    assert [plan["creator"] for plan in listed] == ["bob", "ada"]
    assert rows(run("list", "--creator", "ada")[1]) == ["plan-of-ada"]
    assert rows(run("list", "--planner", "weight", "--until", f"{MADE:%Y-%m-%dT%H:%M:%S}")[1]) == []
    day = f"{MADE + timedelta(hours=12):%Y-%m-%dT%H:%M}"
    assert rows(run("list", "--since", day)[1]) == ["plan-of-bob"]
    assert rows(run("list", "--since", "999w")[1]) == ["plan-of-bob", "plan-of-ada"]
    _, out, _ = run("list", "--creator", "bob", "--since", day, "--limit", "1")
    assert rows(out) == ["plan-of-bob"]


def test_the_command_that_lists_all_has_the_filters(run: Run, kept: list[str]) -> None:
    since = MADE.isoformat()
    given = ("--state", "RECOMMENDED", "--planner", "weight", "--since", since)
    _, out, _ = run("list", *given, "--limit", "26")
    assert rows(out) == kept[:26]
    assert out.splitlines()[-1].startswith("1 older plan ")
    command = out.rpartition(": ")[2].split()
    assert (command[:2], sorted(command[2:])) == (["actionplan", "list"], sorted([*given, "--all"]))


def test_a_time_that_is_none_is_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for time in ("yesterday", "2026-02-30", "٣d", "7", "", "99999999999999w"):
        with pytest.raises(SystemExit):
            run("list", f"--since={time}")
        assert "is neither a time such as 2026-03-01" in capsys.readouterr().err, time


def test_clouds_have_a_column_where_one_is_not_simulated(run: Run, store: SqlStore) -> None:
    store.save_plan(new_plan("a", name="plan-1"))
    assert run("list")[1].endswith("no plan touches a real cloud\n")
    store.save_plan(new_plan("a", name="plan-2", cloud="toy:east"))
    _, out, _ = run("list")
    assert out.splitlines()[0].endswith("cloud")
    assert [line.split()[-1] for line in out.splitlines()[2:]] == ["toy:east", "simulated"]
    listed = json.loads(run("list", "-f", "json")[1])
    assert [plan["cloud"] for plan in listed] == ["toy:east", "simulated"]


def test_nothing_is_said_where_nothing_is_left_out(run: Run, kept: list[str]) -> None:
    for words in ("--all", "--limit 27", "--limit 99"):
        _, out, err = run("list", *words.split())
        assert rows(out) == kept
        assert "not listed" not in out + err


def test_json_has_the_same_rows_and_no_prose(run: Run, kept: list[str]) -> None:
    _, out, err = run("list", "-f", "json")
    assert [row["name"] for row in json.loads(out)] == kept[:25]
    assert err.startswith("2 older plans ")


def test_the_rest_is_counted_only_where_there_may_be_one(
    run: Run, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_plan(new_plan("a"))
    monkeypatch.setattr("applier.storage.sql_store.SqlStore.count_plans", None)
    assert run("list")[0] == 0


def test_all_and_a_limit_exclude_each_other(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("list", "--all", "--limit", "3")
    assert "not allowed with argument --all" in capsys.readouterr().err


@given(ROWS)
def test_a_plain_table_is_what_rich_would_write(given_rows: list[tuple[str | int, ...]]) -> None:
    columns = [f"column {i}" for i in range(len(given_rows[0]))]
    stream = io.StringIO()

    def write(to: io.StringIO) -> None:
        RowTable().emit_list(columns, given_rows, to, argparse.Namespace())

    write(stream)
    # On a terminal it is rich that writes, and fills the last column.
    assert stream.getvalue().splitlines() == [line.rstrip() for line in written(100, write)]
