# SPDX-License-Identifier: Apache-2.0
"""Reads the definition of a group's members from a template, and the resources it refers to.

A software configuration becomes a command, as in Heat's hook for scripts. The script gets as
environment variables its inputs, and ``deploy_server_id``, ``deploy_action`` and
``deploy_resource_name``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard

from planner.errors import Path, accepted
from planner.planners.rolling_update.conditions import NO_VALUE, UNRESOLVED, as_text
from planner.planners.rolling_update.functions import Resolver

LAUNCH_CONFIGURATION = "AWS::AutoScaling::LaunchConfiguration"
LAUNCH_TEMPLATE = "AWS::EC2::LaunchTemplate"
SOFTWARE_CONFIGS = (
    "OS::Heat::SoftwareConfig",
    "OS::Heat::StructuredConfig",
    "OS::Heat::SoftwareComponent",
)
#: The properties of a group in CloudFormation's form that may define its members.
LAUNCHES = ("LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy")
#: The types of members that an instance is created for as they are.
_SERVERS = ("OS::Nova::Server", "AWS::EC2::Instance")
#: The lifecycle actions in which a deployment is run, unless it names others.
_DEPLOYED = ("CREATE", "UPDATE")


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """The definition of members: properties of a launch configuration or of a nested resource.

    ``pinned`` is the version of a launch template that the group names, whatever the template has.
    ``by_key`` returns the definition of one member, where it depends on the member's index.
    """

    name: str
    value: Mapping[str, Any]
    pinned: str | None = None
    by_key: Callable[[str], Mapping[str, Any]] | None = None

    def of(self, key: str | None) -> Mapping[str, Any]:
        """Return the definition of the member of this index."""
        return self.value if self.by_key is None or key is None else self.by_key(key)


class DefinitionReader:
    """Reads the resources of one template; ``key`` is the name of their section."""

    def __init__(self, resolver: Resolver, key: str, resources: Mapping[str, Any]) -> None:
        self._resolver, self._key, self._resources = resolver, key, resources

    def section(self, resource: Mapping[str, Any], name: str, path: Path) -> tuple[Any, Path]:
        """Return a section of a resource (``Type``, in Heat's form ``type``) and its path.

        For a missing section, None and a path are returned.
        """
        heat = {"UpdatePolicy": "update_policy"}.get(name, name.lower())
        name = heat if heat in resource else name
        return resource.get(name), (*path, name)

    def launched(self, properties: Mapping[str, Any], at: Path) -> Configuration | None:
        """Return what a launch configuration or a launch template defines."""
        found = {name: self._resolver.value(properties.get(name), (*at, name)) for name in LAUNCHES}
        if any(value is UNRESOLVED for value in found.values()):
            return None
        given = [name for name in LAUNCHES if found[name] not in (None, NO_VALUE)]
        if len(given) != 1:
            said = "is missing" if not given else f"and {given[1]!r} exclude each other"
            self._resolver.wrong(f"the field {(given or LAUNCHES)[0]!r} {said}", at)
            return None
        where, value = (*at, given[0]), found[given[0]]
        if given[0] == "LaunchConfigurationName":
            return self._launch_configuration(value, properties[given[0]], where)
        if given[0] == "LaunchTemplate":
            return self._template(value, where)
        inside = value.get("LaunchTemplate") if _is_mapping(value) else None
        if not _is_mapping(inside) or "LaunchTemplateSpecification" not in inside:
            self._resolver.wrong("LaunchTemplate.LaunchTemplateSpecification is expected", where)
            return None
        more = {**value, "LaunchTemplate": dict(inside)}
        specified = more["LaunchTemplate"].pop("LaunchTemplateSpecification")
        path = (*where, "LaunchTemplate", "LaunchTemplateSpecification")
        return self._template(specified, path, MixedInstancesPolicy=more)

    def _launch_configuration(self, value: Any, written: Any, where: Path) -> Configuration | None:
        name = _referred(value)
        if name is None:
            text = f"{written!r}: a reference is expected, such as {{Ref: NAME}}, not a name"
            self._resolver.wrong(text, where)
            return None
        found = self._named(name, where, LAUNCH_CONFIGURATION)
        return None if found is None else Configuration(name=name, value=found)

    def _template(self, found: Any, at: Path, **more: Any) -> Configuration | None:
        """Return the data of a launch template, by reference or name, and the version in use.

        Only ``LatestVersionNumber`` follows the content: any other version is pinned.
        """
        called = (
            [found.get(f"LaunchTemplate{n}") for n in ("Id", "Name")] if _is_mapping(found) else []
        )
        if not any(called):
            self._resolver.wrong("LaunchTemplateId or LaunchTemplateName, and Version", at)
            return None
        version = str(found.get("Version"))
        if version in ("$Latest", "$Default"):
            text = f"CloudFormation does not see what {version} is: write a version, or GetAtt"
            self._resolver.wrong(text, (*at, "Version"))
            return None
        name = next(filter(None, map(_referred, called)), None) or self._called(called[1])
        if name is None:
            value = {"LaunchTemplate": found, **more}
            return Configuration(name=str(called[0] or called[1]), value=value, pinned=version)
        properties = self._named(name, at, LAUNCH_TEMPLATE)
        data = (properties or {}).get("LaunchTemplateData") or {}
        if not _is_mapping(data):
            self._resolver.wrong("LaunchTemplateData of the launch template is a mapping", at)
        if properties is None or not _is_mapping(data):
            return None
        if version == f"${{{name}.LatestVersionNumber}}":
            return Configuration(name=name, value={**data, **more})
        return Configuration(name=name, value={**data, **more, "Version": version}, pinned=version)

    def _called(self, wanted: Any) -> str | None:
        """Return the template's own launch template of this LaunchTemplateName, if it has one."""
        for name in self._of_type(LAUNCH_TEMPLATE) if wanted else ():
            properties, at = self.section(self._resources[name], "Properties", (self._key, name))
            called = properties.get("LaunchTemplateName") if _is_mapping(properties) else None
            if self._resolver.value(called, (*at, "LaunchTemplateName")) == wanted:
                return name
        return None

    def nested(self, written: Any, where: Path, index_var: str | None) -> Configuration | None:
        """Return a definition that stands inside the group; ``index_var`` stands for an index."""
        if not _is_mapping(written):
            self._resolver.wrong("a resource is expected: type and properties", where)
            return None
        name = str(where[-1])
        if index_var is None or index_var not in str(written) + str(self._resolver.texts()):
            return Configuration(name=name, value=self._mapping(written, where))

        @cache
        def of(key: str) -> Mapping[str, Any]:
            found = self._mapping(_with_index(written, index_var, key), where)
            return {name: _with_index(value, index_var, key) for name, value in found.items()}

        return Configuration(name=name, value=written, by_key=of)

    def _mapping(self, written: Any, where: Path) -> Mapping[str, Any]:
        found = self._resolver.value(written, where)
        if _is_mapping(found):
            return found
        if found is not UNRESOLVED:
            self._resolver.wrong("a resource is expected: type and properties", where)
        return {}

    def deployed(self, properties: Mapping[str, Any], at: Path) -> Configuration | None:
        """Return what is deployed to each server: the software configuration, and its inputs."""
        where = (*at, "config")
        written = self._resolver.value(properties.get("config"), where)
        name = _referred(written)
        # Of an id, only the cloud knows the script: the group may stay as it is.
        found: Mapping[str, Any] = {"group": "script", "config": f"${{config {written}}}"}
        if name is not None:
            found = self._named(name, where, *SOFTWARE_CONFIGS) or {}
        own = {
            field: self._resolver.value(properties[field], (*at, field))
            for field in ("input_values", "actions")
            if properties.get(field) is not None
        }
        value: dict[str, Any] = {"actions": list(_DEPLOYED), **found, **own}
        for field, kind, form in (
            ("input_values", dict, "mapping"),
            ("actions", list, "list"),
            ("inputs", list, "list"),
        ):
            if not isinstance(value.get(field) or kind(), kind):
                self._resolver.wrong(f"a {form} of {field} is expected", at)
        return Configuration(name=name or "config", value=value)

    def _named(self, name: str, where: Path, *kinds: str) -> Mapping[str, Any] | None:
        """Return the properties of a resource, with its metadata; None with a mistake."""
        known = self._of_type(*kinds)
        if name not in known:
            self._resolver.wrong(f"no {kinds[0]} {name!r}; {accepted(name, known)}", where)
            return None
        resource, path = self._resources[name], (self._key, name)
        properties, at = self.section(resource, "Properties", path)
        metadata, beside = self.section(resource, "Metadata", path)
        value = self._resolver.value(properties or {}, at)
        if not _is_mapping(value):
            self._resolver.wrong("Properties is a mapping", at)
            return None
        if metadata and LAUNCH_CONFIGURATION in kinds:
            return {**value, "Metadata": self._resolver.value(metadata, beside)}
        return dict(value)

    def _of_type(self, *kinds: str) -> list[str]:
        return [
            name
            for name, resource in self._resources.items()
            if _is_mapping(resource) and resource.get("type", resource.get("Type")) in kinds
        ]


def _referred(value: Any) -> str | None:
    """Return the name of the resource that an evaluated reference means; None for other values."""
    match = re.fullmatch(r"\$\{([^}.: ]+)(\.[^}]*)?\}", value) if isinstance(value, str) else None
    return match[1] if match else None


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _with_index(value: Any, index_var: str, key: str) -> Any:
    """Put an index in place of its variable, in all texts of a value except keys."""
    if isinstance(value, str):
        return value.replace(index_var, key)
    if _is_mapping(value):
        return {name: _with_index(inner, index_var, key) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_index(inner, index_var, key) for inner in value]
    return value


def not_an_instance(value: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return why no instance can be created from a definition, and a warning, if there is one.

    >>> not_an_instance({"type": "OS::Cinder::Volume", "properties": {"size": 1}})[0]
    'a member is OS::Cinder::Volume, and only instances are created and terminated'
    """
    kind, properties = value.get("type"), value.get("properties")
    if kind in _SERVERS or "type" not in value:
        return None, None
    if _is_mapping(properties) and {"image", "flavor"} & properties.keys():
        return None, f"each member is created as one instance; what else {kind} makes is not"
    return f"a member is {kind}, and only instances are created and terminated", None


#: Interpreters that take a script as the argument of ``-c``.
_INTERPRETERS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "python", "python3")


def not_a_script(value: Mapping[str, Any]) -> str | None:
    """Return why a software configuration cannot be run, or None.

    >>> not_a_script({"group": "puppet", "config": "include web"})
    "its software configuration has the group 'puppet': only 'script' is run"
    """
    group = value.get("group", "Heat::Ungrouped")
    if group != "script":
        return f"its software configuration has the group {group!r}: only 'script' is run"
    config = value.get("config")
    if not isinstance(config, str) or not config or config.startswith("${"):
        return f"its script is {config!r}: the text itself is expected"
    if _interpreter(config) is None:
        return f"its script is for {config.splitlines()[0]!r}: {', '.join(_INTERPRETERS)} are run"
    return None


def deployment_command(
    value: Mapping[str, Any], server: str, key: str, action: str
) -> dict[str, Any]:
    """Return the parameters of a shell action that deploys to the server ``key``.

    >>> config = {"config": "#!/bin/sh -e\\nrun", "inputs": [{"name": "x"}]}
    >>> found = deployment_command(config, "id", "a", "UPDATE")
    >>> found["argv"], found["env"]["x"], found["env"]["deploy_action"]
    (['/bin/sh', '-e', '-c', '#!/bin/sh -e\\nrun'], '', 'UPDATE')
    """
    declared = value.get("inputs") or ()
    inputs = {str(i.get("name")): i.get("default") for i in declared if isinstance(i, Mapping)}
    inputs |= value.get("input_values") or {}
    env = {str(name): as_text(found) for name, found in inputs.items()}
    env |= {
        "deploy_server_id": server,
        "deploy_action": action,
        "deploy_resource_name": key,
    }
    script = value["config"]
    return {"node": server, "argv": [*(_interpreter(script) or ()), "-c", script], "env": env}


def _interpreter(script: str) -> list[str] | None:
    """Return the interpreter in the first line, /bin/sh without any, None for an unknown one."""
    first = script.partition("\n")[0]
    if not first.startswith("#!"):
        return ["/bin/sh"]
    words = shlex.split(first[2:])
    known = any(word.rpartition("/")[2] in _INTERPRETERS for word in words[:2])
    return words if known else None
