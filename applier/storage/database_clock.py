# SPDX-License-Identifier: Apache-2.0
"""The clock of the database in statements: the same for all who use one record."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from applier.storage.column_types import Moment


class _TimeIn(FunctionElement[Any]):
    """The time in some seconds; a negative number is in the past."""

    inherit_cache = True
    type = Moment()


def time_in(seconds: sa.ColumnElement[Any] | None = None) -> sa.ColumnElement[Any]:
    """Return the expression for the time in ``seconds``, or for now."""
    return _TimeIn(sa.literal_column("0") if seconds is None else seconds)


@compiles(_TimeIn, "sqlite")
def _sqlite(element: Any, compiler: Any, **given: Any) -> str:
    seconds = compiler.process(element.clauses, **given)
    # As text, in the form in which SQLAlchemy writes times into SQLite.
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', ({seconds}) || ' seconds')"


@compiles(_TimeIn, "postgresql")
def _postgresql(element: Any, compiler: Any, **given: Any) -> str:
    seconds = compiler.process(element.clauses, **given)
    # Not now(), which is the time at which the transaction began.
    return f"((clock_timestamp() AT TIME ZONE 'utc') + {seconds} * interval '1 second')"


@compiles(_TimeIn, "mysql")
def _mysql(element: Any, compiler: Any, **given: Any) -> str:
    seconds = compiler.process(element.clauses, **given)
    return f"(utc_timestamp(6) + INTERVAL ({seconds}) SECOND)"
