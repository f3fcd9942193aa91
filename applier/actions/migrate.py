# SPDX-License-Identifier: Apache-2.0
"""Move an instance to another host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import instances, schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome


class Migrate(ActionPlugin):
    """Move an instance, live or cold; without ``destination_node`` the cloud chooses the host."""

    TYPE = "migrate"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds a finished migration, and the cloud refuses a second one
    #: meanwhile.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    _had_task = False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {
            "resource_id": schemas.INSTANCE_ID,
            "migration_type": {"enum": ["live", "cold"]},
            "source_node": schemas.RESOURCE,
        },
        optional={
            "destination_node": {**schemas.RESOURCE, "type": ["string", "null"]},
            "resource_name": schemas.RESOURCE_NAME,
        },
        examples=[
            {
                "resource_id": "6a1f0001-0000-4000-8000-000000000001",
                "resource_name": "web-1",
                "migration_type": "live",
                "source_node": "compute-1",
                "destination_node": "compute-3",
            },
            {
                "resource_id": "6a1f0005-0000-4000-8000-000000000001",
                "migration_type": "cold",
                "source_node": "compute-4",
            },
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """Return the instance, the host it leaves, and the host it enters if that is known."""
        return (
            *touch("instance", text(parameters, "resource_id")),
            *touch("node", text(parameters, "source_node"), Effect.LEAVES),
            *touch("node", text(parameters, "destination_node"), Effect.ENTERS),
        )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``move web-1 from compute-1 to compute-2``."""
        source, destination = (text(parameters, f"{x}_node") for x in ("source", "destination"))
        words = f"move {resource(parameters, 'an instance')}"
        words += f" from {source}" if source else ""
        words += f" to {destination}" if destination else ""
        words += ", cold" if parameters.get("migration_type") == "cold" else ""
        return one_line(words)

    def precheck(self) -> None:
        """Check the instance and the destination.

        Raises AlreadyDone if the instance is gone or not on the source, ActionFailed if the
        destination is missing or disabled, or a live move is impossible. While a task runs on the
        instance, only its existence is checked: :meth:`execute` then follows that move, or fails
        because the cloud refuses another.
        """
        cloud, wanted = self.context.cloud(), self.parameters
        name, source = resource(wanted, "instance"), wanted["source_node"]
        destination = wanted.get("destination_node")
        instance = instances.found(self)
        self._had_task = instance["task"] is not None
        if self._had_task:
            return
        if instance["host"] != source:
            now = (
                f"on {instance['host']}"
                if instance["host"]
                else f"{instance['status']}, on no host"
            )
            raise AlreadyDone(f"{name} is not on {source} any more: it is {now}")
        if source == destination:
            raise AlreadyDone(f"{name} is on {source}, which is also its destination")
        if destination is not None:
            service = cloud.service(destination)
            if service is None:
                raise ActionFailed(f"{name} cannot move to {destination}: there is no such host")
            if service["status"] != "enabled":
                why = f" ({service['reason']})" if service["reason"] else ""
                raise ActionFailed(f"{name} cannot move to {destination}: it is disabled{why}")
        if wanted["migration_type"] == "live" and instance["status"] != "ACTIVE":
            raise ActionFailed(f"{name} is {instance['status']}: only an ACTIVE one moves live")

    def execute(self, stop: StopSignal) -> Outcome:
        """Move the instance, and print its new host.

        If a task ran during the precheck, check again: it may have been this move, and be over now.
        """
        if self._had_task:
            self.precheck()
        host = self.context.cloud().migrate(
            self.parameters["resource_id"],
            self.parameters.get("destination_node"),
            self.parameters["migration_type"] == "live",
            stop,
            self.context.output,
        )
        self.context.output(f"{resource(self.parameters, 'instance')} is on {host}\n")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Compare the host of the instance with the destination.

        Return DONE on the destination or, without one, on any host but the source. While a task
        runs on the instance, return NOT_DONE: another attempt follows that task.
        """
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None or (instance["host"] is None and instance["task"] is None):
            return Verified.IN_DOUBT
        if instance["task"] is not None:
            return Verified.NOT_DONE
        source = self.parameters["source_node"]
        destination = self.parameters.get("destination_node")
        if instance["host"] == destination:
            return Verified.DONE
        if instance["host"] == source:
            return Verified.NOT_DONE
        return Verified.IN_DOUBT if destination else Verified.DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Move the instance back to the source; live if it was moved live and is ACTIVE."""
        source, instance_id = self.parameters["source_node"], self.parameters["resource_id"]
        instance = self.context.cloud().instance(instance_id)
        if instance is None:
            name = resource(self.parameters, "instance")
            raise ActionFailed(f"{name} cannot move back to {source}: it does not exist any more")
        if instance["host"] == source and instance["task"] is None:
            return Outcome.OK
        live = self.parameters["migration_type"] == "live" and instance["status"] == "ACTIVE"
        host = self.context.cloud().migrate(instance_id, source, live, stop, self.context.output)
        self.context.output(f"{resource(self.parameters, 'instance')} is on {host}\n")
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        """Compare the host of the instance with the source.

        While a task runs on the instance, return NOT_DONE: another attempt follows that task.
        Return IN_DOUBT if the instance is neither on the source nor on the destination.
        """
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            return Verified.IN_DOUBT
        if instance["task"] is not None:
            return Verified.NOT_DONE
        if instance["host"] == self.parameters["source_node"]:
            return Verified.DONE
        destination = self.parameters.get("destination_node") or instance["host"]
        is_elsewhere = instance["host"] is None or instance["host"] != destination
        return Verified.IN_DOUBT if is_elsewhere else Verified.NOT_DONE
