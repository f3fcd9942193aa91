# SPDX-License-Identifier: Apache-2.0
"""Reads templates: groups, their sizes, their update policies, and what is left unread.

CloudFormation's form and Heat's own are accepted. Source of the rules: Heat's blueprint
as-update-policy, Heat itself, and CloudFormation; doc/decisions describes their differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from planner.errors import Path
from planner.plan.graph_algorithms import reachable
from planner.planners.rolling_update import update_policy
from planner.planners.rolling_update.conditions import NO_VALUE, UNRESOLVED
from planner.planners.rolling_update.definitions import LAUNCHES, Configuration, DefinitionReader
from planner.planners.rolling_update.functions import Resolver
from planner.planners.rolling_update.update_policy import UpdatePolicy

#: Properties that place members in zones and subnets.
PLACES = ("AvailabilityZones", "VPCZoneIdentifier", "PlacementGroup")
#: The text that stands for the index of a member, unless ``index_var`` is another.
INDEX = "%index%"


class Removal(NamedTuple):
    """The members that a resource group removes, by index or id.

    ``replaces``: earlier removals are forgotten, and their indices are used again.
    """

    names: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of a template.

    If ``desired`` is None, the group keeps its number of members, within ``least`` and ``most``; a
    ``most`` of None is no limit. Without a ``policy``, no members are replaced. ``removal`` is that
    of a resource group, whose members are called 0, 1, .... ``servers`` are those of a group of
    deployments, by name. With ``newest_go``, the newest members go first, else the oldest.
    ``depends_on`` are the groups that are updated before it. ``notes`` are sentences for warnings.
    """

    name: str
    configuration: Configuration
    places: Mapping[str, Any]
    desired: int | None
    least: int
    most: int | None
    policy: UpdatePolicy | None
    removal: Removal | None = None
    servers: Mapping[str, str] | None = None
    newest_go: bool = False
    depends_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def size(self, capacity: int | None, old: Group | None = None) -> int:
        """Return the wanted number of members; ``capacity`` is the present number, if known.

        A policy may keep the present size if that of the templates, ``old`` and this, is the same.
        """
        kept = self.policy is not None and self.policy.keeps_size and capacity is not None
        if kept and old is not None and old.sizes == self.sizes:
            return capacity or 0
        if self.desired is not None:
            return self.desired
        found = max(self.least, capacity or 0)
        return found if self.most is None else min(found, self.most)

    @property
    def sizes(self) -> tuple[int | None, int, int | None]:
        """The wanted size, and its bounds."""
        return self.desired, self.least, self.most


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of the properties of one group type: size, bounds, definition of the members.

    If ``inside`` is None, a launch configuration or launch template is the definition.
    """

    size: str
    bounds: tuple[str, str] | None = None
    inside: str | None = None
    more: tuple[str, ...] = PLACES
    deploys: bool = False


_DEPLOYMENTS = _Kind("servers", None, "config", ("input_values", "actions"), deploys=True)
_KINDS = {
    "OS::Heat::InstanceGroup": _Kind("Size"),
    "AWS::AutoScaling::AutoScalingGroup": _Kind("DesiredCapacity", ("MinSize", "MaxSize")),
    "OS::Heat::AutoScalingGroup": _Kind(
        "desired_capacity", ("min_size", "max_size"), "resource", ("rolling_updates",)
    ),
    "OS::Heat::ResourceGroup": _Kind(
        "count", None, "resource_def", ("index_var", "removal_policies", "removal_policies_mode")
    ),
    "OS::Heat::SoftwareDeploymentGroup": _DEPLOYMENTS,
    "OS::Heat::SoftwareDeployments": _DEPLOYMENTS,
    "OS::Heat::StructuredDeploymentGroup": _DEPLOYMENTS,
    "OS::Heat::StructuredDeployments": _DEPLOYMENTS,
}
#: The resource types that are groups.
TYPES = tuple(_KINDS)
_SECTIONS = (
    *("type", "properties", "condition", "updatepolicy", "update_policy", "creationpolicy"),
    *("dependson", "depends_on"),
)
_TERMINATING = "TerminationPolicies"
#: The policies that say which members go first, and those that the order of a plan follows anyway.
_BY_AGE = ("OldestInstance", "NewestInstance")
_FOLLOWED = (*_BY_AGE, "OldestLaunchConfiguration", "OldestLaunchTemplate", "Default")


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
    reader = _GroupReader(resolver, key, resources, with_policies=with_policies)
    found = {}
    for name, resource in resources.items():
        if not isinstance(resource, Mapping):
            resolver.wrong("a resource is a mapping with Type and Properties", (key, name))
            continue
        kind = resource.get("type", resource.get("Type"))
        if isinstance(kind, str) and kind in _KINDS and reader.applies(name, resource):
            group = reader.group(name, kind, resource)
            if group is not None:
                found[name] = group
    return {
        name: replace(group, depends_on=tuple(_depends_on(resources, name, found)))
        for name, group in found.items()
    }


def _depends_on(resources: Mapping[str, Any], name: str, groups: Mapping[str, Group]) -> list[str]:
    """List the groups on which a resource depends, also through resources that are no groups."""

    def listed(one: str) -> list[str]:
        resource = resources.get(one)
        if not isinstance(resource, Mapping) or (one in groups and one != name):
            return []
        found = resource.get("DependsOn", resource.get("depends_on"))
        names = found if isinstance(found, list) else [found]
        return [other for other in names if isinstance(other, str)]

    return [one for one in reachable([name], listed) if one in groups and one != name]


def left_out(template: Mapping[str, Any]) -> list[str]:
    """Return a sentence about sections that would change the template, and are not carried out."""
    found = [name for name in ("Transform", "Hooks", "Rules") if name in template]
    return [f"{' and '.join(found)} of the new template: not carried out"] if found else []


class _GroupReader(DefinitionReader):
    def __init__(
        self,
        resolver: Resolver,
        key: str,
        resources: Mapping[str, Any],
        *,
        with_policies: bool,
    ) -> None:
        super().__init__(resolver, key, resources)
        self._with_policies = with_policies

    def applies(self, name: str, resource: Mapping[str, Any]) -> bool:
        """Return whether the condition of a resource holds, if it has one."""
        condition, at = self.section(resource, "Condition", (self._key, name))
        return condition is None or self._resolver.holds(condition, at)

    def group(self, name: str, kind: str, resource: Mapping[str, Any]) -> Group | None:
        """Read one group; if it is invalid, append a mistake and return None."""
        properties, at = self.section(resource, "Properties", (self._key, name))
        properties = {} if properties is None else properties
        if not isinstance(properties, Mapping):
            self._resolver.wrong("Properties is a mapping", at)
            return None
        how = _KINDS[kind]
        policy = self._policy(how, resource, properties, name) if self._with_policies else None
        removal, servers, index_var = None, None, None
        if how.inside == "resource_def":
            index_var = str(self._value(properties, "index_var", at) or INDEX)
            removal = self._removal(properties, at)
        if how.deploys:
            servers = self._servers(properties, at)
        desired, least, most = self._sizes(how, properties, at, servers)
        terminating = self._terminating(how, properties, at)
        places = {p: self._value(properties, p, at) for p in PLACES if p in how.more}
        configuration = self._configuration(how, properties, at, index_var)
        if configuration is None:
            return None
        return Group(
            name=name,
            configuration=configuration,
            places={place: value for place, value in places.items() if value is not None},
            desired=desired,
            least=least,
            most=most,
            policy=policy,
            removal=removal,
            servers=servers,
            newest_go=next((p for p in terminating if p in _BY_AGE), None) == "NewestInstance",
            notes=(
                *self._notes(how, policy, resource, properties),
                *(
                    f"the plan does not follow its TerminationPolicies {policy}"
                    for policy in terminating
                    if policy not in _FOLLOWED
                ),
            ),
        )

    def _policy(
        self, how: _Kind, resource: Mapping[str, Any], properties: Mapping[str, Any], name: str
    ) -> UpdatePolicy | None:
        path = (self._key, name)
        written, at = self.section(resource, "UpdatePolicy", path)
        if how.inside is None:
            place = (*path, "CreationPolicy")
            creation = (resource.get("CreationPolicy"), place) if how.bounds else None
            return update_policy.cloudformation(self._resolver, written, at, creation)
        if how.inside == "resource":
            inside = self.section(resource, "Properties", path)[1]
            rolling = properties.get("rolling_updates")
            return update_policy.heat(self._resolver, rolling, (*inside, "rolling_updates"))
        return update_policy.resource_group(self._resolver, written, at, deploys=how.deploys)

    def _notes(
        self,
        how: _Kind,
        policy: UpdatePolicy | None,
        resource: Mapping[str, Any],
        properties: Mapping[str, Any],
    ) -> Iterator[str]:
        """Yield sentences about fields that a plan does not carry out."""
        read = {
            how.size,
            *(how.bounds or ()),
            *how.more,
            *([how.inside] if how.inside else LAUNCHES),
            *([_TERMINATING] if how.bounds and not how.inside else ()),
        }
        unread = [field for field in properties if field not in read]
        unread += [field for field in resource if field.lower() not in _SECTIONS]
        if "CreationPolicy" in resource and not (policy and policy.replaces):
            unread.append("CreationPolicy")
        written = resource.get("update_policy")
        if how.inside in ("resource_def", "config") and isinstance(written, Mapping):
            unread += [f"update_policy.{f}" for f in written if f == "batch_create"]
        elif how.inside == "resource":
            unread += [field for field in ("update_policy",) if field in resource]
        if unread:
            yield f"the plan does nothing for its {', '.join(unread)}"
        yield from policy.notes if policy is not None else ()

    def _value(self, properties: Mapping[str, Any], name: str, at: Path) -> Any:
        value = self._resolver.value(properties.get(name), (*at, name))
        return None if value is UNRESOLVED or value is NO_VALUE else value

    def _removal(self, properties: Mapping[str, Any], at: Path) -> Removal:
        policies = self._value(properties, "removal_policies", at) or []
        names: list[str] = []
        for i, policy in enumerate(policies if isinstance(policies, list) else [policies]):
            listed = policy.get("resource_list") or [] if isinstance(policy, Mapping) else policy
            if not isinstance(listed, list) or not all(isinstance(n, str | int) for n in listed):
                text = "a list of {resource_list: [INDEX, ...]} is expected"
                self._resolver.wrong(text, (*at, "removal_policies", i))
                continue
            names += map(str, listed)
        mode = self._value(properties, "removal_policies_mode", at) or "append"
        if mode not in ("append", "update"):
            text = f"{mode!r} is neither append nor update"
            self._resolver.wrong(text, (*at, "removal_policies_mode"))
        return Removal(tuple(names), mode == "update")

    def _terminating(self, how: _Kind, properties: Mapping[str, Any], at: Path) -> Sequence[str]:
        if how.inside or not how.bounds:
            return ()
        found = self._value(properties, _TERMINATING, at) or []
        return [*map(str, found)] if isinstance(found, list) else [str(found)]

    def _servers(self, properties: Mapping[str, Any], at: Path) -> Mapping[str, str]:
        servers = self._value(properties, "servers", at)
        if isinstance(servers, str) and servers.startswith("${"):
            return {}
        if not isinstance(servers, Mapping):
            self._resolver.wrong("a mapping of names to servers is expected", (*at, "servers"))
            return {}
        return {str(name): str(server) for name, server in servers.items()}

    def _sizes(
        self,
        how: _Kind,
        properties: Mapping[str, Any],
        at: Path,
        servers: Mapping[str, str] | None,
    ) -> tuple[int | None, int, int | None]:
        if servers is not None:
            referred = isinstance(self._value(properties, "servers", at), str)
            return None if referred else len(servers), 0, None
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
        value = self._value(properties, name, at)
        if value is None:
            return None
        try:
            return update_policy.whole(value, 0)
        except ValueError as reason:
            self._resolver.wrong(str(reason), (*at, name))
            return None

    def _configuration(
        self, how: _Kind, properties: Mapping[str, Any], at: Path, index_var: str | None
    ) -> Configuration | None:
        if how.inside is None:
            return self.launched(properties, at)
        if properties.get(how.inside) is None:
            self._resolver.wrong(f"the field {how.inside!r} is missing", at)
            return None
        if how.deploys:
            return self.deployed(properties, at)
        return self.nested(properties[how.inside], (*at, how.inside), index_var)
