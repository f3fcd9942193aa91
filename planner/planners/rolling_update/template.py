# SPDX-License-Identifier: Apache-2.0
"""Reads templates: groups, the definition of their members, and update policies.

CloudFormation's form and Heat's own are accepted. Source of the rules: Heat's blueprint
as-update-policy, and Heat itself; doc/decisions describes their differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Path, accepted
from planner.planners.rolling_update import update_policy
from planner.planners.rolling_update.functions import UNRESOLVED, Resolver
from planner.planners.rolling_update.update_policy import UpdatePolicy

LAUNCH_CONFIGURATION = "AWS::AutoScaling::LaunchConfiguration"
#: Properties that place members in zones and subnets.
PLACES = ("AvailabilityZones", "VPCZoneIdentifier")


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """The definition of members: properties of a launch configuration or of a nested resource."""

    name: str
    value: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of a template.

    If ``desired`` is None, the group keeps its number of members, within ``least`` and ``most``; a
    ``most`` of None is no limit. Without a ``policy``, no members are replaced; ``heat_default``:
    Heat would replace them one by one then.
    """

    name: str
    configuration: Configuration
    places: Mapping[str, Any]
    desired: int | None
    least: int
    most: int | None
    policy: UpdatePolicy | None
    heat_default: bool = False

    def size(self, capacity: int | None) -> int:
        """Return the wanted number of members; ``capacity`` is the present number, if known."""
        if self.desired is not None:
            return self.desired
        found = max(self.least, capacity or 0)
        return found if self.most is None else min(found, self.most)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of the properties of one group type: size, bounds, definition of the members.

    If ``inside`` is None, ``LaunchConfigurationName`` refers to the definition.
    """

    size: str
    bounds: tuple[str, str] | None = None
    inside: str | None = None


_KINDS = {
    "OS::Heat::InstanceGroup": _Kind("Size"),
    "AWS::AutoScaling::AutoScalingGroup": _Kind("DesiredCapacity", ("MinSize", "MaxSize")),
    "OS::Heat::AutoScalingGroup": _Kind("desired_capacity", ("min_size", "max_size"), "resource"),
    "OS::Heat::ResourceGroup": _Kind("count", None, "resource_def"),
}
#: The resource types that are groups.
TYPES = tuple(_KINDS)


def groups(
    template: Mapping[str, Any], resolver: Resolver, *, with_policies: bool
) -> dict[str, Group]:
    """Read the groups of a template, by name; mistakes are appended to the resolver's.

    Update policies are read only ``with_policies``: those of the old template are not used.
    """
    key = "resources" if "resources" in template else "Resources"
    resources = template.get(key)
    if not isinstance(resources, Mapping):
        resolver.wrong("a template has a mapping of Resources", (key,) if key in template else ())
        return {}
    reader = _TemplateReader(resolver, key, resources, with_policies=with_policies)
    found = {}
    for name, resource in resources.items():
        kind = reader.section(resource, "Type", (key, name))[0] if reader.is_mapping(name) else None
        if isinstance(kind, str) and kind in _KINDS:
            group = reader.group(name, kind, resource)
            if group is not None:
                found[name] = group
    return found


class _TemplateReader:
    def __init__(
        self,
        resolver: Resolver,
        key: str,
        resources: Mapping[str, Any],
        *,
        with_policies: bool,
    ) -> None:
        self._resolver, self._key, self._resources = resolver, key, resources
        self._with_policies = with_policies

    def is_mapping(self, name: str) -> bool:
        """Return whether a resource is a mapping; append a mistake if not."""
        if isinstance(self._resources[name], Mapping):
            return True
        self._resolver.wrong("a resource is a mapping with Type and Properties", (self._key, name))
        return False

    def section(self, resource: Mapping[str, Any], name: str, path: Path) -> tuple[Any, Path]:
        """Return a section of a resource (``Type``, in Heat's form ``type``) and its path.

        For a missing section, None and a path are returned.
        """
        heat = {"UpdatePolicy": "update_policy"}.get(name, name.lower())
        name = heat if heat in resource else name
        return resource.get(name), (*path, name)

    def group(self, name: str, kind: str, resource: Mapping[str, Any]) -> Group | None:
        """Read one group; if it is invalid, append a mistake and return None."""
        path: Path = (self._key, name)
        if "Condition" in resource or "condition" in resource:
            self._resolver.wrong("conditions are not read: leave out what does not apply", path)
        properties, at = self.section(resource, "Properties", path)
        properties = {} if properties is None else properties
        if not isinstance(properties, Mapping):
            self._resolver.wrong("Properties is a mapping", at)
            return None
        how = _KINDS[kind]
        written, policy_at = self.section(resource, "UpdatePolicy", path)
        found = None
        if self._with_policies and kind == "OS::Heat::AutoScalingGroup":
            rolling = properties.get("rolling_updates")
            found = update_policy.heat(self._resolver, rolling, (*at, "rolling_updates"))
        elif self._with_policies and kind == "OS::Heat::ResourceGroup":
            found = update_policy.of_resource_group(self._resolver, written, policy_at)
        elif self._with_policies:
            found = update_policy.one_entry(self._resolver, written, policy_at)
        desired, least, most = self._sizes(how, properties, at)
        places = {p: self._resolver.value(properties.get(p), (*at, p)) for p in PLACES}
        configuration = self._configuration(how, properties, at)
        if configuration is None:
            return None
        return Group(
            name=name,
            configuration=configuration,
            places={place: value for place, value in places.items() if value is not None},
            desired=desired,
            least=least,
            most=most,
            policy=found,
            heat_default=kind == "OS::Heat::AutoScalingGroup",
        )

    def _sizes(
        self, how: _Kind, properties: Mapping[str, Any], at: Path
    ) -> tuple[int | None, int, int | None]:
        desired = self._number(properties, how.size, at)
        if how.bounds is None:
            if desired is None and how.size == "Size" and properties.get("Size") is None:
                self._resolver.wrong("the field 'Size' is missing", at)
            return (1 if desired is None else desired), 0, None
        lowest, highest = how.bounds
        least, most = (self._number(properties, name, at) for name in how.bounds)
        if properties.get(how.size) is None and properties.get(lowest) is None:
            text = f"the fields {how.size!r} and {lowest!r} are missing: one of them is required"
            self._resolver.wrong(text, at)
        for low, few, high, many in (
            (lowest, least, highest, most),
            (lowest, least, how.size, desired),
            (how.size, desired, highest, most),
        ):
            if few is not None and many is not None and few > many:
                self._resolver.wrong(f"{many} is less than {low}, {few}", (*at, high))
        return desired, least or 0, most

    def _number(self, properties: Mapping[str, Any], name: str, at: Path) -> int | None:
        value = self._resolver.value(properties.get(name), (*at, name))
        if value is None or value is UNRESOLVED:
            return None
        try:
            return update_policy.whole(value, 0)
        except ValueError as reason:
            self._resolver.wrong(str(reason), (*at, name))
            return None

    def _configuration(
        self, how: _Kind, properties: Mapping[str, Any], at: Path
    ) -> Configuration | None:
        field = how.inside or "LaunchConfigurationName"
        where = (*at, field)
        written = properties.get(field)
        if written is None:
            self._resolver.wrong(f"the field {field!r} is missing", at)
            return None
        if how.inside:
            if not isinstance(written, Mapping):
                self._resolver.wrong("a resource is expected: type and properties", where)
                return None
            return Configuration(name=field, value=self._resolver.value(written, where))
        name = _referred(written)
        if name is None:
            text = f"{written!r}: a reference is expected, such as {{Ref: NAME}}, not a name"
            self._resolver.wrong(text, where)
            return None
        return self._launch_configuration(name, where)

    def _launch_configuration(self, name: str, where: Path) -> Configuration | None:
        resource = self._resources.get(name)
        path: Path = (self._key, name)
        kind = self.section(resource, "Type", path)[0] if isinstance(resource, Mapping) else None
        if not isinstance(resource, Mapping) or kind != LAUNCH_CONFIGURATION:
            known = [n for n in self._resources if self._is_configuration(n)]
            text = f"no {LAUNCH_CONFIGURATION} {name!r}; {accepted(name, known)}"
            self._resolver.wrong(text, where)
            return None
        properties, at = self.section(resource, "Properties", path)
        metadata, beside = self.section(resource, "Metadata", path)
        value = self._resolver.value(properties or {}, at)
        if not isinstance(value, Mapping):
            self._resolver.wrong("Properties is a mapping", at)
            return None
        if metadata:
            value = {**value, "Metadata": self._resolver.value(metadata, beside)}
        return Configuration(name=name, value=value)

    def _is_configuration(self, name: str) -> bool:
        resource = self._resources[name]
        return isinstance(resource, Mapping) and LAUNCH_CONFIGURATION in (
            resource.get("Type"),
            resource.get("type"),
        )


def _referred(written: Any) -> str | None:
    """Return the name in ``{Ref: NAME}`` or ``{get_resource: NAME}``; None for other values."""
    if isinstance(written, Mapping) and len(written) == 1:
        ((function, name),) = written.items()
        if function in ("Ref", "get_resource") and isinstance(name, str):
            return name
    return None
