# SPDX-License-Identifier: Apache-2.0
"""Finds planners, action types, engines and clouds by name; each is imported when it is first used.

Plugins are entry points of installed distributions; stevedore finds and loads them. The sections
of their options are named as in Watcher, but their namespaces are not, because Watcher loads all
plugins in its namespaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from stevedore import DriverManager, NamedExtensionManager

from planner import schema_references
from planner.contract import ActionType, Planner
from planner.errors import AmbiguousPlugin, BrokenPlugin, UnknownPlugin
from planner.secret_references import has_keyword

if TYPE_CHECKING:
    from oslo_config import cfg

PLANNERS = "actionplan.planners"
ACTIONS = "actionplan.actions"
ENGINES = "actionplan.engines"
CLOUDS = "actionplan.clouds"

#: The first part of the names of sections, by namespace: ``[watcher_planners.weight]``.
SECTIONS = {
    PLANNERS: "watcher_planners",
    ACTIONS: "watcher_actions",
    ENGINES: "watcher_workflow_engines",
}

_WHAT = {PLANNERS: "planner", ACTIONS: "action type", ENGINES: "workflow engine", CLOUDS: "cloud"}


def entries(namespace: str) -> list[EntryPoint]:
    """Return the entry points of a namespace, without importing what they name."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(namespace, names=[])
    return manager.list_entry_points()


def names(namespace: str) -> list[str]:
    """List the plugins of a namespace in alphabetical order, without importing them."""
    return sorted({entry.name for entry in entries(namespace)})


def section_of(namespace: str, name: str) -> str:
    """Return the name of the section of the configuration in which a plugin has its options.

    >>> section_of(PLANNERS, "weight"), section_of(CLOUDS, "openstack")
    ('watcher_planners.weight', 'openstack')
    """
    return f"{SECTIONS[namespace]}.{name}" if namespace in SECTIONS else name


def load(namespace: str, name: str) -> Any:
    """Import the class that is registered under a name.

    Raises UnknownPlugin, AmbiguousPlugin or BrokenPlugin.
    """
    what = _WHAT[namespace]
    targets = [entry.value for entry in entries(namespace) if entry.name == name]
    if not targets:
        raise UnknownPlugin(what, name, names(namespace))
    if len(targets) > 1:
        raise AmbiguousPlugin(what, name, targets)
    try:
        return DriverManager(namespace, name).driver
    except Exception as reason:
        # Importing a plugin runs code of third parties, which may raise any exception.
        raise BrokenPlugin(what, name, f"{type(reason).__name__}: {reason}") from reason


def planner(name: str) -> type[Planner[Any]]:
    """Import the planner of that name; raises the errors of :func:`load`."""
    found = load(PLANNERS, name)
    if not (isinstance(found, type) and issubclass(found, Planner)):
        raise BrokenPlugin("planner", name, "it is no subclass of planner.contract.Planner")
    declared_options("planner", name, found)
    return found


def declared_options(what: str, name: str, plugin: Any) -> Sequence[cfg.Opt]:
    """Return the ``OPTIONS`` of a plugin.

    Raises BrokenPlugin if they are no options, or if two of them have the same name in a file.
    """
    # It takes long to import, and most commands load no plugin with options.
    from oslo_config import cfg

    options = getattr(plugin, "OPTIONS", ())
    # Several callers read it, and a generator has its options only once.
    if not isinstance(options, Sequence) or not all(isinstance(o, cfg.Opt) for o in options):
        raise BrokenPlugin(what, name, "its OPTIONS are not a list of oslo.config options")
    for option, number in Counter(o.dest for o in options).items():
        if number > 1:
            raise BrokenPlugin(what, name, f"it declares two options {option!r}")
    return tuple(options)


def _require_contract(name: str, found: Any) -> None:
    """Raise BrokenPlugin if a class is no action type of that name."""
    missing = [
        attribute
        for attribute in ("TYPE", "SCHEMA", "touches", "estimate", "describe")
        if not hasattr(found, attribute)
    ]
    if missing:
        raise BrokenPlugin("action type", name, f"it has no {', '.join(missing)}")
    if name != found.TYPE:
        reason = f"it is registered as {name!r} and calls itself {found.TYPE!r}"
        raise BrokenPlugin("action type", name, reason)
    _require_resolved(name, found.SCHEMA)


def _require_resolved(name: str, schema: Mapping[str, Any]) -> None:
    """Raise BrokenPlugin if a schema has a reference that cannot be resolved.

    What such a reference marks as secret would be shown.
    """
    if not has_keyword(schema, *schema_references.KEYWORDS):
        return
    # jsonschema takes long to import, and few schemas have references.
    from planner import schema_errors

    try:
        schema_errors.require_valid(schema)
    except ValueError as reason:
        raise BrokenPlugin("action type", name, str(reason)) from reason


class ActionTypes(Mapping[str, type[ActionType]]):
    """The installed action types by name; each is imported when it is first accessed."""

    def __init__(self) -> None:
        self._loaded: dict[str, type[ActionType]] = {}
        #: Why classes that were imported cannot be used: to check a schema takes long.
        self._refused: dict[str, str] = {}

    def __getitem__(self, name: str) -> type[ActionType]:
        """Import the plugin class; raises the errors of :func:`load`."""
        found = self._loaded.get(name)
        if found is None:
            if name in self._refused:
                raise BrokenPlugin("action type", name, self._refused[name])
            found = load(ACTIONS, name)
            try:
                _require_contract(name, found)
            except BrokenPlugin as broken:
                self._refused[name] = broken.reason
                raise
            self._loaded[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in alphabetical order, without importing."""
        return iter(names(ACTIONS))

    def __len__(self) -> int:
        """Return the number of installed action types."""
        return len(names(ACTIONS))
