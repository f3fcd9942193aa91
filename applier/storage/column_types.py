# SPDX-License-Identifier: Apache-2.0
"""The types of the columns of the tables."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa


class Moment(sa.TypeDecorator[datetime]):
    """Column type: an aware datetime, stored in UTC with microseconds."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[datetime]:
        """Return the type with microseconds for MySQL, whose DATETIME has whole seconds."""
        if dialect.name != "mysql":
            return sa.DateTime()
        # Imported only for MySQL: the import takes as long as all of SQLite's dialect.
        from sqlalchemy.dialects import mysql

        return mysql.DATETIME(fsp=6)

    def process_bind_param(
        self,
        value: datetime | None,
        dialect: sa.Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Convert the datetime to UTC and drop the zone, which not every database can store."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(
        self,
        value: datetime | None,
        dialect: sa.Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Add the zone UTC."""
        return None if value is None else value.replace(tzinfo=UTC)


class LongText(sa.TypeDecorator[str]):
    """Column type: text of practically any length; a plain TEXT of MySQL ends at 64 KiB."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        """Return the type for long text in MySQL."""
        if dialect.name != "mysql":
            return sa.Text()
        from sqlalchemy.dialects import mysql

        return mysql.LONGTEXT()


Uuid = sa.String(36)
#: A number of an event: SQLite has one kind of integers only.
Count = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Word = sa.String(32)
