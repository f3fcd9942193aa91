"""What the action types that work on one instance of a cloud have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from applier.actions import schemas
from applier.actions.parameters import resource, text, touch
from applier.contracts import ActionPlugin
from applier.errors import AlreadyDone
from planner.model import Touch

#: The parameters of a type that needs to know no more than which instance.
PARAMETERS: schemas.Schema = schemas.parameters(
    {"resource_id": schemas.INSTANCE_ID},
    optional={"resource_name": schemas.RESOURCE_NAME},
    examples=[
        {"resource_id": "6a1f0001-0000-4000-8000-000000000001", "resource_name": "web-1"},
    ],
)


def touches(parameters: Mapping[str, Any]) -> Sequence[Touch]:
    """Give the instance."""
    return touch("instance", text(parameters, "resource_id"))


def found(action: ActionPlugin) -> Mapping[str, Any]:
    """Give the instance that an action is for; raises AlreadyDone if it is gone."""
    instance = action.context.cloud().instance(action.parameters["resource_id"])
    if instance is None:
        raise gone(action)
    return instance


def gone(action: ActionPlugin) -> AlreadyDone:
    """Say that the instance that an action is for is gone."""
    return AlreadyDone(
        f"instance {resource(action.parameters, 'instance')} does not exist any more"
    )
