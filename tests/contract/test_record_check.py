# SPDX-License-Identifier: Apache-2.0
"""A damaged record, on every database: what is found, and that no plan hides the others."""

from __future__ import annotations

import re
from contextlib import closing
from typing import NamedTuple

import pytest
from refilled_record import empty, refill
from sample_plans import new_plan
from scratch_database import run
from store_checks.running_plans import NOW, claimed, starts, succeeds
from temporary_store import empty_record

from applier.errors import DamagedRecord, PlanConflict, PlanNotFound, StoreError
from applier.storage.check_and_backup import check
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState

SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]
BAD, GOOD = "00000000-0000-4000-8000-00000000000b", "00000000-0000-4000-8000-00000000000a"


@pytest.fixture(params=["sqlite", *SERVERS])
def url(request, tmp_path):
    """A record with a sound plan and one that a test damages; it is emptied afterwards."""
    url = f"sqlite:///{tmp_path}/plans.db"
    if request.param != "sqlite":
        url = request.getfixturevalue(request.param)
    refill(url, fill)
    yield url
    # Other tests use the database of a server, too.
    empty(url)


def fill(store):
    """Save the two plans."""
    store.save_plan(new_plan("b1", "b2", uuid=GOOD))
    plan = new_plan("a1", "a2", uuid=BAD)
    claim = claimed(store, plan)
    store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
    store.commit(plan.uuid, claim, [succeeds(plan.actions[0])], now=NOW)
    store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)


class Damage(NamedTuple):
    """A change of a record: what the check says of it, and whether the plan is loaded even so.

    It may or may not be loaded if ``loads`` is None: its actions have no order of their own.
    In ``statement``, A1 and A2 stand for the uuids of the plan's actions a1 and a2.
    """

    said: str
    statement: str
    loads: bool | None = False


def plan(change):
    return f"UPDATE actionplan_plan SET {change} WHERE uuid = '{BAD}'"


def action(name, change):
    return f"UPDATE actionplan_action SET {change} WHERE uuid = '{name}'"


def state(name, change):
    return f"UPDATE actionplan_action_state SET {change} WHERE uuid = '{name}'"


REQUEST = "INSERT INTO actionplan_request (plan, number, verb, who, created_at, limits) VALUES "
#: Of a value that does not belong in its column, one for each table: which values do not, in which
#: column, tests/unit/applier/storage/test_damage.py says.
DAMAGE = [
    Damage("limits '{' is not JSON", plan("limits = '{'")),
    Damage("the number of approvals differs from that of its guards", plan("approvals = 2"), True),
    Damage("its content was changed after it was saved", plan("""limits = '{"type:nop": 7}'""")),
    Damage("its content was changed", action("A2", """tokens = '["node:other"]'""")),
    Damage("its content was changed", plan("digest = 'none at all'")),
    Damage("it is ONGOING, and not claimed by a process", plan("state = 'ONGOING'"), loads=True),
    Damage("it is SUCCEEDED, and its action", plan("state = 'SUCCEEDED'"), loads=True),
    Damage("action a2: state 'DONE' is none of", state("A2", "state = 'DONE'")),
    Damage("action a2: it has no state", "DELETE FROM actionplan_action_state WHERE uuid = 'A2'"),
    Damage(": it has only a state", "DELETE FROM actionplan_action WHERE uuid = 'A2'"),
    Damage("action a1: parents is not a list of texts", action("A1", "parents = '[1]'")),
    Damage("nosuch", action("A1", """needs = '["nosuch"]'""")),
    Damage("cycle", action("A1", """parents = '["A1"]'""")),
    Damage(
        "two actions have one position",
        f"UPDATE actionplan_action SET position = 0 WHERE plan = '{BAD}'",
        loads=None,
    ),
    Damage(": state 'GONE' is none of", "UPDATE actionplan_attempt SET state = 'GONE'", loads=True),
    Damage(
        "actionplan_request: limits 'x' is not JSON",
        f"{REQUEST} ('{BAD}', 1, 'limit', 'me', '2026-01-02 00:00:00.000000', 'x')",
        loads=True,
    ),
    Damage(
        "actionplan_request has rows of nosuch",
        f"{REQUEST} ('nosuch', 1, 'limit', 'me', '2026-01-02 00:00:00.000000', NULL)",
        loads=True,
    ),
    Damage(
        "actionplan_reservation has rows of nosuch",
        "INSERT INTO actionplan_reservation VALUES ('nosuch', 'node:1')",
        loads=True,
    ),
    Damage(
        "actionplan_attempt has rows of nosuch",
        "UPDATE actionplan_attempt SET plan = 'nosuch'",
        loads=True,
    ),
    Damage(
        f"actionplan_attempt has rows of {BAD} nosuch",
        "UPDATE actionplan_attempt SET action = 'nosuch'",
        loads=True,
    ),
    Damage("actionplan_turn has not exactly one row", "DELETE FROM actionplan_turn", loads=True),
]


