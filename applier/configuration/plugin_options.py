# SPDX-License-Identifier: Apache-2.0
"""Options of action types, engines and clouds: plugins declare them, the configuration sets them.

The section ``[watcher_actions.TYPE]`` has the options of :data:`OF_EVERY_TYPE`, and those that the
plugin declares in ``OPTIONS``. The section ``[watcher_workflow_engines.NAME]`` has those that the
engine declares, the section ``[NAME]`` those of a cloud. A plugin is imported when its options are
read or listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from oslo_config import cfg, types

from applier.contracts import RunOptions
from applier.contracts.clouds import Cloud
from applier.errors import ConfigurationError
from applier.run.plan_cloud import SIMULATED
from planner.errors import BrokenPlugin, PlannerError, UnknownPlugin
from planner.making import registry
from planner.making.configuration_files import place_of
from planner.making.registry import ACTIONS, CLOUDS, ENGINES, PLANNERS, section_of
from planner.schemas import ranges

if TYPE_CHECKING:
    from applier.contracts import ActionPlugin
    from applier.scheduling.failures import OnFailure, TypePolicy
    from planner.plan.model import ActionPlan

T = TypeVar("T")
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


def of_plugin(namespace: str, name: str) -> Sequence[cfg.Opt]:
    """Return the options that a plugin declares; raises PlannerError if it cannot be used."""
    if namespace == PLANNERS:
        return registry.planner(name).OPTIONS
    of = {ENGINES: of_engine, CLOUDS: of_cloud, ACTIONS: of_action_type}[namespace]
    return of(name, registry.load(namespace, name))


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


class OnFirstUse(Mapping[str, T]):
    """Values by action type; ``read`` reads each when it is first accessed.

    An access may raise what ``read`` raises. ``types`` are read when one is needed.
    """

    def __init__(self, types: Collection[str], read: Callable[[str], T]) -> None:
        self._types, self._read = types, read
        self._known: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            if name not in list(self._types):
                raise KeyError(name)
            self._known[name] = self._read(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def policies(conf: cfg.ConfigOpts, types: Collection[str]) -> Mapping[str, TypePolicy]:
    """Return retries, delay, time-out and estimate by type; an access raises ConfigurationError."""
    from applier.scheduling.failures import TypePolicy

    def policy(name: str) -> TypePolicy:
        return TypePolicy(**read(conf, section_of(ACTIONS, name), OF_EVERY_TYPE))

    return OnFirstUse(types, policy)


def engine(conf: cfg.ConfigOpts) -> tuple[str, Any, Mapping[str, Any]]:
    """Return the name and the class of the configured engine, and the values of its options.

    Raises ConfigurationError, UnknownPlugin, BrokenPlugin.
    """
    name = engine_name(conf)
    plugin = registry.load(ENGINES, name)
    return name, plugin, _complete(conf, section_of(ENGINES, name), of_engine(name, plugin))


def on_failure_of(conf: cfg.ConfigOpts, plan: ActionPlan, given: str | None = None) -> OnFailure:
    """Return the effect of a failed action: as the plan says, as given, or as configured.

    In the configuration, ``action_execution_rule`` may have a rule for the plan's strategy.
    """
    return _policy(conf, plan, given)[0]


def run_options(
    conf: cfg.ConfigOpts,
    max_workers: int | None,
    on_failure: str | None,
    reason: str | None,
    plan: ActionPlan,
) -> RunOptions:
    """Return the options of a run of a plan; what is given takes precedence."""
    name, _, values = engine(conf)
    section = section_of(ENGINES, name)
    policy, policy_from = _policy(conf, plan, on_failure)
    workers_from = "--set" if max_workers else _source(conf, section, "max_workers")
    workers = max_workers or values["max_workers"]
    return RunOptions(workers, workers_from, str(policy), policy_from, reason)


def _policy(conf: cfg.ConfigOpts, plan: ActionPlan, given: str | None) -> tuple[OnFailure, str]:
    """Return the effect of a failed action, and where it comes from."""
    from applier.scheduling.failures import OnFailure

    if known := plan.on_failure or given:
        return OnFailure(known), "the plan" if plan.on_failure else "--set"
    name, _, values = engine(conf)
    rule = (values.get("action_execution_rule") or {}).get(plan.strategy_name or "")
    if rule:
        return OnFailure.by_rule(rule), f"[{section_of(ENGINES, name)}] action_execution_rule"
    configured = OnFailure(conf.watcher_applier.on_failure)
    return configured, _source(conf, "watcher_applier", "on_failure")


def _source(conf: cfg.ConfigOpts, section: str, option: str) -> str:
    """Return where a value of the configuration comes from: ``default``, or its section."""
    found = conf.get_location(option, section)
    is_default = found is None or found.location.name.endswith("default")
    return "default" if is_default else f"[{section}]"


def new_cloud(conf: cfg.ConfigOpts) -> Cloud:
    """Create the configured cloud, if that is not the simulated one.

    Raises ConfigurationError, PlannerError.
    """
    name = conf.actionplan.cloud
    make = registry.load(CLOUDS, name)
    options = _complete(conf, section_of(CLOUDS, name), of_cloud(name, make))
    cloud: Cloud = create("cloud", name, make, options)
    if cloud.name in ("", SIMULATED):
        raise BrokenPlugin("cloud", name, f"it calls itself {cloud.name!r}")
    return cloud


def action_options(
    conf: cfg.ConfigOpts, plugins: Mapping[str, type[ActionPlugin]]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the values of the options that action types declare, by action type.

    An access may raise ConfigurationError or BrokenPlugin. ``plugins`` are the installed ones; one
    that cannot be imported has no options.
    """

    def values(name: str) -> Mapping[str, Any]:
        try:
            plugin = plugins[name]
        except PlannerError as reason:
            raise KeyError(name) from reason
        return _complete(conf, section_of(ACTIONS, name), of_action_type(name, plugin))

    return OnFirstUse(plugins, values)


def listed() -> Iterator[tuple[cfg.OptGroup | str, Sequence[cfg.Opt]]]:
    """List the options of all installed plugins by section.

    All plugins are imported. The options of one that cannot be imported are left out; using it
    raises the error. :data:`OF_EVERY_TYPE` are listed once, for migrations.
    """
    for namespace in (PLANNERS, ENGINES, CLOUDS):
        for name in registry.names(namespace):
            with suppress(PlannerError):
                if options := of_plugin(namespace, name):
                    yield section_of(namespace, name), options
    types: Any = registry.ActionTypes()
    shared = section_of(ACTIONS, "migrate")
    text = "Each action type has a section with its name, and in it at least these options."
    yield cfg.OptGroup(shared, help=text), OF_EVERY_TYPE
    for name in types:
        with suppress(PlannerError):
            if more := of_action_type(name, types[name]):
                yield section_of(ACTIONS, name), more


def sections_of_types() -> list[str]:
    """Return the sections of all installed action types, each with :data:`OF_EVERY_TYPE`."""
    return [section_of(ACTIONS, name) for name in registry.ActionTypes()]
