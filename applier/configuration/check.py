# SPDX-License-Identifier: Apache-2.0
"""Checks the options of our sections at start, in all files and in the environment.

Sections of others in a shared file are left alone, unless their names are nearly those of ours. A
plugin is imported only if one of its options is set. ``watcher_options.json`` has the sections and
options that Watcher reads, and its release; ``tools/watcher_options.py`` writes it.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg

from applier.configuration import plugin_options
from applier.configuration.option_types import explained
from applier.configuration.options import BY_SECTION
from applier.errors import ConfigurationError
from planner import safe_text
from planner.errors import Mistake, PlannerError, UnknownPlugin, accepted
from planner.making import registry
from planner.making.configuration_files import SetOption, entries, files_of
from planner.making.options import IN_WATCHER, LIMITS, SECTION_IN_WATCHER
from planner.planners.number_options import NumberByType

Sections = Mapping[str, Sequence[cfg.Opt]]
_VARIABLE = re.compile("OS_([^a-z]+?)__([^a-z]+)")
#: The least similarity (1 is equal) at which a known name was probably meant: for the name of a
#: section, and for that of a plugin. Names of sections begin alike, those of plugins do not.
_SIMILAR, _SIMILAR_NAME = 0.82, 0.6
#: The options that name a plugin, and that Watcher reads, too: what they name, and its namespace.
_NAMES_OF = {
    ("watcher_planner", "planner"): ("planner", registry.PLANNERS),
    (SECTION_IN_WATCHER, "planner"): ("planner", registry.PLANNERS),
    ("watcher_applier", "workflow_engine"): ("workflow engine", registry.ENGINES),
}
#: The namespaces of plugins by the first part of their sections: ``watcher_actions`` and others.
_NAMESPACES = {section: namespace for namespace, section in registry.SECTIONS.items()}


class Setting(NamedTuple):
    """An option that is set; ``place`` is the file and line, or the environment variable."""

    place: str
    section: str
    option: str
    text: str


def check(conf: cfg.ConfigOpts, own: Sections, environment: Mapping[str, str]) -> list[str]:
    """Check everything that is set; return warnings. Raises ConfigurationError with all mistakes.

    ``own`` are the options by section that belong to no plugin.
    """
    settings = [*_in_files(conf), *_in_environment(environment, own)]
    mistakes: list[Mistake] = []
    told: list[str] = []
    # The last setting of an option holds; those in the environment come after those in files.
    holding: dict[tuple[str, str], tuple[Setting, cfg.Opt]] = {}
    for setting in settings:
        try:
            if options := _options_of(setting.section, own, conf):
                section, known = options
                if opt := _option(setting, known, conf):
                    holding[section, opt.dest] = setting, opt
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=setting.place))
        except PlannerError as reason:
            told.append(f"{setting.place}: not checked: {reason}")
    for (section, _), (setting, opt) in holding.items():
        try:
            value = _value(conf, section, opt, setting.text, one_line=section in own)
            doubts = [*_not_installed(conf, section, opt, value), *_without_effect(opt, value)]
            told += [f"{setting.place}: {text}" for text in doubts]
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=setting.place))
    if mistakes:
        places = [setting.place for setting in settings]
        mistakes.sort(key=lambda mistake: places.index(mistake.place or ""))
        raise ConfigurationError("; ".join(map(str, mistakes)), mistakes)
    return told


def _in_files(conf: cfg.ConfigOpts) -> Iterator[Setting]:
    for file in files_of(conf):
        for entry in entries(file):
            yield Setting(entry.place, entry.section, entry.option, entry.value)


def _in_environment(environment: Mapping[str, str], own: Sections) -> Iterator[Setting]:
    """Yield the settings of our sections that oslo.config reads from the environment."""
    for variable, text in environment.items():
        if found := _VARIABLE.fullmatch(variable):
            section, option = found[1].lower(), found[2].lower()
            if section in own or section.partition(".")[0] in _NAMESPACES:
                yield Setting(f"environment variable {variable}", section, option, text)


def _options_of(
    section: str, own: Sections, conf: cfg.ConfigOpts
) -> tuple[str, Iterable[cfg.Opt]] | None:
    """Return our section of this name, and its options; None for a section of somebody else.

    Raises ValueError for a name that is like that of one of ours. The options raise PlannerError,
    when they are read, if their plugin cannot be loaded.
    """
    group, _, name = section.partition(".")
    if section == SECTION_IN_WATCHER:
        return section, chain(own[section], _of_planner_in_watcher(conf))
    if section in own:
        return section, own[section]
    if namespace := _NAMESPACES.get(group):
        known, cutoff = registry.names(namespace), _SIMILAR_NAME
    elif section == "DEFAULT" or has_section(section):
        return None
    else:
        namespace, name, cutoff = registry.CLOUDS, section, _SIMILAR
        known = registry.names(namespace)
    plugin = next((one for one in known if one.lower() == name), None)
    if plugin is not None:
        return registry.section_of(namespace, plugin), _options_of_plugin(namespace, plugin)
    names = {one: registry.section_of(namespace, one) for one in known}
    if namespace == registry.CLOUDS:
        names |= {one: one for one in (*own, *_NAMESPACES)}
    elif namespace != registry.ACTIONS:
        names[IN_WATCHER] = registry.section_of(namespace, IN_WATCHER)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        raise ValueError(f"no such section; did you mean {names[near[0]]!r}?")
    return None


def _of_planner_in_watcher(conf: cfg.ConfigOpts) -> Iterator[cfg.Opt]:
    """Yield the options of the planner that ``[watcher_planners.actionplan]`` names."""
    with suppress(cfg.Error, RecursionError):  # a wrong name is a mistake of its own
        yield from registry.planner(conf[SECTION_IN_WATCHER].planner).OPTIONS


def _options_of_plugin(namespace: str, name: str) -> Iterator[cfg.Opt]:
    """Yield the options of a plugin, first those that need no import of it."""
    if namespace == registry.ACTIONS:
        yield from plugin_options.OF_EVERY_TYPE
    yield from plugin_options.of_plugin(namespace, name)


def _option(setting: Setting, known: Iterable[cfg.Opt], conf: cfg.ConfigOpts) -> cfg.Opt | None:
    """Return the option that a setting sets, None for one of Watcher; raises ValueError."""
    section, name = setting.section, setting.option
    names = []
    for opt in known:
        names.append(opt.dest)
        older = {d.name for d in opt.deprecated_opts if d.group in (None, section)}
        if name == opt.dest or name in older:
            return opt
    if name in options_of(section) or (section == "DEFAULT" and name in conf):
        return None
    raise ValueError(f"no such option; {accepted(name, names)}")


def _value(conf: cfg.ConfigOpts, section: str, opt: cfg.Opt, text: str, *, one_line: bool) -> Any:
    """Return the value of an option; raises ValueError if it cannot be used."""
    if found := safe_text.UNKEPT.search(text):
        raise ValueError(safe_text.refused_character(found[0]))
    conf.register_opt(opt, group=section)
    try:
        value = conf[section][opt.dest]
    except (cfg.Error, ValueError, RecursionError) as error:
        raise ValueError(explained(opt, error)) from None
    if value is None and isinstance(opt.default, int | float):
        raise ValueError("it is empty: a number is expected")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{'its value' if opt.secret else value} is not a finite number")
    if one_line and any("\n" in text for text in _texts(value)):
        what = "commas separate the entries of a list" if isinstance(value, list) else "one line"
        raise ValueError(f"{what}; a line that begins with a blank continues the option before it")
    return value


def _texts(value: Any) -> Iterable[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _not_installed(conf: cfg.ConfigOpts, section: str, opt: cfg.Opt, value: Any) -> Iterator[str]:
    """Raise ValueError if an option names a planner or an engine that is not installed.

    Yield a warning instead where a plugin of Watcher may be meant: if Watcher reads the file as
    well, and for an engine whose name is like none of ours.
    """
    found = _NAMES_OF.get((section, opt.dest))
    if found is None or value == IN_WATCHER:
        return
    what, namespace = found
    known = [*registry.names(namespace)]
    if section != SECTION_IN_WATCHER:
        known.append(IN_WATCHER)
    if value not in known:
        text = str(UnknownPlugin(what, str(value), known))
        near = difflib.get_close_matches(str(value), known, n=1)
        may_be_theirs = namespace == registry.ENGINES and not near
        if not may_be_theirs and not any(map(is_of_watcher, files_of(conf))):
            raise ValueError(text)
        default = plugin_options.DEFAULT_ENGINE
        yield f"{text}; {default} runs plans" if namespace == registry.ENGINES else text


def _without_effect(opt: cfg.Opt, value: Any) -> Iterator[str]:
    """Yield a warning for each action type in a value that no plugin offers."""
    if isinstance(opt.type, NumberByType):
        names = list(value or ())
    elif opt.type is LIMITS:
        names = [t.removeprefix("type:") for t in value or () if t.startswith("type:")]
    else:
        return
    known = registry.names(registry.ACTIONS)
    for name in names:
        if name not in known and name != "*":
            yield f"no action type {name!r} is installed; {accepted(name, known)}"


#: Watcher names a section after each of its plugins: ``[watcher_strategies.NAME]``.
_OF_PLUGINS = (
    "watcher_strategies.",
    "watcher_goals.",
    "watcher_scoring_engines.",
    "watcher_cluster_data_model_collectors.",
)
#: The options by section that Watcher's own planner of that name reads in another way.
_TWO_MEANINGS = {
    "watcher_planners.weight": ("weights", "parallelization"),
    "watcher_planners.workload_stabilization": ("weights",),
}


def is_of_watcher(file: Path) -> bool:
    """Return whether a file has a section that Watcher reads and our own commands do not.

    That is for example ``[database]`` or ``[nova]``.
    """
    return any(
        has_section(section) and not section.startswith("watcher_planners.")
        for section in {entry.section for entry in entries(file)} - {*BY_SECTION, "DEFAULT"}
    )


def two_meanings(conf: cfg.ConfigOpts, planner: str) -> list[str]:
    """Return a warning if Watcher's services read options of a planner in another way, else [].

    Only options in files that these services read as well are meant: see :func:`is_of_watcher`.
    """
    section = f"watcher_planners.{planner}"
    found: list[SetOption] = [
        entry
        for file in files_of(conf)
        for entry in entries(file)
        if entry.section == section and entry.option in _TWO_MEANINGS.get(section, ())
    ]
    if not any(is_of_watcher(file) for file in {entry.file for entry in found}):
        return []
    places = ", ".join(entry.place for entry in found)
    return [
        f"{places}: here, the values are merged over the defaults and compared as numbers; "
        "Watcher's own planner takes them in place of all its defaults, and compares weights as "
        f"texts. What is meant for this product alone stands in [{SECTION_IN_WATCHER}]"
    ]


def has_section(section: str) -> bool:
    """Return whether Watcher reads a section."""
    return section in _sections() or section.startswith(_OF_PLUGINS)


def options_of(section: str) -> Sequence[str]:
    """Return the names of the options that Watcher reads in a section."""
    return _sections().get(section, ())


@cache
def _sections() -> Mapping[str, Sequence[str]]:
    text = Path(__file__).with_name("watcher_options.json").read_text(encoding="utf-8")
    found: Mapping[str, Sequence[str]] = json.loads(text)["sections"]
    return found
