# SPDX-License-Identifier: Apache-2.0
"""The tables: created, upgraded when asked, like the models, and refused when not ours."""

from __future__ import annotations

import hashlib
import multiprocessing
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from applier.contracts import Claimant
from applier.errors import StoreError
from applier.storage import schema_version
from applier.storage.connection import make_engine, parse
from applier.storage.record_check import check
from applier.storage.sql import SqlStore
from applier.storage.tables import VERSION_TABLE, metadata
from applier.testing.sample_plans import new_plan
from planner.states import PlanState

SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]
OURS = {*metadata.tables, VERSION_TABLE}
FILL_FACTOR = "SELECT reloptions[1] FROM pg_class WHERE relname = 'actionplan_action_state'"
ENGINES = (
    "SELECT DISTINCT concat(engine, ' ', table_collation) FROM information_schema.tables "
    "WHERE table_schema = database() AND table_name LIKE 'actionplan%' "
    "AND table_name != 'actionplan_alembic_version'"
)


@pytest.fixture
def url(request, tmp_path) -> str:
    """A database without tables, and without them again afterwards."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield f"sqlite:///{tmp_path}/plans.db"
        return
    url = request.getfixturevalue(request.param)
    # Tests of other files may have left theirs.
    drop_tables(url)
    yield url
    drop_tables(url)


def drop_tables(url):
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


def selected(url, statement):
    engine = make_engine(parse(url))
    with engine.connect() as database:
        found = database.execute(sa.text(statement)).scalars().all()
    engine.dispose()
    return found


def columns_of_plans(url):
    engine = make_engine(parse(url))
    with engine.connect() as database:
        names = {column["name"] for column in sa.inspect(database).get_columns("actionplan_plan")}
    engine.dispose()
    return names


def test_the_revisions_that_opening_knows_are_those_of_alembic():
    scripts = ScriptDirectory(str(schema_version.MIGRATIONS))
    there = [script.revision for script in scripts.walk_revisions()]
    assert list(schema_version.REVISIONS) == there[::-1]


def test_other_tables_are_another_version():
    """Until the first release the tables are edited in place, and a record of before is refused."""
    made = []
    for table in metadata.sorted_tables:
        statements = [CreateTable(table), *map(CreateIndex, table.indexes)]
        made += sorted(str(one.compile(dialect=postgresql.dialect())) for one in statements)
    digest = hashlib.sha256("".join(made).encode()).hexdigest()[:8]
    assert schema_version.REVISIONS[-1] == f"0001_{digest}"


@every_database
def test_the_tables_are_those_of_the_models(url):
    schema_version.upgrade(url)
    schema_version.upgrade(url)
    assert tables(url) == OURS
    engine = make_engine(parse(url))
    with engine.connect() as database:
        options = {"version_table": VERSION_TABLE, "compare_server_default": True}
        context = MigrationContext.configure(database, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


@every_server
def test_a_server_keeps_its_rows_as_the_migration_says(url):
    schema_version.upgrade(url)
    if "mysql" in url:
        assert selected(url, ENGINES) == ["InnoDB utf8mb4_bin"]
    else:
        assert selected(url, FILL_FACTOR) == ["fillfactor=70"]


@pytest.fixture
def next_version(tmp_path, monkeypatch):
    """A migration that adds a column, as the next release may have."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema_version.MIGRATIONS, folder)
    shutil.copy(Path(__file__).with_name("next_version") / "0002_note.py", folder / "versions")

    def begins():
        monkeypatch.setattr(schema_version, "MIGRATIONS", folder)
        monkeypatch.setattr(schema_version, "REVISIONS", (*schema_version.REVISIONS, "0002"))

    return begins


@every_database
def test_a_record_is_upgraded_only_when_asked_and_keeps_its_plans(url, next_version):
    schema_version.upgrade(url)
    with closing(SqlStore(url)) as store:
        store.save_plan(new_plan("a", uuid="abcd", name="web"))
    version, columns = schema_version.REVISIONS[0], columns_of_plans(url)
    next_version()
    with pytest.raises(StoreError, match=rf"of version {version}; run: actionplan db upgrade$"):
        SqlStore(url)
    assert columns_of_plans(url) == columns
    schema_version.upgrade(url)
    assert columns_of_plans(url) == {*columns, "note"}
    assert selected(url, "SELECT note FROM actionplan_plan") == ["web"]
    with closing(SqlStore(url)) as store:
        assert store.load_plan("abcd").name == "web"
    engine = make_engine(parse(url))
    with engine.begin() as database:
        command.downgrade(schema_version.alembic_configuration(database), "-1")
    with engine.connect() as database:
        assert schema_version.version(database, parse(url)) == version
    engine.dispose()
    assert columns_of_plans(url) == columns


def test_the_tables_are_not_upgraded_under_a_running_plan(url, next_version):
    plan = new_plan("a", state=PlanState.PENDING)
    with closing(SqlStore(url)) as store:
        store.save_plan(plan)
        now = datetime.now(UTC)
        claim = store.claim_plan(plan.uuid, Claimant(host="h", pid=1, user="eve"), now=now)
        columns = columns_of_plans(url)
        next_version()
        with pytest.raises(StoreError, match=rf"{plan.uuid[:8]} runs"):
            schema_version.upgrade(url)
        assert columns_of_plans(url) == columns
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=now)
    schema_version.upgrade(url)
    assert columns_of_plans(url) == {*columns, "note"}


@every_server
def test_a_server_is_never_migrated_without_being_asked(url):
    with pytest.raises(StoreError, match=r"run: actionplan db upgrade$"):
        SqlStore(url)
    assert tables(url) == set()
    schema_version.upgrade(url)
    run(url, "DELETE FROM actionplan_alembic_version")
    with pytest.raises(StoreError, match="run: actionplan db upgrade"):
        SqlStore(url)


@every_database
@pytest.mark.parametrize("version", ["0001", "0017", "0002_abcdef01"])
def test_tables_of_another_version_are_left_alone(url, version):
    """Of an older one as of a newer one; the way to keep the plans is named."""
    schema_version.upgrade(url)
    run(url, f"UPDATE actionplan_alembic_version SET version_num = '{version}'")  # noqa: S608
    for attempt in (SqlStore, schema_version.upgrade, check):
        with pytest.raises(StoreError, match=f"version {version}, not 0001_") as refusal:
            attempt(url)
        assert "'actionplan export' of the" in str(refusal.value)
        assert "'actionplan import'" in str(refusal.value)
    assert tables(url) == OURS


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
