# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that lists applier services."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol


class Service(NamedTuple):
    """An applier service that is registered in the store; its ``uuid`` is new at each start.

    ``cloud`` is the name of the cloud that it is configured for, ``plans`` the number
    of plans that it runs.
    """

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    cloud: str
    plans: int = 0


class ServiceStore(Protocol):
    """The part of a store that lists the applier services."""

    def report_service(self, service: Service) -> None:
        """Register a service, or record a heartbeat of it."""

    def remove_service(self, uuid: str) -> None:
        """Remove a service that has ended."""

    def services(self) -> list[Service]:
        """List the registered services, latest heartbeat first."""
