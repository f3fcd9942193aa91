# SPDX-License-Identifier: Apache-2.0
"""The cloud ``openstack``: passes each operation to the object that does it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from oslo_config import cfg

from applier.clouds.openstack.server_fields import is_gone, view
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed, ConfigurationError, JobLost
from applier.extras import MissingExtra
from planner.schemas import ranges

if TYPE_CHECKING:
    from applier.clouds.openstack.cloud_parts import CloudParts


@contextmanager
def _parts(cloud: OpenStackCloud, lost: Callable[[str], Exception]) -> Iterator[CloudParts]:
    """Yield the connected parts; turn a ConnectionError into the error ``lost``."""
    try:
        yield cloud.connected()
    except ConnectionError as reason:
        raise lost(str(reason)) from reason


#: For reading, and for an operation, which may go on in the cloud.
_asked = partial(_parts, lost=ActionFailed)
_working = partial(_parts, lost=partial(JobLost, is_over=False))


def _passed_on(way: Callable[..., Any], part: str, method: str) -> Any:
    """Return an operation of the cloud that is a method of one of its parts."""

    def operation(cloud: OpenStackCloud, *given: Any, **named: Any) -> Any:
        with way(cloud) as parts:
            return getattr(getattr(parts, part), method)(*given, **named)

    return operation


class OpenStackCloud(Cloud):
    """A real OpenStack cloud, by its name in clouds.yaml.

    It connects when it is first used. See :class:`applier.contracts.clouds.Cloud` for all methods.
    """

    OPTIONS: ClassVar = (
        cfg.StrOpt(
            "cloud",
            help="Name of the cloud in clouds.yaml. Default: the environment variable OS_CLOUD.",
        ),
        cfg.FloatOpt(
            "reconnect_timeout_s",
            default=60.0,
            min=0,
            max=ranges.LONGEST_S,
            help="Seconds for which a request is repeated while the cloud cannot be reached, "
            "answers 500 or above, or says that something else is under way.",
        ),
        cfg.FloatOpt(
            "soft_power_off_s",
            default=0.0,
            min=0,
            max=ranges.LONGEST_S,
            help="Seconds in which the operating system of a host may shut down before the host "
            "is switched off hard. 0: hard at once.",
        ),
    )

    def __init__(
        self,
        *,
        cloud: str | None = None,
        reconnect_timeout_s: float = 60.0,
        soft_power_off_s: float = 0.0,
    ) -> None:
        self._region = _region(cloud)
        self._patience_s, self._soft_s = reconnect_timeout_s, soft_power_off_s
        self._lock = threading.Lock()
        self._parts: CloudParts | None = None

    @property
    def name(self) -> str:
        """The name in clouds.yaml, with the address of Keystone and the region."""
        place = filter(None, (self._region.auth["auth_url"], self._region.region_name))
        return f"openstack {self._region.name} ({', '.join(place)})"

    def close(self) -> None:
        with self._lock:
            if self._parts is not None:
                self._parts.close()
                self._parts = None

    def instance(self, instance_id: str) -> Mapping[str, Any] | None:
        """Return ``name, host, flavor, status, task`` of a server.

        While a move or a resize waits for its confirmation, the task is ``verify_resize``.
        """
        with _asked(self) as parts:
            server = parts.compute.server(instance_id)
        return None if is_gone(server) else view(server)

    def facts(self) -> Mapping[str, Any]:
        """Return the whole cloud as facts; one list call for each table, one for free capacity."""
        with _asked(self) as parts:
            return parts.inventory.facts(self.name)

    instance_named = _passed_on(_asked, "changes", "named")
    volume = _passed_on(_asked, "volumes", "volume")
    service = _passed_on(_asked, "compute", "service")
    host = _passed_on(_asked, "power", "host")
    flavor = _passed_on(_asked, "compute", "flavor")
    migrate = _passed_on(_working, "moves", "migrate")
    force_complete = _passed_on(_working, "moves", "force_complete")
    resize = _passed_on(_working, "moves", "resize")
    set_instance_status = _passed_on(_working, "changes", "set_status")
    create_instance = _passed_on(_working, "changes", "create")
    delete_instance = _passed_on(_working, "changes", "delete")
    set_service_status = _passed_on(_working, "compute", "set_service")
    set_host_power = _passed_on(_working, "power", "set")
    migrate_volume = _passed_on(_working, "volumes", "migrate")

    def connected(self) -> CloudParts:
        """Return the parts; connect first if that was not done. Raises ConnectionError."""
        with self._lock:
            if self._parts is None:
                # Imported here: openstacksdk is large, and most verbs need no cloud.
                from applier.clouds.openstack import cloud_parts

                self._parts = cloud_parts.connected(self._region, self._patience_s, self._soft_s)
            return self._parts


def _region(cloud: str | None) -> Any:
    """Return the settings of a cloud in clouds.yaml; without a name, of the one in ``OS_CLOUD``.

    It does not connect. Raises ConfigurationError if the settings are missing or invalid, or if
    openstacksdk is not installed.
    """
    try:
        import openstack.config
        from keystoneauth1 import exceptions as keystone
        from openstack import exceptions
    except ImportError as reason:
        missing = MissingExtra("the cloud 'openstack'", "openstack")
        raise ConfigurationError(str(missing)) from reason
    named = cloud or os.environ.get("OS_CLOUD")
    if not named:
        raise ConfigurationError(
            "no cloud is named: set [openstack] cloud or OS_CLOUD to a name in clouds.yaml"
        )
    try:
        found = openstack.config.OpenStackConfig().get_one(cloud=named)
    except (exceptions.ConfigException, keystone.ClientException) as reason:
        raise ConfigurationError(f"the cloud {named!r} cannot be used: {reason}") from reason
    if not found.auth.get("auth_url"):
        raise ConfigurationError(f"the cloud {named!r} in clouds.yaml has no auth_url")
    return found
