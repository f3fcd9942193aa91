# SPDX-License-Identifier: Apache-2.0
"""The types of columns, the time by the clock of the database, and checks of column values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from applier.storage.compiled import UnreadableValue
from planner import ranges
from planner.model import ActionPlan
from planner.safe_text import TOO_DEEP, is_too_deep


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
    """Column type: text of practically any length; a plain TEXT of MySQL holds 64 KiB at most."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        """Return the type for long text in MySQL."""
        if dialect.name != "mysql":
            return sa.Text()
        from sqlalchemy.dialects import mysql

        return mysql.LONGTEXT()


Uuid = sa.String(36)
#: The type of event numbers: 64 bits. SQLite has one integer type only.
Count = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Word = sa.String(32)


class _TimeIn(FunctionElement[Any]):
    """The SQL function of :func:`time_in`, which each kind of database spells differently."""

    inherit_cache = True
    type = Moment()


def time_in(seconds: sa.ColumnElement[Any] | None = None) -> sa.ColumnElement[Any]:
    """Return the SQL expression for the present time plus ``seconds``, which may be negative.

    It is by the clock of the database, which is the same for all processes that use one record.
    """
    return _TimeIn(sa.literal_column("0") if seconds is None else seconds)


def is_due(at: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a time is not in the future, or is NULL."""
    return at.is_(None) | (at <= time_in())


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


def is_limits(value: Any) -> bool:
    """Return whether a value is a mapping to limits, which are whole numbers from 1."""
    return isinstance(value, dict) and all(type(v) is int and v > 0 for v in value.values())


def is_process_id(value: Any) -> bool:
    """Return whether a value is the number of a process."""
    return type(value) is int and 0 <= value < 2**31


def is_interval_s(value: Any) -> bool:
    """Return whether a value is a number of seconds between two heartbeats."""
    return ranges.is_duration(value)


def require_claim(plan: Mapping[Any, Any]) -> None:
    """Raise UnreadableValue for the row of a plan with a claim that no process has made."""
    if plan["claim"] is None:
        return
    if not is_process_id(plan["claimant_pid"]) or None in (
        plan["claimant_host"],
        plan["claimant_user"],
    ):
        raise UnreadableValue("its claim does not say which process has made it")
    if not is_interval_s(plan["heartbeat_interval_s"]):
        raise UnreadableValue("its claim does not say how often its process writes a heartbeat")


def is_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def is_tolerances(value: Any) -> bool:
    """Return whether a value is a list of tolerances of groups of nodes."""
    return isinstance(value, list) and all(
        isinstance(v, dict)
        and isinstance(v.get("name"), str)
        and is_texts(v.get("nodes"))
        and type(v.get("failed_nodes")) is int
        for v in value
    )


def require_usable(plan: ActionPlan) -> None:
    """Raise UnreadableValue for values that rows are converted with, but that no plan may have.

    Functions that show or run a plan would fail with them.
    """
    texts = [plan.name, plan.planner, plan.status_message, plan.cloud, plan.audit_uuid]
    for a in plan.actions:
        texts += [a.name, a.action_type, a.resource_id, a.description, a.reason, a.status_message]
    if not all(text is None or isinstance(text, str) for text in (*texts, plan.strategy_name)):
        raise UnreadableValue("a text of it is not a text")
    if not (is_texts(list(plan.warnings)) and is_tolerances(list(plan.tolerances))):
        raise UnreadableValue("its warnings or tolerances have another form")
    if any(is_too_deep(a.input_parameters) for a in plan.actions):
        raise UnreadableValue(TOO_DEEP)
