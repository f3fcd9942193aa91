# SPDX-License-Identifier: Apache-2.0
"""Options of action types, engines and clouds: plugins declare them, the configuration sets them.

The section ``[watcher_actions.TYPE]`` has the options of :data:`OF_EVERY_TYPE`, and those that the
plugin declares in ``OPTIONS``. The section ``[watcher_workflow_engines.NAME]`` has those that the
engine declares, the section ``[NAME]`` those of a cloud. A plugin is imported when its options are
read or listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg, types

from applier.contracts.clouds import Cloud
from applier.errors import ConfigurationError
from applier.run.plan_cloud import SIMULATED
from planner import ranges, registry
from planner.configuration_files import place_of
from planner.errors import BrokenPlugin, PlannerError, UnknownPlugin
from planner.registry import ACTIONS, CLOUDS, ENGINES, section_of

if TYPE_CHECKING:
    from applier.contracts import ActionPlugin
    from applier.scheduling.verdict import TypePolicy

#: The options of every section ``[watcher_actions.TYPE]``, which the engine uses.
OF_EVERY_TYPE = (
    cfg.IntOpt(
        "retries",
        default=0,
        min=0,
        max=ranges.MOST,
        help="How many times a failed action of this type is retried.",
    ),
    cfg.FloatOpt(
        "retry_delay_s",
        default=0.0,
        min=0,
        max=ranges.LONGEST_S,
        help="Seconds before a failed action is retried.",
    ),
    cfg.FloatOpt(
        "timeout_s",
        min=0.001,
        max=ranges.LONGEST_S,
        sample_default=600.0,
        help="Seconds after which an action is told to stop. Default: no time-out.",
    ),
    cfg.FloatOpt(
        "estimate_s",
        min=0,
        max=ranges.LONGEST_S,
        sample_default=30.0,
        help="Expected seconds of an action, for forecasts. Default: the estimate of its type.",
    ),
)
#: The mistake of an option that a plugin declares with ``required=True``, and nobody sets.
UNSET = "it is required, and not set"
_RESERVED = frozenset(option.dest for option in OF_EVERY_TYPE)
DEFAULT_ENGINE = "taskflow"


def engine_name(conf: cfg.ConfigOpts) -> str:
    """Return the name of the configured engine.

    It is the default for ``actionplan``, as in Watcher, and for an engine that is not installed:
    one of another program, named in a file that it reads as well.
    """
    name = str(conf.watcher_applier.workflow_engine)
    return name if name in registry.names(registry.ENGINES) else DEFAULT_ENGINE


class InstalledCloud(types.String):
    """The type of an option that names a cloud plugin; the packaged one is always accepted."""

    def __call__(self, value: object) -> str:
        """Return the name; raises ValueError if no plugin offers it."""
        name = str(super().__call__(value))
        known = registry.names(registry.CLOUDS) if name != SIMULATED else [SIMULATED]
        if name not in known:
            raise ValueError(UnknownPlugin("cloud", name, known))
        return name


def of_action_type(name: str, plugin: type[ActionPlugin]) -> Sequence[cfg.Opt]:
    """Return the options that an action type declares; raises BrokenPlugin."""
    options = registry.declared_options("action type", name, plugin)
    for option in options:
        if option.dest in _RESERVED:
            reason = f"it declares the option {option.dest!r}, which every action type has"
            raise BrokenPlugin("action type", name, reason)
    return options


def of_engine(name: str, plugin: Any) -> Sequence[cfg.Opt]:
    """Return the options that an engine declares, ``max_workers`` among them.

    Raises BrokenPlugin.
    """
    if not (isinstance(plugin, type) and callable(getattr(plugin, "run", None))):
        raise BrokenPlugin("workflow engine", name, "it is no class with a method 'run'")
    options = registry.declared_options("workflow engine", name, plugin)
    if "max_workers" not in {option.dest for option in options}:
        raise BrokenPlugin("workflow engine", name, "it declares no option 'max_workers'")
    return options


def of_cloud(name: str, plugin: Any) -> Sequence[cfg.Opt]:
    """Return the options that a cloud declares; raises BrokenPlugin."""
    if not (isinstance(plugin, type) and issubclass(plugin, Cloud)):
        raise BrokenPlugin("cloud", name, "it is no subclass of applier.contracts.clouds.Cloud")
    return registry.declared_options("cloud", name, plugin)


def read(conf: cfg.ConfigOpts, section: str, options: Sequence[cfg.Opt]) -> dict[str, Any]:
    """Return the values of a section by option; raises ConfigurationError for an invalid value.

    The error names file, line, section and option.
    """
    conf.register_opts(options, group=section)
    found = {}
    for option in options:
        try:
            found[option.dest] = conf[section][option.dest]
        except (cfg.Error, ValueError) as reason:
            # The part before this in the message of oslo.config is the name of a class.
            why = str(reason).rpartition("is not valid: ")[2]
            raise ConfigurationError(f"{place_of(conf, section, option.dest)}: {why}") from reason
    return found


def _complete(conf: cfg.ConfigOpts, section: str, options: Sequence[cfg.Opt]) -> dict[str, Any]:
    """Return the values as :func:`read`; a required option without one raises the error, too."""
    found = read(conf, section, options)
    for option in options:
        if option.required and found[option.dest] is None:
            raise ConfigurationError(f"[{section}] {option.dest}: {UNSET}")
    return found


def create(what: str, name: str, plugin: Any, options: Mapping[str, Any]) -> Any:
    """Create an object of a plugin with the values of its options.

    Raises BrokenPlugin if it does not take one of them, or is abstract.
    """
    try:
        return plugin(**options)
    except TypeError as reason:
        raise BrokenPlugin(what, name, str(reason)) from reason


def policies(conf: cfg.ConfigOpts, types: Iterable[str]) -> dict[str, TypePolicy]:
    """Return retries, delay, time-out and estimate by type; raises ConfigurationError."""
    from applier.scheduling.verdict import TypePolicy

    return {n: TypePolicy(**read(conf, section_of(ACTIONS, n), OF_EVERY_TYPE)) for n in types}


def engine_options(conf: cfg.ConfigOpts, name: str, plugin: Any) -> dict[str, Any]:
    """Return the values of the options of an engine; raises ConfigurationError, BrokenPlugin."""
    return _complete(conf, section_of(ENGINES, name), of_engine(name, plugin))


def cloud_options(conf: cfg.ConfigOpts, name: str, plugin: Any) -> dict[str, Any]:
    """Return the values of the options of a cloud; raises ConfigurationError, BrokenPlugin."""
    return _complete(conf, section_of(CLOUDS, name), of_cloud(name, plugin))


class ActionOptions(Mapping[str, Mapping[str, Any]]):
    """The values of the options that action types declare, by action type.

    A section is read when it is first accessed, which may raise ConfigurationError or BrokenPlugin.
    ``plugins`` are the installed ones; one that cannot be imported has no options.
    """

    def __init__(self, conf: cfg.ConfigOpts, plugins: Mapping[str, type[ActionPlugin]]) -> None:
        self._conf, self._plugins = conf, plugins
        self._known: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        """Return the values for one action type; raises KeyError if it cannot be imported."""
        if name not in self._known:
            try:
                plugin = self._plugins[name]
            except PlannerError as reason:
                raise KeyError(name) from reason
            options = of_action_type(name, plugin)
            self._known[name] = _complete(self._conf, section_of(ACTIONS, name), options)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def listed() -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """List the options of all installed action types, engines and clouds by section.

    All plugins are imported. The options of one that cannot be imported are left out, except
    :data:`OF_EVERY_TYPE`; using it raises the error.
    """
    for group, of_plugin in ((ENGINES, of_engine), (CLOUDS, of_cloud)):
        for name in registry.names(group):
            try:
                options = of_plugin(name, registry.load(group, name))
            except PlannerError:
                continue
            if options:
                yield section_of(group, name), options
    types: Any = registry.ActionTypes()
    for name in types:
        try:
            more = of_action_type(name, types[name])
        except PlannerError:
            more = ()
        yield section_of(ACTIONS, name), (*OF_EVERY_TYPE, *more)