def test_a_sound_record_has_no_problems(url):
    found = check(url)
    assert (found.plans, found.problems) == (2, [])


def test_what_is_wrong_is_found_hides_no_other_plan_and_is_removed_whole(url, subtests):
    for damage in DAMAGE:
        with subtests.test(damage.said):
            refill(url, fill)
            require_found_and_removed(url, damage)


def require_found_and_removed(url, damage):
    """Damage the record; the check says so, the sound plan is read, the other one removed."""
    with closing(SqlStore(url)) as store:
        first, second = (action.uuid for action in store.load_plan(BAD).actions)
        run(url, damage.statement.replace("A1", first).replace("A2", second))
        problems = check(url).problems
        assert any(damage.said in problem for problem in problems), problems
        assert len(store.load_plan(GOOD).actions) == 2
        listed = {plan.uuid: plan for plan in store.list_plans()}
        assert listed.keys() == {BAD, GOOD}
        assert (listed[GOOD].damage, listed[GOOD].state) == (None, PlanState.RECOMMENDED)
        if damage.loads:
            store.load_plan(BAD)
            return
        if damage.loads is False:
            with pytest.raises(DamagedRecord, match=re.escape(damage.said)) as caught:
                store.load_plan(BAD)
            assert str(caught.value).startswith(f"plan {BAD[:8]} is damaged: ")
        with pytest.raises(PlanConflict, match="is not damaged"):
            store.remove_damaged_plan(GOOD)
        store.remove_damaged_plan(BAD)
        with pytest.raises(PlanNotFound):
            store.remove_damaged_plan(BAD)
        assert [plan.uuid for plan in store.list_plans()] == [GOOD]
    assert check(url).problems == []


def test_a_plan_of_which_no_row_is_left_leaves_orphans(url):
    run(url, f"DELETE FROM actionplan_plan WHERE uuid = '{BAD}'")
    orphans = {
        f"{t} has rows of {BAD}, which is missing"
        for t in ("actionplan_action", "actionplan_action_state")
    }
    assert orphans < set(check(url).problems)


def test_a_table_or_a_column_that_is_missing_is_named(tmp_path):
    (tmp_path / "plans.db").write_bytes(empty_record())
    url = f"sqlite:///{tmp_path}/plans.db"
    run(url, "DROP TABLE actionplan_service")
    run(url, "ALTER TABLE actionplan_plan DROP COLUMN last_write")
    column, table = check(url).problems
    assert "column last_write of actionplan_plan" in column
    assert "table actionplan_service" in table


def test_a_record_that_is_not_there_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/plans.db"
    with pytest.raises(StoreError, match="there is no record yet"):
        check(url)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_is_missing_is_damage_before_and_after_the_record_is_opened(url):
    name = "actionplan_request"
    with closing(SqlStore(url)) as store:
        run(url, f"ALTER TABLE {name} RENAME TO actionplan_gone")
        try:
            with pytest.raises(DamagedRecord, match=f"{name}.*; actionplan db check says where"):
                store.requests(BAD)
            with pytest.raises(DamagedRecord, match=f"is damaged: the table {name} is missing"):
                SqlStore(url)
            assert f"the table {name} is missing" in check(url).problems
        finally:
            run(url, f"ALTER TABLE actionplan_gone RENAME TO {name}")
