# SPDX-License-Identifier: Apache-2.0
"""Parses database URLs, fills in defaults, and shows them without passwords."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from applier.errors import StoreError

ACCEPTED = "sqlite:////PATH, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
#: By kind of database: the default driver, the extra that installs it, and the URL options.
DRIVERS = {
    "postgresql": ("psycopg", "postgresql", {"connect_timeout": "10"}),
    "mysql": ("pymysql", "mysql", {"charset": "utf8mb4"}),
    "mariadb": ("pymysql", "mysql", {"charset": "utf8mb4"}),
}


def parse(connection: str) -> sa.URL:
    """Parse a URL and fill in defaults; raises StoreError.

    ``postgresql://`` means psycopg 3, ``mysql://`` and ``mariadb://`` mean PyMySQL with utf8mb4.
    """
    try:
        url = sa.make_url(connection)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"[actionplan] connection is not {ACCEPTED}") from error
    backend, _, driver = url.drivername.partition("+")
    if backend == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise StoreError(f"{connection}: name a file, as in sqlite:////var/lib/plans.db")
        return url
    if backend not in DRIVERS:
        raise StoreError(f"[actionplan] connection: {backend!r} is not one of {ACCEPTED}")
    default, _, options = DRIVERS[backend]
    # SQLAlchemy and the tables treat MariaDB as MySQL.
    name = "mysql" if backend == "mariadb" else backend
    query = url.query if driver not in ("", default) else {**options, **url.query}
    return url.set(drivername=f"{name}+{driver or default}", query=query)


def shown(url: sa.URL) -> str:
    """Return a URL as text, with passwords masked.

    >>> shown(parse("postgresql://plan:secret@db.example/plans?password=secret"))
    'postgresql://plan:***@db.example/plans'
    """
    plain = url.set(drivername=url.get_backend_name(), query={})
    return plain.render_as_string(hide_password=True)
