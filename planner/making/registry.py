# SPDX-License-Identifier: Apache-2.0
"""Finds planners, action types, engines and clouds by name; each is imported when it is first used.

Plugins are entry points of installed distributions; stevedore finds and loads them. Planners and
action types may also stand in a file that the configuration names: see :func:`load_file`. The
sections of their options are named as in Watcher, but their namespaces are not, because Watcher
loads all plugins in its namespaces.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stevedore import DriverManager, NamedExtensionManager

from planner.contract import ActionType, Planner
from planner.errors import AmbiguousPlugin, BrokenPlugin, UnknownPlugin
from planner.schemas.checking import in_place

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


class InFile(NamedTuple):
    """A plugin in a file that the configuration names."""

    namespace: str
    name: str
    plugin: type

    @property
    def target(self) -> str:
        """Where it stands: the path of the file, and the name of the class."""
        return f"{self.plugin.__module__}:{self.plugin.__name__}"


#: The plugins in files, by the path of the file. As modules, they are the same in all of a process.
_files: dict[Path, list[InFile]] = {}


def load_file(path: Path) -> None:
    """Execute a Python file, once in each process, and register the plugins that it defines.

    Its planners are the subclasses of Planner, by their ``NAME``; its action types the other
    classes with ``TYPE`` and ``SCHEMA``, by their ``TYPE``. Raises BrokenPlugin if the file raises
    an error, or defines none.
    """
    if path in _files:
        return
    # The module is called like its file, which errors and the target of its plugins then name.
    spec = spec_from_file_location(str(path), path)
    if spec is None or spec.loader is None:
        raise BrokenPlugin("file of plugins", str(path), "it is no Python file: NAME.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as reason:
        # It runs code of third parties, which may raise any exception.
        del sys.modules[spec.name]
        text = f"{type(reason).__name__}: {reason}"
        raise BrokenPlugin("file of plugins", str(path), text) from reason
    found = []
    for defined in vars(module).values():
        if not isinstance(defined, type) or defined.__module__ != spec.name:
            continue
        is_planner, is_action = issubclass(defined, Planner), hasattr(defined, "SCHEMA")
        name = getattr(defined, "NAME" if is_planner else "TYPE", None)
        if isinstance(name, str) and (is_planner or is_action) and not inspect.isabstract(defined):
            found.append(InFile(PLANNERS if is_planner else ACTIONS, name, defined))
    if not found:
        raise BrokenPlugin("file of plugins", str(path), "it defines no action type and no planner")
    _files[path] = found
    names.cache_clear()
    load.cache_clear()


def _in_files(namespace: str) -> list[InFile]:
    return [one for one in chain(*_files.values()) if one.namespace == namespace]


@cache
def entries(namespace: str) -> list[EntryPoint]:
    """Return the entry points of a namespace, without importing what they name."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(namespace, names=[])
    return manager.list_entry_points()


@cache
def names(namespace: str) -> Sequence[str]:
    """List the plugins of a namespace in alphabetical order, without importing them."""
    found: list[EntryPoint | InFile] = [*entries(namespace), *_in_files(namespace)]
    return tuple(sorted({one.name for one in found}))


def section_of(namespace: str, name: str) -> str:
    """Return the name of the section of the configuration in which a plugin has its options.

    >>> section_of(PLANNERS, "weight"), section_of(CLOUDS, "openstack")
    ('watcher_planners.weight', 'openstack')
    """
    return f"{SECTIONS[namespace]}.{name}" if namespace in SECTIONS else name


@cache
def load(namespace: str, name: str) -> Any:
    """Import the class that is registered under a name, and return it.

    Raises UnknownPlugin, AmbiguousPlugin or BrokenPlugin.
    """
    what = _WHAT[namespace]
    in_files = [one for one in _in_files(namespace) if one.name == name]
    targets = [entry.value for entry in entries(namespace) if entry.name == name]
    targets += [one.target for one in in_files]
    if not targets:
        raise UnknownPlugin(what, name, names(namespace))
    if len(targets) > 1:
        raise AmbiguousPlugin(what, name, targets)
    if in_files:
        return in_files[0].plugin
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
    is_list = isinstance(options, Sequence)
    dests = [o.dest for o in options if isinstance(o, cfg.Opt)] if is_list else []
    if not is_list or len(dests) != len(options):
        raise BrokenPlugin(what, name, "its OPTIONS are not a list of oslo.config options")
    for option, number in Counter(dests).items():
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
    try:
        # What a definition marks as secret is then found without following references.
        found.SCHEMA = in_place(found.SCHEMA)
    except ValueError as reason:
        raise BrokenPlugin("action type", name, str(reason)) from reason


class ActionTypes(Mapping[str, type[ActionType]]):
    """The installed action types by name; each is imported when it is first accessed."""

    def __init__(self) -> None:
        self._loaded: dict[str, type[ActionType]] = {}
        #: Why classes that were imported cannot be used: to import one again takes long.
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
        return len(names(ACTIONS))
