# SPDX-License-Identifier: Apache-2.0
"""The tables: created, upgraded, taken back, like the models, and refused when not ours."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from applier.contracts import Report, Request
from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import make_engine, parse
from applier.storage.sql import SqlStore
from applier.storage.tables import VERSION_TABLE, metadata
from applier.store import Attempt
from applier.store.samples import Sample
from applier.testing.sample_plans import new_plan
from planner.states import ActionState, Outcome, PlanState, StateReason

SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]
OURS = {*metadata.tables, VERSION_TABLE}


@pytest.fixture
def url(request, tmp_path) -> str:
    """A database without tables, and without them again afterwards."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield f"sqlite:///{tmp_path}/plans.db"
        return
    url = request.getfixturevalue(request.param)
    yield url
    for name in tables(url):
        run(url, f"DROP TABLE {name}{' CASCADE' if 'postgresql' in url else ''}")


every_database = pytest.mark.parametrize("url", ["sqlite", *SERVERS], indirect=True)
every_server = pytest.mark.parametrize("url", SERVERS, indirect=True)


def run(url, *statements):
    engine = make_engine(parse(url))
    with engine.begin() as database:
        if "mysql" in url:
            database.execute(sa.text("SET foreign_key_checks = 0"))
        for statement in statements:
            database.execute(sa.text(statement))
    engine.dispose()


def tables(url):
    engine = make_engine(parse(url))
    with engine.connect() as database:
        names = set(sa.inspect(database).get_table_names())
    engine.dispose()
    return names


def test_the_revisions_that_opening_knows_are_those_of_alembic():
    scripts = ScriptDirectory(schema_version.__file__.replace("schema_version.py", "migrations"))
    there = [script.revision for script in scripts.walk_revisions()]
    assert list(schema_version.REVISIONS) == there[::-1]
    assert scripts.get_heads() == [schema_version.REVISIONS[-1]]


@every_database
def test_up_down_and_up_again(url):
    schema_version.upgrade(url)
    assert tables(url) == OURS
    schema_version.upgrade(url)
    schema_version.downgrade(url)
    assert tables(url) == {VERSION_TABLE}
    schema_version.upgrade(url)
    store = SqlStore(url)
    store.save_plan(new_plan("a", uuid="abcd"))
    assert store.find_plan("last") == "abcd"
    store.close()


