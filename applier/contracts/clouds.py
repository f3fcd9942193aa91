# SPDX-License-Identifier: Apache-2.0
"""The interface of clouds, which are plugins."""

# By default, an operation refuses whatever it is given.
# ruff: noqa: ARG002

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from applier.contracts.machines import Print, StopSignal, silent
from applier.errors import ActionFailed

if TYPE_CHECKING:
    from oslo_config import cfg


#: The fields of a new instance that a cloud makes use of.
INSTANCE_FIELDS = (
    *("image", "flavor", "key_name", "user_data", "security_groups", "scheduler_hints"),
    *("block_device_mapping", "block_device_mapping_v2", "metadata", "config_drive"),
    *("availability_zone", "availability_zones", "networks"),
)


class Cloud(ABC):
    """The operations of a cloud that actions use; a plugin, registered under ``actionplan.clouds``.

    A cloud defines ``name``, :meth:`facts` and :meth:`migrate`. Getters look into its facts, unless
    it asks for one thing only; every other operation is refused with ActionFailed by default.

    One object serves all actions of a process, from any number of threads. Each operation returns
    when the work is done. It raises :class:`applier.errors.ActionFailed` with a sentence if the
    cloud refuses the work or fails to do it. If the cloud cannot be reached any more, it raises
    :class:`applier.errors.JobLost`: the work may go on, and the action is in doubt. Once
    ``stop`` is set, it ends early with ActionFailed; an operation that cannot be stopped goes on to
    its end. Work that is under way in the cloud already, because an earlier attempt was
    interrupted, is followed to its end and not begun again. The ids of requests and migrations in
    the cloud are passed to ``output``. Getters return None if the object does not exist.
    """

    #: Options of the section ``[NAME]`` of the configuration, where NAME is that of the plugin.
    #: Their values are passed to the constructor as keyword arguments. It makes no connection, and
    #: raises ConfigurationError for invalid values.
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()
    #: False if nothing real is touched.
    IS_REAL: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that distinguishes this cloud from all others, such as ``simulated``.

        It is recorded with each plan: a plan is run only on the cloud that it was made for.
        """

    def close(self) -> None:  # noqa: B027
        """Close its connections."""

    def instance(self, instance_id: str) -> Mapping[str, Any] | None:
        """Return ``name, host, flavor, status, task`` of an instance.

        ``status`` is ACTIVE, SHUTOFF, SHELVED, or another status of the cloud. ``task`` is the
        operation that the cloud carries out on it now, or None.
        """
        return self._fact("instances", instance_id)

    def instance_named(self, name: str) -> str | None:
        """Return the id of the one instance of that name; ActionFailed if there are several."""
        known = self.facts().get("instances") or {}
        found = [key for key, instance in known.items() if instance["name"] == name]
        if len(found) > 1:
            raise ActionFailed(f"several instances are named {name}: {', '.join(sorted(found))}")
        return next(iter(found), None)

    def volume(self, volume_id: str) -> Mapping[str, Any] | None:
        """Return ``name, pool, type, instance, task`` of a volume."""
        return self._fact("volumes", volume_id)

    def service(self, host: str) -> Mapping[str, Any] | None:
        """Return ``status`` (enabled, disabled) and ``reason`` of the compute service on a host."""
        return self._fact("services", host)

    def host(self, host: str) -> Mapping[str, Any] | None:
        """Return ``power`` of a host: on, off, suspended, or unknown, also during a change."""
        return self._fact("hosts", host)

    def flavor(self, flavor: str) -> Mapping[str, Any] | None:
        """Return ``name, vcpus, ram_mb, disk_gb`` of a flavor."""
        return self._fact("flavors", flavor)

    def _fact(self, table: str, key: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = (self.facts().get(table) or {}).get(key)
        return found

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Read the whole cloud, and return it as the ``facts`` of a document.

        ``cloud`` is its name, ``at`` the time when the reading began (ISO 8601, UTC). The others
        are tables: ``instances`` by id, as :meth:`instance`; ``volumes`` by id, as :meth:`volume`,
        or with their ``instance`` alone; ``hosts`` by name: ``vcpus, ram_mb, disk_gb``, how much of
        these is ``free``, and ``power``; ``services`` by host: ``status, reason`` and ``state``
        (up, down); ``flavors`` by name, as :meth:`flavor`; ``server_groups`` by id: ``name, policy,
        members, max_server_per_host``. Unknown values are left out. Raises ActionFailed and
        ConnectionError.
        """

    @abstractmethod
    def migrate(
        self,
        instance_id: str,
        destination: str | None,
        live: bool,
        stop: StopSignal,
        output: Print = silent,
    ) -> str:
        """Move an instance, ``live`` or cold; return its new host.

        Without ``destination`` the cloud chooses the host.
        """

    def force_complete(self, instance_id: str) -> None:
        """End the live migration of an instance at once, although it pauses the instance.

        Returns when the cloud has accepted the request; the call of :meth:`migrate` returns at the
        end of the move. Raises ActionFailed if no live migration runs, or if the cloud cannot
        complete one at once.
        """
        raise self._cannot("complete a migration at once")

    def resize(
        self, instance_id: str, flavor: str, stop: StopSignal, output: Print = silent
    ) -> None:
        """Change the flavor of an instance."""
        raise self._cannot("resize an instance")

    def set_instance_status(
        self, instance_id: str, status: str, stop: StopSignal, output: Print = silent
    ) -> None:
        """Bring an instance to ACTIVE (start, unshelve), SHUTOFF (stop) or SHELVED (shelve)."""
        raise self._cannot(f"bring an instance to {status}")

    def create_instance(
        self, name: str, wanted: Mapping[str, Any], stop: StopSignal, output: Print = silent
    ) -> str:
        """Create an instance, whose name must be new; return its id.

        ``wanted`` has those of INSTANCE_FIELDS that are defined, and maybe others, which are not
        used. In their values, ``${NAME}`` is a reference to the resource of that name
        in the cloud. ``${NoEcho NAME DIGEST}`` is a placeholder for a hidden value: the cloud
        inserts the value or refuses to create the instance.
        """
        raise self._cannot("create an instance")

    def delete_instance(self, instance_id: str, stop: StopSignal, output: Print = silent) -> None:
        """Delete an instance."""
        raise self._cannot("delete an instance")

    def set_service_status(
        self, host: str, status: str, reason: str | None, stop: StopSignal, output: Print = silent
    ) -> None:
        """Set the compute service of a host to ``enabled``, or to ``disabled`` with a reason."""
        raise self._cannot(f"set the service of a host to {status}")

    def set_host_power(
        self, host: str, power: str, stop: StopSignal, output: Print = silent
    ) -> None:
        """Switch a host ``on`` or ``off``, or suspend it (``suspended``, which is ACPI S3).

        Switching off and suspending are refused while instances that run are on the host; the
        error names them.
        """
        raise self._cannot(f"switch a host to {power}")

    def migrate_volume(
        self,
        volume_id: str,
        pool: str | None,
        volume_type: str | None,
        stop: StopSignal,
        output: Print = silent,
    ) -> None:
        """Move a volume to ``pool``, or change it to ``volume_type``; the other one is None."""
        raise self._cannot("move or retype a volume")

    def _cannot(self, what: str) -> ActionFailed:
        return ActionFailed(f"the cloud {self.name} cannot {what}")
