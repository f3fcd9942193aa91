# SPDX-License-Identifier: Apache-2.0
"""The tables that ActionPlan adds to Watcher's database, beside Watcher's own.

They are not linked to Watcher's tables by foreign keys, so that ``watcher-db-manage`` may remove
plans and migrate its tables as if they were not there.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

#: Alembic's table with the version of these tables; for Watcher's tables it is ``alembic_version``.
VERSION_TABLE = "actionplan_watcher_version"
#: All versions of the tables, oldest first.
REVISIONS = ("0001",)

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
Uuid, Word = sa.String(36), sa.String(32)

metadata = sa.MetaData()

#: The process that runs a plan, or ran it last: then ``claim`` is NULL. A plan that our engine
#: never ran has no row. ``service_host`` is the ``[DEFAULT] host`` of the applier.
runs = sa.Table(
    "actionplan_watcher_run",
    metadata,
    sa.Column("plan_uuid", Uuid, primary_key=True),
    sa.Column("claim", Uuid),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("user", sa.String(255), nullable=False),
    sa.Column("service_host", sa.String(255), nullable=False),
    sa.Column("interval_s", sa.Float, nullable=False),
    sa.Column("heartbeat_at", Moment, nullable=False),
    **MYSQL,
)

#: The attempts of actions; one without ``ended_at`` is open. ``started_under`` and ``ended_under``
#: are the claims at its start and end. A commit that changes an attempt replaces its row, so that
#: ``id`` is in the order of the commits.
attempts = sa.Table(
    "actionplan_watcher_attempt",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("plan_uuid", Uuid, nullable=False),
    sa.Column("action_uuid", Uuid, nullable=False),
    sa.Column("action_type", sa.String(255), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("started_under", Uuid, nullable=False),
    sa.Column("ended_at", Moment),
    sa.Column("ended_under", Uuid),
    sa.Column("state", Word),
    sa.Column("outcome", Word),
    sa.Column("message", sa.Text),
    sa.UniqueConstraint(
        "plan_uuid", "action_uuid", "number", name="uniq_actionplan_watcher_attempt"
    ),
    sa.Index("actionplan_watcher_attempt_by_type", "action_type", "id"),
    **MYSQL,
)