@every_database
def test_the_models_and_the_migrations_agree(url):
    schema_version.upgrade(url)
    engine = make_engine(parse(url))
    with engine.connect() as database:
        options = {"version_table": VERSION_TABLE, "compare_server_default": True}
        context = MigrationContext.configure(database, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


@every_database
def test_a_difference_between_models_and_migrations_is_seen(url):
    schema_version.upgrade(url)
    run(url, "DROP INDEX ix_actionplan_plan_state" + " ON actionplan_plan" * ("mysql" in url))
    run(url, "ALTER TABLE actionplan_request ADD COLUMN extra INTEGER")
    engine = make_engine(parse(url))
    with engine.connect() as database:
        context = MigrationContext.configure(database, opts={"version_table": VERSION_TABLE})
        found = {change[0] for change in compare_metadata(context, metadata)}
    engine.dispose()
    assert found == {"add_index", "remove_column"}


@every_server
def test_a_server_is_never_migrated_without_being_asked(url):
    with pytest.raises(StoreError, match=r"not there yet; run: actionplan db upgrade$"):
        SqlStore(url)
    assert tables(url) == set()
    schema_version.upgrade(url)
    run(url, "DELETE FROM actionplan_alembic_version")
    with pytest.raises(StoreError, match="run: actionplan db upgrade"):
        SqlStore(url)


@every_server
def test_the_tables_of_an_older_release_are_named(url, monkeypatch):
    schema_version.upgrade(url)
    older = rf"version {schema_version.REVISIONS[-1]}, of an older release; run: .* db upgrade"
    monkeypatch.setattr(schema_version, "REVISIONS", (*schema_version.REVISIONS, "9999"))
    with pytest.raises(StoreError, match=older):
        SqlStore(url)


@every_database
def test_tables_of_a_newer_release_are_left_alone(url):
    schema_version.upgrade(url)
    run(url, "UPDATE actionplan_alembic_version SET version_num = 'abcd'")
    for attempt in (SqlStore, schema_version.upgrade, schema_version.downgrade):
        with pytest.raises(StoreError, match="version abcd, of a newer release") as refusal:
            attempt(url)
        assert "upgrade ActionPlan" in str(refusal.value)


@every_database
@pytest.mark.parametrize("names", [("action_plans", "audits"), ("alembic_version", "goals")])
def test_a_database_of_watcher_is_refused_and_stays_as_it_is(url, names):
    if "sqlite" in url:
        SqlStore(url).close()
    run(url, *(f"CREATE TABLE {name} (id INTEGER)" for name in names))
    before = tables(url)
    for attempt in (SqlStore, schema_version.upgrade):
        with pytest.raises(StoreError, match="holds the tables of Watcher") as refusal:
            attempt(url)
        assert "database of its own" in str(refusal.value)
        assert "option connection of [actionplan]" in str(refusal.value)
    assert tables(url) == before


@every_server
def test_a_server_may_have_other_tables(url):
    run(url, "CREATE TABLE goals (id INTEGER)")
    schema_version.upgrade(url)
    SqlStore(url).close()


def test_a_file_of_another_program_is_refused_and_stays_as_it_is(url):
    run(url, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(StoreError, match="holds the tables of something else"):
        SqlStore(url)
    assert tables(url) == {"bookmarks"}


def test_a_file_of_an_older_release_is_upgraded_when_it_is_opened(url):
    SqlStore(url).close()
    schema_version.downgrade(url)
    SqlStore(url).close()
    assert tables(url) == OURS


#: Plan "ran" of release 0001: ONGOING, claimed; its actions succeeded, failed, run and wait.
OF_0001 = Path(__file__).with_name("record_0001.sql")


@pytest.fixture
def old(url) -> str:
    """A record of revision 0001 with a plan in the middle of its run, and one that waits."""
    schema_version.upgrade(url, "0001")
    run(url, *filter(str.strip, OF_0001.read_text().split(";\n")))
    return url


@every_database
def test_what_a_plan_has_done_survives_an_upgrade(old):
    if "sqlite" not in old:
        schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        plan = store.load_plan("ran")
        states = [(a.name, a.state, a.outcome, a.attempts) for a in plan.actions]
        assert states == [
            ("done", "SUCCEEDED", "changed", 1),
            ("broke", "FAILED", "error", 1),
            ("unneeded", "SKIPPED", None, 0),
            ("runs", "ONGOING", None, 1),
            ("waits", "PENDING", None, 0),
        ]
        done, broke, _, runs, _ = ([*store.attempts("ran", a.uuid)] for a in plan.actions)
        began = datetime(2026, 11, 1, 8, 0, 0, 250000, tzinfo=UTC)
        assert done == [
            Attempt(
                number=1,
                started_at=began,
                ended_at=began + timedelta(seconds=30),
                state=ActionState.SUCCEEDED,
                outcome=Outcome.CHANGED,
                message="moved",
                output="all of it",
            )
        ]
        assert (broke[0].message, broke[0].output) == ("no route", None)
        assert runs == [Attempt(number=1, started_at=began + timedelta(seconds=31))]
        assert store.output("ran", plan.actions[0].uuid) == "all of it"
        assert store.durations(["nop"]) == {"nop": [Sample(30.0)]}
        assert store.pending_plans() == ["next"]
        (request,) = store.requests("ran")
        assert (request.verb, request.who, request.limits) == ("pause", "wanda", {})
        end = Report(uuid="a4", old=ActionState.ONGOING, state=ActionState.FAILED)
        store.commit("ran", "claim-1", [end], now=began)
        store.move_claimed("ran", "claim-1", PlanState.FAILED, now=began)
        store.resume_plan("ran", ["a2", "a4"], now=began)
        assert store.pending_plans() == ["next", "ran"]


@every_database
def test_what_was_not_triggered_is_known_by_its_reason_after_an_upgrade(old):
    skipped = "UPDATE actionplan_action SET state = 'SKIPPED', status_message = "
    run(old, f"{skipped} 'not triggered' WHERE uuid = 'a5'")
    schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        reasons = {a.uuid: a.state_reason for a in store.load_plan("ran").actions}
    assert reasons == {**dict.fromkeys(("a1", "a2", "a3", "a4")), "a5": StateReason.NOT_TRIGGERED}


@every_database
def test_requests_survive_both_ways(old):
    schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        (first,) = store.requests("ran")
        assert (first.number, first.who, first.why) == (1, "wanda", "lunch")
        limits = Request(verb="limit", who="ann", limits={"node:*": 2})
        store.add_request("ran", limits, now=first.created_at)
        written = store.requests("ran")
        assert [request.number for request in written] == [1, 2]
    schema_version.downgrade(old, "0003")
    assert "actionplan_wish" in tables(old)
    schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        assert store.requests("ran") == written


@every_database
def test_who_made_a_plan_is_known_by_its_history_after_an_upgrade(old):
    schema_version.upgrade(old, "0010")
    tell = "INSERT INTO actionplan_history (plan, verb, who, at) VALUES "
    run(
        old,
        "DELETE FROM actionplan_history",
        f"{tell} ('ran', 'create', 'ada', '2026-11-01 08:00:00')",
        f"{tell} ('ran', 'rollback', 'bob', '2026-11-01 09:00:00')",
        f"{tell} ('next', 'start', 'bob', '2026-11-01 08:00:00')",
    )
    schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        creators = {plan.uuid: plan.creator for plan in store.list_plans()}
    assert creators == {"ran": "ada", "next": None}


@every_database
def test_the_last_attempt_survives_the_way_back(old):
    schema_version.upgrade(old)
    schema_version.downgrade(old, "0001")
    engine = make_engine(parse(old))
    with engine.connect() as database:
        asked = "SELECT uuid, output FROM actionplan_action WHERE output IS NOT NULL"
        assert database.execute(sa.text(asked)).all() == [("a1", "all of it")]
    engine.dispose()
    schema_version.upgrade(old)
    with closing(SqlStore(old)) as store:
        assert store.output("ran", "a1") == "all of it"


def test_processes_that_open_a_new_file_at_once_all_can(url):
    fresh = multiprocessing.get_context("spawn")
    barrier = fresh.Barrier(4, timeout=120)
    running = [fresh.Process(target=open_and_save, args=(barrier, url)) for _ in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join(timeout=120)
    assert [process.exitcode for process in running] == [0] * 4
    store = SqlStore(url)
    assert len(store.list_plans()) == 4
    store.close()


def open_and_save(barrier, url):
    barrier.wait()
    SqlStore(url).save_plan(new_plan("a"))


def test_opening_what_is_up_to_date_does_not_load_alembic(url):
    SqlStore(url).close()
    script = (
        "import sys\n"
        "from applier.storage.sql import SqlStore\n"
        f"SqlStore({url!r}).list_plans()\n"
        "assert not [name for name in sys.modules if name.startswith('alembic')]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
