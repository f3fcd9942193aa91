# SPDX-License-Identifier: Apache-2.0
"""The tables: created, upgraded when asked, like the models, and refused when not ours."""

from __future__ import annotations

import hashlib
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sample_plans import new_plan
from scratch_database import run

from applier.contracts import Claimant
from applier.errors import StoreError
from applier.storage import schema, schema_version
from applier.storage.check_and_backup import check
from applier.storage.connection import parse
from applier.storage.schema import TABLES, VERSION_TABLE
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState

pytestmark = pytest.mark.slow
SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]
OURS = {*TABLES, VERSION_TABLE}
FILL_FACTOR = "SELECT reloptions[1] FROM pg_class WHERE relname = 'actionplan_action_state'"
ENGINES = (
    "SELECT DISTINCT concat(engine, ' ', table_collation) FROM information_schema.tables "
    "WHERE table_schema = database() AND table_name LIKE 'actionplan%'"
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


def tables(url):
    return set(run(url, f"SELECT name FROM ({parse(url).dialect.tables}) AS t"))


def columns_of_plans(url):
    columns = parse(url).dialect.columns
    return set(run(url, f"SELECT name FROM ({columns}) AS t WHERE table_name = 'actionplan_plan'"))


def test_other_tables_are_another_version():
    """Until the first release the tables are edited in place, and a record of before is refused."""
    made = "\n".join(schema.POSTGRESQL.creation())
    digest = hashlib.sha256(made.encode()).hexdigest()[:8]
    assert schema_version.REVISIONS[-1] == f"0001_{digest}"


@every_database
def test_new_tables_are_those_of_this_version(url):
    schema_version.upgrade(url)
    schema_version.upgrade(url)
    assert tables(url) == OURS
    SqlStore(url).close()


@every_server
def test_a_server_keeps_its_rows_as_the_migration_says(url):
    schema_version.upgrade(url)
    if "mysql" in url:
        assert run(url, ENGINES) == ["InnoDB utf8mb4_bin"]
    else:
        assert run(url, FILL_FACTOR) == ["fillfactor=70"]


@pytest.fixture
def next_version(monkeypatch):
    """An upgrade that adds a column and fills it, as the next release may have."""
    note = """
    ALTER TABLE actionplan_plan ADD COLUMN note {text};
    UPDATE actionplan_plan SET note = name;"""

    def begins():
        monkeypatch.setattr(schema_version, "UPGRADES", {"0002": note})
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
    assert run(url, "SELECT note FROM actionplan_plan") == ["web"]
    with closing(SqlStore(url)) as store:
        assert store.load_plan("abcd").name == "web"
    assert run(url, f"SELECT version_num FROM {VERSION_TABLE}") == ["0002"]


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
    run(url, f"UPDATE actionplan_alembic_version SET version_num = '{version}'")
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
