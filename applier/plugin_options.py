# SPDX-License-Identifier: Apache-2.0
"""Options of action types and engines: plugins declare them, configuration sections set them.

The section ``[watcher_actions.TYPE]`` has the options of :data:`OF_EVERY_TYPE`, and those that the
plugin declares in ``OPTIONS``. The section ``[watcher_workflow_engines.NAME]`` has those that the
engine declares. A plugin is imported when its options are read or listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from applier.errors import ConfigurationError
from applier.scheduling.type_policy import TypePolicy
from planner import ranges, registry
from planner.configuration_files import place_of
from planner.errors import BrokenPlugin, PlannerError

if TYPE_CHECKING:
    from applier.contracts import ActionPlugin

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
_RESERVED = frozenset(option.dest for option in OF_EVERY_TYPE)


def action_section(action_type: str) -> str:
    """Return the name of the section of an action type."""
    return f"{registry.ACTIONS}.{action_type}"


def engine_section(engine: str) -> str:
    """Return the name of the section of a workflow engine."""
    return f"{registry.ENGINES}.{engine}"


def of_action_type(name: str, plugin: type[ActionPlugin]) -> Sequence[cfg.Opt]:
    """Return the options that an action type declares; raises BrokenPlugin."""
    declared = _declared("action type", name, plugin)
    for option in declared:
        if option.dest in _RESERVED:
            reason = f"it declares the option {option.dest!r}, which every action type has"
            raise BrokenPlugin("action type", name, reason)
    return declared


def of_engine(name: str, plugin: Any) -> Sequence[cfg.Opt]:
    """Return the options that an engine declares, ``max_workers`` among them.

    Raises BrokenPlugin.
    """
    declared = _declared("workflow engine", name, plugin)
    if "max_workers" not in {option.dest for option in declared}:
        raise BrokenPlugin("workflow engine", name, "it declares no option 'max_workers'")
    return declared


def _declared(what: str, name: str, plugin: Any) -> Sequence[cfg.Opt]:
    declared = getattr(plugin, "OPTIONS", ())
    if not isinstance(declared, Iterable) or not all(isinstance(o, cfg.Opt) for o in declared):
        raise BrokenPlugin(what, name, "its OPTIONS are not a list of oslo.config options")
    return tuple(declared)


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
            raise ConfigurationError(f"{place_of(conf, section, option.name)}: {why}") from reason
    return found


def policies(conf: cfg.ConfigOpts, types: Iterable[str]) -> dict[str, TypePolicy]:
    """Return the policy of each of these action types; raises ConfigurationError."""
    return {n: TypePolicy(**read(conf, action_section(n), OF_EVERY_TYPE)) for n in types}


def engine_options(conf: cfg.ConfigOpts, name: str, plugin: Any) -> dict[str, Any]:
    """Return the values of the options of an engine; raises ConfigurationError, BrokenPlugin."""
    return read(conf, engine_section(name), of_engine(name, plugin))


class ActionOptions(Mapping[str, Mapping[str, Any]]):
    """The values of the options that action types declare, by action type.

    A section is read when it is first accessed, which may raise ConfigurationError or BrokenPlugin.
    ``plugins`` are the installed ones; one that cannot be imported has no options.
    """

    def __init__(self, conf: cfg.ConfigOpts, plugins: Mapping[str, type[ActionPlugin]]) -> None:
        self._conf, self._plugins = conf, plugins
        self._known: dict[str, Mapping[str, Any]] = {}

    def check(self) -> None:
        """Read every section that is in a configuration file."""
        sections: dict[str, Any] = {}
        for path in self._conf.config_file or ():
            cfg.ConfigParser(path, sections).parse()
        for name in self._plugins:
            if action_section(name) in sections:
                self.get(name)

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        """Return the values for one action type; raises KeyError if it cannot be imported."""
        if name not in self._known:
            try:
                plugin = self._plugins[name]
            except PlannerError as reason:
                raise KeyError(name) from reason
            options = of_action_type(name, plugin)
            self._known[name] = read(self._conf, action_section(name), options)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def listed() -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """List the options of all installed action types and engines by section; import all of them.

    The options of a plugin that cannot be imported are left out; using it raises the error.
    """
    for name in registry.names(registry.ENGINES):
        try:
            yield engine_section(name), of_engine(name, registry.load(registry.ENGINES, name))
        except PlannerError:
            continue
    types: Any = registry.ActionTypes()
    for name in types:
        try:
            more = of_action_type(name, types[name])
        except PlannerError:
            more = ()
        yield action_section(name), (*OF_EVERY_TYPE, *more)
