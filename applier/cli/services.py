# SPDX-License-Identifier: Apache-2.0
"""``actionplan service list``: the applier services."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from applier.assembly import now
from applier.cli.damaged_cells import cells
from applier.cli.verb import ListVerb
from applier.run.plan_cloud import SIMULATED
from applier.store import Service
from applier.wording import ago


class ServiceList(ListVerb):
    """List the applier services that use this record, latest heartbeat first

    A killed service stays listed. If it ran on this host, it is shown as gone; otherwise check the
    age of its last heartbeat.
    """

    EXAMPLES = ("service list", "service list -f json")
    NOTHING = (
        "No applier service has reported on this record.\nTo run a plan here: actionplan apply"
    )

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each service."""
        whole, at = parsed_args.formatter != "table", now()
        services, damaged = self.readable(self.session.store.services)
        with_cloud = whole or any(s.cloud != SIMULATED for s in services)
        columns: tuple[str, ...] = (
            *("uuid", "host", "process", "user", "plans", "started", "heard of"),
            *(("cloud",) if with_cloud else ()),
        )
        names = [*_FIELDS, *(("cloud",) if with_cloud else ())]
        rows = (
            (
                s.uuid if whole else s.uuid[:8],
                s.host,
                s.pid,
                s.user,
                s.plans,
                s.started_at.isoformat() if whole else f"{s.started_at:%Y-%m-%d %H:%M:%S}",
                s.heartbeat_at.isoformat() if whole else heard_of(s, at),
                *([s.cloud] if with_cloud else []),
            )
            for s in services
        )
        return columns, chain(rows, (cells(row, names, whole=whole) for row in damaged))


#: The fields of the columns, but the cloud.
_FIELDS = ("uuid", "host", "pid", "user", "plans", "started_at", "heartbeat_at")


def heard_of(service: Service, at: datetime) -> str:
    """Return the age of a service's last heartbeat, and whether its process is gone."""
    from applier.run.liveness import is_gone

    return ago((at - service.heartbeat_at).total_seconds()) + ", gone" * is_gone(service)
