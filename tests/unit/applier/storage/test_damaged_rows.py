# SPDX-License-Identifier: Apache-2.0
"""One damaged row hides no other: the sound ones are read, and it is named, on every database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from refilled_record import empty, refill
from sample_plans import MADE, new_plan
from scratch_database import run
from store_checks.running_plans import NOW, claimed, starts, succeeds

from applier.contracts import Approval, HistoryEntry, Request
from applier.errors import DamagedRecord, DamagedRows, sound_part
from applier.storage import damaged_plans
from applier.storage.check_and_backup import check
from applier.storage.sql_store import SqlStore
from applier.store import Service
from applier.store.worker_jobs import Worker
from planner.plan.states import PlanState

PLAN = "00000000-0000-4000-8000-00000000000a"
A, B = (f"00000000-0000-4000-8000-0000000000{k}" for k in ("a1", "a2"))


@pytest.fixture
def url(record_url: str) -> Iterator[str]:
    """A record of which every list has two rows."""
    refill(record_url, fill)
    yield record_url
    # Other tests use the database of a server, too.
    empty(record_url)


def fill(store: SqlStore) -> None:
    """Write two rows of each kind."""
    store.subscribe("ops", now=NOW)
    store.subscribe("readers", now=NOW, until=NOW + timedelta(days=1))
    plan = new_plan("a", "b", uuid=PLAN)
    claim = claimed(store, plan)
    for action in plan.actions:
        store.commit(plan.uuid, claim, [starts(action)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(action)], now=NOW)
    for who in ("ann", "bob"):
        store.add_history(PLAN, HistoryEntry(verb="note", who=who, at=NOW))
        store.add_request(PLAN, Request(verb="pause", who=who), now=NOW)
        uuid = PLAN[:-3] + who
        store.report_service(Service(uuid, "elsewhere", 7, who, MADE, NOW, "west"))
        store.report_worker(Worker(who, "elsewhere", 7, who, "1.0", ["q"], ["nop"], 1, 0))


def last(table: str, key: str = "number") -> str:
    """Return the SQL condition for the last row of a table."""
    return f"{key} = (SELECT m FROM (SELECT max({key}) AS m FROM actionplan_{table}) AS t)"


def listed(store: SqlStore) -> dict[str, Callable[[], Any]]:
    """Return the methods that list rows, by table."""
    return {
        "history": lambda: store.history(PLAN),
        "request": lambda: store.requests(PLAN),
        "attempt": lambda: [
            one for tried in store.all_attempts(PLAN, most=9).values() for one in tried
        ],
        "event": lambda: store.events().events,
        "subscription": store.subscriptions,
        "service": store.services,
        "worker": store.workers,
    }


class Damage(NamedTuple):
    """The table and the column of its last row that get a value, and what is said of that."""

    table: str
    column: str
    value: str
    said: str
    key: str = "number"


EVERYWHERE = [
    Damage("request", "limits", "'{'", "request 2 is damaged: limits '{' is not JSON"),
    Damage("attempt", "state", "'GONE'", "state 'GONE' is none of", "id"),
    Damage("event", "data", "'{'", "is damaged: data '{' is not JSON"),
    Damage("event", "data", "'{}'", "is damaged: its verb None has another form"),
    Damage("subscription", "held_back", "'x'", "held_back 'x' is not JSON", "name"),
    Damage("subscription", "away", "'{}'", "the subscription readers is damaged: 'since'", "name"),
    Damage("service", "pid", "-3", "bob is damaged: pid -3 is not the number", "uuid"),
    Damage("worker", "queues", "'{'", "worker bob is damaged: queues '{' is not JSON", "name"),
]


def test_what_every_database_stores(url: str, subtests: pytest.Subtests) -> None:
    for damage in EVERYWHERE:
        with subtests.test(damage=damage):
            require_others_are_read(url, damage)


ONLY_SQLITE = [
    *(
        Damage(table, column, "'2026-13-45'", f"{column} '2026-13-45' is not a time", key)
        for table, column, key in (
            *(("history", "at", "number"), ("request", "created_at", "number")),
            *(("attempt", "ended_at", "id"), ("event", "at", "number")),
            *(("subscription", "until", "name"), ("service", "heartbeat_at", "uuid")),
            ("worker", "heard_at", "name"),
        )
    ),
    *(
        Damage(table, column, value, f"{column} {shown}", key)
        for value, shown in (
            ("x'ff'", "b'\\xff' is not a text"),
            ("CAST(x'ff41' AS TEXT)", "'\\udcffA' is not UTF-8"),
        )
        for table, column, key in (
            *(("history", "who", "number"), ("request", "why", "number")),
            ("attempt", "output", "id"),
            *(("event", "type", "number"), ("subscription", "holder", "name")),
            *(("service", "host", "uuid"), ("worker", "user", "name")),
        )
    ),
    *(
        Damage(table, key, "CAST(x'ff41' AS TEXT)", f"{table} \\xffA is damaged: {key} ", key)
        for table, key in (("service", "uuid"), ("worker", "name"), ("subscription", "name"))
    ),
    Damage("service", "pid", "'many'", "pid 'many' is not the number of a process", "uuid"),
]


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_what_only_sqlite_stores(url: str, subtests: pytest.Subtests) -> None:
    for damage in ONLY_SQLITE:
        with subtests.test(damage=damage):
            require_others_are_read(url, damage)


def require_others_are_read(url: str, damage: Damage) -> None:
    """Damage a row; the others are read as before, and it is named there and by the check."""
    refill(url, fill)
    where = last(damage.table, damage.key)
    with closing(SqlStore(url)) as store:
        before = listed(store)[damage.table]()
        quoted = f"`{damage.column}`" if url.startswith("mysql") else f'"{damage.column}"'
        run(url, f"UPDATE actionplan_{damage.table} SET {quoted} = {damage.value} WHERE {where}")
        with pytest.raises(DamagedRecord) as caught:
            listed(store)[damage.table]()
        assert isinstance(caught.value, DamagedRows)
        if damage.table == "attempt":
            sound, rows = sound_part(lambda: store.all_attempts(PLAN, most=9))
            found = [one for tried in sound.values() for one in tried]
        else:
            found, rows = sound_part(listed(store)[damage.table])
            found = getattr(caught.value.sound, "events", found)
        if damage.table in ("worker", "attempt"):
            assert len(found) == len(before) - 1
        else:
            assert found == [one for one in before if one in found]
            assert len(found) == len(before) - 1
        [row] = rows
        assert damage.said in str(row)
    wrong = damage.said.rpartition("is damaged: ")[2].rpartition("' ")[2]
    assert [wrong in problem for problem in check(url).problems] == [True]


@pytest.mark.parametrize("record_url", ["postgresql_url"], indirect=True)
@pytest.mark.server
def test_a_time_that_only_postgresql_stores(url: str) -> None:
    run(url, f"UPDATE actionplan_history SET at = 'infinity' WHERE {last('history')}")
    run(url, "UPDATE actionplan_plan SET created_at = '20000-01-01'")
    with closing(SqlStore(url)) as store:
        found, [row] = sound_part(store.history)
        assert (len(found), row.why) == (2, "at 'infinity' is not a time")
        [plan] = store.list_plans()
        assert "created_at '20000-01-01" in plan.damage


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_a_damaged_event_is_passed_by_its_number(url: str) -> None:
    with closing(SqlStore(url)) as store:
        numbers = [event["number"] for event in store.events().events]
        run(url, f"UPDATE actionplan_event SET data = '{{' WHERE number = {numbers[1]}")
        page, [row] = sound_part(lambda: store.events(limit=2))
        assert ([e["number"] for e in page.events], page.last) == (numbers[:1], numbers[1])
        assert row.values["number"] == numbers[1]
        after = store.events(page.last).events
        assert [event["number"] for event in after] == numbers[2:]


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_approvals_that_can_be_read_are_told_from_a_damaged_one(url: str) -> None:
    plan = new_plan("a")
    with closing(SqlStore(url)) as store:
        store.save_plan(plan)
        for who in ("ann", "bob"):
            store.approve_plan(plan.uuid, Approval(who=who, at=NOW, content="c"))
        run(url, "UPDATE actionplan_approval SET at = 'x' WHERE who = 'bob'")
        given, [row] = sound_part(lambda: store.approvals(plan.uuid))
        assert [one.who for one in given.approvals] == ["ann"]
        assert (row.name, row.why) == ("approval 2", "at 'x' is not a time")
        with pytest.raises(DamagedRows):
            store.approvals(plan.uuid)


DEEP = '{"a": ' + "[" * 1200 + "]" * 1200 + "}"
#: Table, column and value of the row of a plan or of its actions, and what is said of it.
OF_A_PLAN = [
    ("plan", "claimant_pid", "-3", "claimant_pid -3"),
    ("plan", "claimant_pid", "NULL", "claimant_pid is missing"),
    ("plan", "claimant_host", "NULL", "claimant_host is missing"),
    ("plan", "heartbeat_interval_s", "-5", "heartbeat_interval_s -5.0"),
    ("plan", "claimed_at", "'x'", "claimed_at 'x' is not a time"),
    ("plan", "requests", "'many'", "requests 'many'"),
    ("plan", "name", "x'ff'", "name b'\\xff' is not a text"),
    ("plan", "name", "CAST(x'ff41' AS TEXT)", "is not UTF-8"),
    ("plan", "guards", """'{"windows": [5]}'""", "guards"),
    ("action", "input_parameters", f"'{DEEP}'", "input_parameters"),
    ("action_state", "status_message", "x'ff'", "status_message"),
]


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_a_plan_with_a_damaged_row_is_listed_beside_others_and_refused(
    url: str, subtests: pytest.Subtests
) -> None:
    for table, column, value, said in OF_A_PLAN:
        with subtests.test(table=table, column=column, value=value[:40]):
            refill(url, fill)
            with closing(SqlStore(url)) as store:
                other = new_plan("c")
                store.save_plan(other)
                key = "uuid" if table == "plan" else "plan"
                run(url, f"UPDATE actionplan_{table} SET {column} = {value} WHERE {key} = '{PLAN}'")
                listed = {plan.uuid: plan for plan in store.list_plans()}
                assert listed[other.uuid].damage is None
                of_one_moment = store.of_one_moment(store.list_plans)
                assert {plan.uuid: plan for plan in of_one_moment} == listed
                assert (listed[PLAN].name or "").encode().isascii(), "an API can send it"
                if column.startswith(("claim", "heartbeat")):
                    assert said in str(listed[PLAN].damage)
                    with pytest.raises(DamagedRecord):
                        store.claimant(PLAN)
                with pytest.raises(DamagedRecord, match=re.escape(said)):
                    store.load_plan(PLAN)
            assert any(said in problem for problem in check(url).problems)


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_a_page_beside_a_damaged_plan_reads_no_plan_of_the_pages_before(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuids = [f"p{i}" for i in range(6)]
    with closing(SqlStore(url)) as store:
        for number, uuid in enumerate(uuids):
            made = MADE + timedelta(days=number)
            store.save_plan(new_plan("a", uuid=uuid, created_at=made))
        run(url, "UPDATE actionplan_plan SET name = x'ff' WHERE uuid = 'p0'")
        read, summary = [], damaged_plans._summary

        def noted(database: Any, uuid: str, *given: Any) -> Any:
            read.append(uuid)
            return summary(database, uuid, *given)

        monkeypatch.setattr(damaged_plans, "_summary", noted)
        for filters in ({}, {"since": MADE}):
            read.clear()
            found = store.list_plans(after="p2", limit=5, **filters)
            assert found[0].uuid == read[0] == "p1", filters


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_what_is_not_known_of_a_damaged_plan_passes_no_filter_and_the_others_are_filtered(
    url: str,
) -> None:
    with closing(SqlStore(url)) as store:
        for uuid, state, name, days in (
            ("bad", PlanState.SUCCEEDED, "the web", 0),
            ("old", PlanState.PAUSED, "Web 1", 1),
            ("new", PlanState.SUCCEEDED, "db", 3),
            ("gone", PlanState.DELETED, "web", 4),
        ):
            made = MADE + timedelta(days=days)
            store.save_plan(
                new_plan("a", uuid=uuid, name=name, state=state, created_at=made, planner="hand")
            )
        later = MADE + timedelta(days=2)
        for column, value in (("created_at", "'2999 or so'"), ("limits", "x'ff'")):
            run(url, f"UPDATE actionplan_plan SET {column} = {value} WHERE uuid = 'bad'")
            for wanted, found in (
                ({}, ["new", "old", "bad"]),
                ({"since": MADE}, ["new", "old"]),
                ({"since": MADE, "until": later}, ["old"]),
                ({"since": later, "name": "db"}, ["new"]),
                ({"since": later, "name": "other"}, []),
                ({"search": "WEB"}, ["old", "bad"]),
                ({"state": PlanState.DELETED}, ["gone"]),
                ({"state": PlanState.SUCCEEDED}, ["new", "bad"]),
                ({"needs_you": 0}, ["old"]),
                ({"needs_you": 0, "search": "db"}, []),
            ):
                wanted = {"planner": "hand", **wanted}
                assert [plan.uuid for plan in store.list_plans(**wanted)] == found, wanted
            assert store.list_plans(planner="hand", limit=1)[0].uuid == "new"
            assert [plan.uuid for plan in store.list_plans(planner="hand", after="old")] == ["bad"]


@pytest.mark.parametrize("record_url", ["sqlite"], indirect=True)
def test_a_damaged_event_does_not_keep_its_plan_from_being_purged(url: str) -> None:
    ended = "UPDATE actionplan_plan SET state = 'FAILED', claim = NULL"
    run(url, ended)
    run(url, "UPDATE actionplan_event SET data = '{' WHERE number = 5")
    with closing(SqlStore(url)) as store:
        assert store.purge_plans([PLAN], NOW + timedelta(days=1)) == [PLAN]
        page, [row] = sound_part(store.events)
        assert {e["data"]["name"] for e in page.events if e["type"] == "action.state"} == {"a", "b"}
        assert row.name == "event 5"
