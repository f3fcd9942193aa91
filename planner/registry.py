"""Finds planner and action plugins by name, through stevedore; loads only those that are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from stevedore import NamedExtensionManager

from planner.contract import ActionType, Planner
from planner.errors import AmbiguousPlugin, BrokenPlugin, UnknownPlugin

PLANNERS = "watcher_planners"
ACTIONS = "watcher_actions"
ENGINES = "watcher_workflow_engines"

_WHAT = {PLANNERS: "planner", ACTIONS: "action type", ENGINES: "workflow engine"}


def names(namespace: str) -> list[str]:
    """List the plugins of a namespace in alphabetical order, without loading them."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        namespace, names=[], on_missing_entrypoints_callback=None
    )
    return sorted(set(manager.entry_points_names()))


def load(namespace: str, name: str) -> Any:
    """Give the class that is registered under a name.

    Raises UnknownPlugin, AmbiguousPlugin or BrokenPlugin.
    """
    what = _WHAT[namespace]
    offered_by = _distributions(namespace).get(name, set())
    if len(offered_by) > 1:
        raise AmbiguousPlugin(what, name, offered_by)
    failures: list[BaseException] = []
    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        namespace,
        names=[name],
        on_missing_entrypoints_callback=None,
        on_load_failure_callback=lambda _, __, reason: failures.append(reason),
    )
    if failures:
        reason = failures[0]
        raise BrokenPlugin(what, name, f"{type(reason).__name__}: {reason}") from reason
    if name not in manager:
        raise UnknownPlugin(what, name, names(namespace))
    return manager[name].plugin


@cache
def _distributions(namespace: str) -> dict[str, set[str]]:
    """Say which distributions offer each name. Stevedore keeps one, and forgets whose it is."""
    offered_by: dict[str, set[str]] = {}
    for entry_point in entry_points(group=namespace):
        if entry_point.dist:
            offered_by.setdefault(entry_point.name, set()).add(entry_point.dist.name)
    return offered_by


def planner(name: str) -> type[Planner[Any]]:
    """Give the planner of that name; raises as :func:`load` does."""
    found = load(PLANNERS, name)
    if not (isinstance(found, type) and issubclass(found, Planner)):
        raise BrokenPlugin("planner", name, "it is no subclass of planner.contract.Planner")
    return found


class ActionTypes(Mapping[str, type[ActionType]]):
    """The installed action types by name; each is loaded when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, type[ActionType]] = {}

    def __getitem__(self, name: str) -> type[ActionType]:
        """Give the plugin class; raises as :func:`load` does."""
        found = self._loaded.get(name)
        if found is None:
            found = load(ACTIONS, name)
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
            self._loaded[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        """Go through the names in alphabetical order, without loading."""
        return iter(names(ACTIONS))

    def __len__(self) -> int:
        """How many are installed."""
        return len(names(ACTIONS))
