# SPDX-License-Identifier: Apache-2.0
"""The action types that give an instance another host or another flavor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.instances import InstanceChange
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome


class InstanceMove(InstanceChange):
    """Changes an instance by a task of the cloud, which an earlier attempt may have begun.

    While a task runs on the instance, nothing is DONE: another attempt follows that task.
    """

    _had_task = False

    def execute(self, stop: StopSignal) -> Outcome:
        """Check again if a task ran during the precheck: it may have been this one, and be over."""
        if self._had_task:
            self.precheck()
        return super().execute(stop)


class Migrate(InstanceMove):
    """Move an instance, live or cold; without ``destination_node`` the cloud chooses the host."""

    TYPE = "migrate"
    REVERTIBLE = True
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
        return (
            *super().touches(parameters),
            *touch("node", text(parameters, "source_node"), Effect.LEAVES),
            *touch("node", text(parameters, "destination_node"), Effect.ENTERS),
        )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        source, destination = (text(parameters, f"{x}_node") for x in ("source", "destination"))
        words = f"move {resource(parameters, 'an instance')}"
        words += f" from {source}" if source else ""
        words += f" to {destination}" if destination else ""
        words += ", cold" if parameters.get("migration_type") == "cold" else ""
        return one_line(words)

    def precheck(self) -> None:
        """Check the instance and the destination; while a task runs, only that the instance exists.

        :meth:`execute` then follows that move, or fails because the cloud refuses another.
        """
        wanted = self.parameters
        name, source = resource(wanted, "instance"), wanted["source_node"]
        destination = wanted.get("destination_node")
        instance = self._found()
        self._had_task = instance["task"] is not None
        if self._had_task:
            return
        if instance["host"] != source:
            host, status = instance["host"], instance["status"]
            now = f"on {host}" if host else f"{status}, on no host"
            raise AlreadyDone(f"{name} is not on {source} any more: it is {now}")
        if source == destination:
            raise AlreadyDone(f"{name} is on {source}, which is also its destination")
        if destination is not None:
            self._check_destination(name, destination)
        if wanted["migration_type"] == "live" and instance["status"] != "ACTIVE":
            raise ActionFailed(f"{name} is {instance['status']}: only an ACTIVE one moves live")

    def _check_destination(self, name: str, destination: str) -> None:
        service = self.context.cloud().service(destination)
        if service is None:
            raise ActionFailed(f"{name} cannot move to {destination}: there is no such host")
        if service["status"] != "enabled":
            why = f" ({service['reason']})" if service["reason"] else ""
            raise ActionFailed(f"{name} cannot move to {destination}: it is disabled{why}")

    def revert(self, stop: StopSignal) -> Outcome:
        """Move the instance back to the source; live if it was moved live and is ACTIVE."""
        source, instance = self._before(), self._known()
        if instance is None:
            name = resource(self.parameters, "instance")
            raise ActionFailed(f"{name} cannot move back to {source}: it does not exist any more")
        if instance["host"] == source and instance["task"] is None:
            return Outcome.OK
        live = self.parameters["migration_type"] == "live" and instance["status"] == "ACTIVE"
        self._move(source, live, stop)
        return Outcome.CHANGED

    def _wanted(self) -> str | None:
        return self.parameters.get("destination_node")

    def _before(self) -> Any:
        return self.parameters["source_node"]

    def _look(self, state: str | None) -> Verified:
        """Return DONE on the host ``state``, or without one on any but the source.

        Return NOT_DONE on the other of source and destination, and while a task runs on the
        instance: another attempt follows that task. Return IN_DOUBT elsewhere.
        """
        instance = self._known()
        if instance is None or (instance["host"] is None and instance["task"] is None):
            return Verified.IN_DOUBT
        other = self._wanted() if state == self._before() else self._before()
        if instance["task"] is not None:
            return Verified.NOT_DONE
        if instance["host"] == state:
            return Verified.DONE
        if instance["host"] == other or not other:
            return Verified.NOT_DONE
        return Verified.IN_DOUBT if state else Verified.DONE

    def _change(self, state: str | None, stop: StopSignal) -> None:
        self._move(state, self.parameters["migration_type"] == "live", stop)

    def _move(self, host: str | None, live: bool, stop: StopSignal) -> None:
        instance_id = self.parameters["resource_id"]
        found = self.context.cloud().migrate(instance_id, host, live, stop, self.context.output)
        self.context.output(f"{resource(self.parameters, 'instance')} is on {found}\n")


class Resize(InstanceMove):
    """Change the flavor of an instance; with ``source_flavor`` it can be undone."""

    TYPE, FIELD = "resize", "flavor"
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.INSTANCE_ID, "flavor": schemas.TEXT},
        optional={
            "source_flavor": {
                **schemas.TEXT,
                "description": "flavor before, to undo it; by default that of the facts",
            },
            "resource_name": schemas.RESOURCE_NAME,
        },
        examples=[
            {
                "resource_id": "6a1f0001-0000-4000-8000-000000000001",
                "resource_name": "web-1",
                "flavor": "m1.large",
            }
        ],
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        flavor, words = text(parameters, "flavor"), super().describe(parameters)
        return one_line(f"{words} to {flavor}" if flavor else words)

    def precheck(self) -> None:
        flavor, name = self._wanted(), resource(self.parameters, "instance")
        instance = self._found()
        known = self.context.cloud().flavor(flavor)
        if known is None:
            raise ActionFailed(f"{name} cannot become {flavor}: there is no such flavor")
        self._had_task = instance["task"] is not None
        if instance["flavor"] == known["name"] and not self._had_task:
            raise AlreadyDone(f"{name} is {flavor} already")

    @classmethod
    def is_revertible(cls, parameters: Mapping[str, Any]) -> bool:
        return text(parameters, "source_flavor") is not None

    def _wanted(self) -> Any:
        return self.parameters["flavor"]

    def _before(self) -> Any:
        return self.parameters["source_flavor"]

    def _has(self, known: Mapping[str, Any], state: str) -> bool:
        flavor = self.context.cloud().flavor(state)
        return super()._has(known, flavor["name"] if flavor else state)

    def _change(self, state: str, stop: StopSignal) -> None:
        instance_id = self.parameters["resource_id"]
        self.context.cloud().resize(instance_id, state, stop, self.context.output)
