# SPDX-License-Identifier: Apache-2.0
"""Translate the definition of a group's members into the field names of a cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.actions.schemas import Schema

CONFIGURATION: Schema = {
    "type": "object",
    "description": "properties of a launch configuration, or a resource with type and properties",
}
PLACES: Schema = {"type": "object", "description": "AvailabilityZones, VPCZoneIdentifier"}

#: Property of a launch configuration -> field of the cloud.
_FIELDS = {
    "ImageId": "image",
    "InstanceType": "flavor",
    "KeyName": "key_name",
    "UserData": "user_data",
    "SecurityGroups": "security_groups",
    "NovaSchedulerHints": "scheduler_hints",
    "BlockDeviceMappings": "block_device_mapping",
    "BlockDeviceMappingsV2": "block_device_mapping_v2",
    "Metadata": "metadata",
    "AvailabilityZones": "availability_zones",
    "VPCZoneIdentifier": "networks",
}


def wanted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``flavor, image, key_name, user_data, ...`` as far as the parameters define them.

    >>> wanted({"configuration": {"ImageId": "jobs-2", "InstanceType": "m1.small"}})
    {'image': 'jobs-2', 'flavor': 'm1.small'}
    >>> wanted({"configuration": {"type": "OS::Nova::Server", "properties": {"flavor": "m1"}}})
    {'flavor': 'm1'}
    """
    found: dict[str, Any] = {}
    for part in (parameters.get("configuration"), parameters.get("places")):
        if isinstance(part, Mapping):
            inside = part.get("properties", part.get("Properties"))
            found |= inside if isinstance(inside, Mapping) else part
    return {_FIELDS.get(key, key): value for key, value in found.items()}
