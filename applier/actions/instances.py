# SPDX-License-Identifier: Apache-2.0
"""Functions for the action types that work on one instance of a cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, Verified
from applier.errors import AlreadyDone
from planner.model import Touch

#: The schema of the parameters of an action type that needs only the instance.
PARAMETERS: schemas.Schema = schemas.parameters(
    {"resource_id": schemas.INSTANCE_ID},
    optional={"resource_name": schemas.RESOURCE_NAME},
    examples=[
        {"resource_id": "6a1f0001-0000-4000-8000-000000000001", "resource_name": "web-1"},
    ],
)


def touches(parameters: Mapping[str, Any]) -> Sequence[Touch]:
    """Return the instance, which the action uses; nothing if its id is missing."""
    return touch("instance", text(parameters, "resource_id"))


def described(verb: str, parameters: Mapping[str, Any]) -> str:
    """Return a description: the verb and the name of the instance.

    >>> described("stop", {"resource_id": "6a1f", "resource_name": "web-1"})
    'stop web-1'
    """
    return one_line(f"{verb} {resource(parameters, 'an instance')}")


def must_differ(action: ActionPlugin, status: str) -> None:
    """Raise AlreadyDone if the instance is gone, or has the status and no task runs on it."""
    if has_settled(found(action), status):
        raise AlreadyDone(f"{resource(action.parameters, 'instance')} is {status} already")


def has_status(action: ActionPlugin, status: str) -> Verified:
    """Return DONE if the instance has the status and no task runs on it; IN_DOUBT if it is gone."""
    instance = action.context.cloud().instance(action.parameters["resource_id"])
    if instance is None:
        return Verified.IN_DOUBT
    return Verified.DONE if has_settled(instance, status) else Verified.NOT_DONE


def has_settled(instance: Mapping[str, Any] | None, status: str) -> bool:
    """Return whether an instance exists, and has the status, and no task runs on it."""
    return instance is not None and instance["status"] == status and instance["task"] is None


def is_built(instance: Mapping[str, Any] | None) -> bool:
    """Return whether an instance exists, and was created to the end without an error."""
    return instance is not None and instance["status"] != "ERROR" and instance["task"] is None


def found(action: ActionPlugin) -> Mapping[str, Any]:
    """Return the instance that an action is for. Raises AlreadyDone if it is gone."""
    instance = action.context.cloud().instance(action.parameters["resource_id"])
    if instance is None:
        raise gone(action)
    return instance


def gone(action: ActionPlugin) -> AlreadyDone:
    """Return the error for an instance that does not exist any more."""
    return AlreadyDone(
        f"instance {resource(action.parameters, 'instance')} does not exist any more"
    )
