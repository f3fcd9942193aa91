# SPDX-License-Identifier: Apache-2.0
"""Makes the objects that do the operations of a cloud, over one connection."""

from __future__ import annotations

from typing import Any, NamedTuple

from openstack.connection import Connection

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.inventory import Inventory
from applier.clouds.openstack.moves import Moves
from applier.clouds.openstack.power import Power
from applier.clouds.openstack.server_changes import ServerChanges
from applier.clouds.openstack.volumes import Volumes

#: Seconds after which a request without an answer fails, unless clouds.yaml has ``api_timeout``.
_REQUEST_TIMEOUT_S = 60.0


class CloudParts(NamedTuple):
    """The connection, and the objects that do the operations through it."""

    connection: Any
    compute: Compute
    moves: Moves
    changes: ServerChanges
    power: Power
    volumes: Volumes
    inventory: Inventory

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def connected(region: Any, patience_s: float, soft_power_off_s: float) -> CloudParts:
    """Connect; a request is repeated for at most ``patience_s`` seconds.

    Raises ConnectionError if the cloud cannot be reached, ActionFailed if it refuses the login.
    """
    if region.config.get("api_timeout") is None:
        region.config["api_timeout"] = _REQUEST_TIMEOUT_S
    opened = Connection(config=region, app_name="actionplan")
    calls = Calls(patience_s)
    # The first use of a proxy connects, and is not safe in several threads: so it is done here.
    compute = Compute(calls.read(lambda: opened.compute), calls)
    return CloudParts(
        opened,
        compute,
        Moves(compute),
        ServerChanges(compute, calls.read(lambda: opened.image)),
        Power(opened, compute, soft_power_off_s),
        Volumes(opened, calls),
        Inventory(opened, compute),
    )
