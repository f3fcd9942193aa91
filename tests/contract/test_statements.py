# SPDX-License-Identifier: Apache-2.0
"""Every statement of the store is SQL to SQLite, PostgreSQL and MySQL, with tables as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from functools import partial
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from pkgutil import iter_modules

import pytest
from test_stores import SERVERS

import applier.storage
from applier.storage import list_statements, schema_version, statements
from applier.storage.connection import Connector, parse
from applier.storage.schema import MYSQL, POSTGRESQL, SQLITE, TABLES, insert_into
from applier.storage.statements import Compiled
from applier.store import PlanFilters
from applier.store.plans import ActionKey, PlanKey
from applier.store.worker_jobs import JobTask, WorkerJobState
from planner.plan.model import JOIN
from planner.plan.states import ActionState, Outcome, PlanState

#: The values of parameters that NULL cannot stand for: a limit, and seconds from now.
VALUES = {"most": 25, "earlier": 1, "lease_s": 1.5, "older_s": 1.5, "silent_s": 1.5}
#: The words that texts of statements may contain; other values have to be parameters.
WORDS = {
    *(str(word) for words in (PlanState, ActionState, Outcome) for word in words),
    *(str(word) for words in (JobTask, WorkerJobState) for word in words),
    *(JOIN, "import", "", "/", ":", '%"approvals"%', "1000-01-01 00:00:00.000000"),
}


def of_module(name: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of the statements that are constants of a module."""
    for key, value in vars(import_module(name)).items():
        found = value if type(value) is tuple else (value,)
        found = tuple(value.values()) if isinstance(value, dict) else found
        for one in found:
            found = isinstance(one, str) and re.match(
                r"(SELECT|INSERT|UPDATE|DELETE)\b", one.strip()
            )
            if found and "THESE" not in one:
                yield f"{name}.{key}", one


def of_functions() -> Iterator[tuple[str, str]]:
    """Yield those that depend on filters, orders or a number of actions."""
    for name, text in statements.read(statements.SQL, statements.LISTS).items():
        if "THESE" in text:
            about = ((f"{name}({n})", statements.about(text, n)) for n in (1, 2, 50))
            yield from about
    for table, columns in TABLES.items():
        yield f"insert_into({table})", insert_into(table, tuple(columns))
    filters = tuple(PlanFilters.__annotations__)
    rest = (list_statements.newest, list_statements.counts)
    lists = (*rest, list_statements.number, list_statements.passing)
    for make, some in product(lists, (*((one,) for one in filters), (), filters)):
        yield f"{make.__name__}({some})", make(some)
        if make in rest:
            yield f"{make.__name__}({some}, rest)", make(some, is_rest=True)
    filters = ("audit", "strategy", "state", "plan")
    subsets = [some for number in range(4) for some in combinations(filters, number)]
    both, plans_page = (True, False), list_statements.plans_page
    for make, keys, more in (
        (partial(plans_page, keys_only=True), PlanKey, "keys of plans"),
        (partial(plans_page, keys_only=False), PlanKey, "plans"),
        (list_statements.actions_page, ActionKey, "actions"),
    ):
        for key, down, marked in product(keys, both, both):
            for some in subsets if key == next(iter(keys)) else ((), filters):
                yield f"{more}({key}, {down}, {marked}, {some})", make(key, down, marked, some)


MODULES = [f"applier.storage.{one.name}" for one in iter_modules(applier.storage.__path__)]
STATEMENTS = {
    **dict(found for name in MODULES for found in of_module(name)),
    **dict(of_functions()),
}


@pytest.mark.parametrize("url", ["sqlite", *SERVERS])
def test_every_statement_can_be_prepared(url, tmp_path, request):
    url = f"sqlite:///{tmp_path}/plans.db" if url == "sqlite" else request.getfixturevalue(url)
    schema_version.upgrade(url)
    connector, wrong = Connector(parse(url)), {}
    with closing(connector.open()) as connection:
        cursor = connection.cursor()
        for name, text in STATEMENTS.items():
            statement = Compiled(f"EXPLAIN {text}", connector.dialect)
            values = {
                parameter: VALUES.get(parameter) for parameter in Compiled(text, SQLITE).names
            }
            try:
                cursor.execute(statement.text, statement.parameters(values))
                cursor.fetchall()
            except connector.driver.Error as error:
                wrong[name] = str(error)
    assert wrong == {}


def test_the_statements_are_found():
    constants = [name for name in STATEMENTS if name.startswith("applier")]
    assert len(constants) > 90
    assert len(STATEMENTS) > 400


def test_every_statement_of_the_files_is_used_and_no_other():
    folder = Path(statements.__file__).parent
    used = {
        name
        for file in folder.glob("*.py")
        for name in re.findall(r"\bstatements\.([A-Z_]+)\b", file.read_text("utf-8"))
    }
    known = statements.read(statements.SQL, statements.LISTS)
    fragments = {name for name in known if f"{{{name}}}" in statements.SQL}
    assert used - vars(statements).keys() == set()
    assert known.keys() - used - fragments == set()


def test_statements_have_no_values_in_their_texts():
    quoted = {name: set(re.findall("'([^']*)'", text)) for name, text in STATEMENTS.items()}
    assert {name: words - WORDS for name, words in quoted.items() if words - WORDS} == {}


def test_statements_have_no_comments():
    """What looks like a parameter in a comment would be one."""
    assert [name for name, text in STATEMENTS.items() if "--" in text] == []


def test_columns_that_are_words_of_sql_are_in_quotes():
    """In PostgreSQL, ``SELECT user`` is no error, but the name of the account."""
    bare = {
        name: re.sub("""'[^']*'|"[^"]*"|[:.]\\w+""", "", text) for name, text in STATEMENTS.items()
    }
    assert [name for name, text in bare.items() if re.search(r"\b(user|key)\b", text)] == []


def test_a_percent_sign_is_that_of_the_text():
    statement = Compiled("SELECT name FROM t WHERE name LIKE '50%' AND uuid = :uuid", MYSQL)
    assert statement.text % {"uuid": 1} == "SELECT name FROM t WHERE name LIKE '50%' AND uuid = 1"


def test_times_are_written_in_utc():
    class Time(datetime):
        """A planner may have times of a class of its own."""

    at = Time(2026, 11, 27, 7, tzinfo=timezone(timedelta(hours=1)))
    of_file = Compiled("SELECT :at", SQLITE)
    assert list(of_file.parameters({"at": at})) == ["2026-11-27 06:00:00.000000"]
    of_server = Compiled("SELECT :at", POSTGRESQL)
    assert of_server.parameters({"at": at}) == {"at": datetime(2026, 11, 27, 6)}  # noqa: DTZ001
