# SPDX-License-Identifier: Apache-2.0
"""The tables that are added to Watcher's database are those that its migrations make."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from applier.watcher import main, migrations
from applier.watcher.tables import REVISIONS, VERSION_TABLE, metadata


@pytest.fixture
def config() -> Config:
    found = Config()
    found.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return found


def test_the_known_versions_are_those_of_alembic(config):
    steps = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(reversed([step.revision for step in steps])) == REVISIONS


def test_the_migrations_make_the_tables_and_drop_them(config):
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        ours = [d for d in compare_metadata(context, metadata) if "alembic_version" not in str(d)]
        assert ours == []
        command.downgrade(config, "base")
        left = set(sa.inspect(connection).get_table_names())
    assert left == {"alembic_version", VERSION_TABLE}
    engine.dispose()


# The program for Watcher's plans where Watcher is not installed.


@pytest.mark.parametrize("words", [["--help"], ["show", "last"], ["resume", "--all"]])
def test_one_sentence_says_where_it_belongs(monkeypatch, capsys, words):
    monkeypatch.setattr(main, "find_spec", lambda _: None)
    assert main.main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("actionplan-watcher ")
    assert printed.err.count("\n") == 1
