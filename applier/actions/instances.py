# SPDX-License-Identifier: Apache-2.0
"""The action types that bring one instance of a cloud into a status, or delete it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.cloud_states import StateChange
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch


class InstanceChange(StateChange):
    """Changes one instance, ``resource_id``."""

    #: The schema of a type that needs only the instance.
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.INSTANCE_ID},
        optional={"resource_name": schemas.RESOURCE_NAME},
        examples=[
            {"resource_id": "6a1f0001-0000-4000-8000-000000000001", "resource_name": "web-1"},
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("instance", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        return one_line(f"{cls.TYPE} {resource(parameters, 'an instance')}")

    def _known(self) -> Mapping[str, Any] | None:
        return self.context.cloud().instance(self.parameters["resource_id"])

    def _found(self) -> Mapping[str, Any]:
        """Return the instance. Raises AlreadyDone if it is gone."""
        instance = self._known()
        if instance is None:
            raise gone(self.parameters)
        return instance


def gone(parameters: Mapping[str, Any]) -> AlreadyDone:
    """Return the error for an instance that does not exist any more."""
    return AlreadyDone(f"instance {resource(parameters, 'instance')} does not exist any more")


class InstanceStatus(InstanceChange):
    """Brings an instance into the status WANTED; BEFORE undoes it, if it can be undone."""

    FIELD = "status"
    #: The status that the instance gets.
    WANTED: ClassVar[str]
    #: The status that undoes it, of a type that is REVERTIBLE.
    BEFORE: ClassVar[str]

    def precheck(self) -> None:
        if self._has(self._found(), self.WANTED):
            name = resource(self.parameters, "instance")
            raise AlreadyDone(f"{name} is {self.WANTED} already")

    def _wanted(self) -> str:
        return self.WANTED

    def _before(self) -> str:
        return self.BEFORE

    def _change(self, state: str, stop: StopSignal) -> None:
        instance_id = self.parameters["resource_id"]
        self.context.cloud().set_instance_status(instance_id, state, stop, self.context.output)


class Stop(InstanceStatus):
    """Shut an instance down; it stays on its host."""

    TYPE, WANTED, BEFORE, REVERTIBLE = "stop", "SHUTOFF", "ACTIVE", True


class Start(InstanceStatus):
    """Start an instance that is off, on its host."""

    TYPE, WANTED, BEFORE, REVERTIBLE = "start", "ACTIVE", "SHUTOFF", True

    def precheck(self) -> None:
        super().precheck()
        if self._found()["status"] == "SHELVED":
            name = resource(self.parameters, "instance")
            raise ActionFailed(f"{name} is SHELVED: it is unshelved, not started")


class Shelve(InstanceStatus):
    """Take an instance off its host, and keep it for later."""

    TYPE, WANTED = "shelve", "SHELVED"


class Unshelve(InstanceStatus):
    """Take an instance that is shelved back to a host, and start it."""

    TYPE, WANTED = "unshelve", "ACTIVE"


class Delete(InstanceStatus):
    """Remove an instance for good."""

    #: No instance has this status: one that is deleted is gone. No UUID is used twice.
    TYPE, WANTED = "delete", "DELETED"

    def precheck(self) -> None:
        self._found()

    def _look(self, state: str) -> Verified:  # noqa: ARG002
        return Verified.DONE if self._known() is None else Verified.NOT_DONE

    def _change(self, state: str, stop: StopSignal) -> None:  # noqa: ARG002
        instance_id = self.parameters["resource_id"]
        self.context.cloud().delete_instance(instance_id, stop, self.context.output)
