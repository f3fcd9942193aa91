# SPDX-License-Identifier: Apache-2.0
"""Checks a configuration at start: names, values and repetitions, in all files and the environment.

A plugin is imported only if one of its options is set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oslo_config import cfg, types

from applier.configuration import plugin_options, shared_file, watcher_options
from applier.configuration.option_types import explained
from applier.errors import ConfigurationError
from planner import registry, safe_text
from planner.configuration_files import SetOption, entries, files_of
from planner.errors import Mistake, PlannerError, UnknownPlugin, accepted
from planner.options import IN_WATCHER, SECTION_IN_WATCHER, LimitsType
from planner.planners.numbers import NumberByType

_VARIABLE = re.compile("OS_(.+?)__(.+)")
_CONTINUED = "a line that begins with a blank continues the option before it"
#: A number in ASCII digits. Python reads other digits and "_" as well.
_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
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
    #: None for one in the environment.
    entry: SetOption | None = None


class Option(NamedTuple):
    """An option of ours, and the section under which it is registered.

    ``required`` are the options without a default that its plugin requires. A planner has none,
    because documents have options of planners, too.
    """

    section: str
    opt: cfg.Opt
    required: Sequence[cfg.Opt] = ()


class _NotOurs(Exception):
    """A setting that is not checked. The message is a warning; it is empty for those of Watcher."""


def check(
    conf: cfg.ConfigOpts,
    own: Mapping[str, Sequence[cfg.Opt]],
    environment: Mapping[str, str],
) -> list[str]:
    """Check everything that is set; return warnings. Raises ConfigurationError with all mistakes.

    ``own`` are the options by section that belong to no plugin. Options of Watcher are not checked.
    """
    settings = [*_in_files(conf), *_in_environment(environment, own)]
    mistakes: list[Mistake] = list(_in_small_letters(environment, own))
    told: list[str] = []
    # The last setting of an option holds; those in the environment come after those in files.
    holding: dict[Option, Setting] = {}
    for setting in settings:
        try:
            option = _option(setting, own, conf)
            earlier = holding.get(option)
            if earlier and not option.opt.multi:
                told += _repeated(earlier, setting)
            if earlier is None or not _has_older_name(setting, earlier, option):
                holding[option] = setting
        except _NotOurs as reason:
            told += [f"{setting.place}: {reason}"] if str(reason) else []
        except ValueError as reason:
            if _is_perhaps_foreign(setting, own, conf):
                told.append(f"{setting.place}: {reason}")
            else:
                mistakes.append(Mistake(str(reason), place=setting.place))
    for option, setting in holding.items():
        try:
            value = _value(conf, option, setting.text)
            _require_kept(option, value, one_line=option.section in own)
            doubts = [*_not_installed(conf, option, value), *_without_effect(option.opt, value)]
            told += [f"{setting.place}: {text}" for text in doubts]
        except ValueError as reason:
            mistakes.append(Mistake(str(reason), place=setting.place))
    for place in dict.fromkeys(_unset(holding)):
        mistakes.append(Mistake(plugin_options.UNSET, place=place))
    if mistakes:
        order = {setting.place: i for i, setting in enumerate(settings)}
        mistakes.sort(key=lambda mistake: order.get(mistake.place or "", len(order)))
        raise ConfigurationError("; ".join(map(str, mistakes)), mistakes)
    return list(dict.fromkeys(told))


def _in_files(conf: cfg.ConfigOpts) -> Iterator[Setting]:
    for file in files_of(conf):
        for entry in entries(file):
            yield Setting(entry.place, entry.section, entry.option, entry.value, entry)


def _in_environment(
    environment: Mapping[str, str], own: Mapping[str, Sequence[cfg.Opt]]
) -> Iterator[Setting]:
    """Yield the settings that oslo.config reads from the environment.

    Only those of our sections, and of names that are probably misspelt ones; other programs have
    variables of this form as well.
    """
    for variable, text in environment.items():
        found = _VARIABLE.fullmatch(variable)
        if found and variable == variable.upper():
            section, option = found[1].lower(), found[2].lower()
            if _is_ours(section, own) or _is_misspelt(section, own):
                yield Setting(f"environment variable {variable}", section, option, text)


def _in_small_letters(
    environment: Mapping[str, str], own: Mapping[str, Sequence[cfg.Opt]]
) -> Iterator[Mistake]:
    """Yield a mistake for each variable of our sections that oslo.config does not read."""
    for variable in environment:
        found = _VARIABLE.fullmatch(variable)
        if found and variable != variable.upper() and _is_ours(found[1].lower(), own):
            text = f"not read: {variable.upper()} is, in capital letters"
            yield Mistake(text, place=f"environment variable {variable}")


def _is_ours(section: str, own: Mapping[str, Sequence[cfg.Opt]]) -> bool:
    return (
        section in own
        or section.partition(".")[0] in _NAMESPACES
        or section in map(str.lower, registry.names(registry.CLOUDS))
    )


def _is_misspelt(section: str, own: Mapping[str, Sequence[cfg.Opt]]) -> bool:
    """Return whether a name is like that of a section of ours, and nobody else's."""
    if section == "default" or watcher_options.has_section(section):
        return False
    return _similar(section, _sections(own), _SIMILAR) is not None


def _is_perhaps_foreign(
    setting: Setting, own: Mapping[str, Sequence[cfg.Opt]], conf: cfg.ConfigOpts
) -> bool:
    """Return whether a variable may be another program's.

    The section of ours that its section is like has no such option.
    """
    if setting.entry is not None or _is_ours(setting.section, own):
        return False
    near = _similar(setting.section, _sections(own), _SIMILAR) or setting.section
    try:
        _option(setting._replace(section=near), own, conf)
    except (ValueError, _NotOurs):
        return True
    return False


def _sections(own: Mapping[str, Sequence[cfg.Opt]]) -> list[str]:
    """List the names of all sections of ours, with those of the installed plugins."""
    groups = (*registry.SECTIONS, registry.CLOUDS)
    return [*own, *(registry.section_of(g, n) for g in groups for n in registry.names(g))]


def _repeated(earlier: Setting, later: Setting) -> Iterator[str]:
    """Yield a warning if one file sets an option twice by the same name."""
    if earlier.entry and _is_of_same_file(earlier, later) and earlier.option == later.option:
        yield f"{later.place}: set on line {earlier.entry.line} already; this one holds"


def _has_older_name(later: Setting, earlier: Setting, option: Option) -> bool:
    """Return whether an earlier setting of the same file holds, because it has the current name."""
    return _is_of_same_file(earlier, later) and earlier.option == option.opt.dest != later.option


def _is_of_same_file(earlier: Setting, later: Setting) -> bool:
    return bool(earlier.entry and later.entry and earlier.entry.file == later.entry.file)


def _option(setting: Setting, own: Mapping[str, Sequence[cfg.Opt]], conf: cfg.ConfigOpts) -> Option:
    """Return the option that a setting sets.

    Raises ValueError if there is no such option, _NotOurs if the setting is not to be checked.
    """
    section, name = setting.section, setting.option
    known: dict[str, Option] = {}
    for registered, options in _options_of(section, own):
        required = tuple(o for o in options if o.required and o.default is None)
        if registered.startswith(f"{registry.SECTIONS[registry.PLANNERS]}."):
            required = ()
        known |= {o.dest: Option(registered, o, required) for o in options}
        earlier = {
            d.name: known[o.dest]
            for o in options
            for d in o.deprecated_opts
            if d.group in (None, section)
        }
        if found := known.get(name) or earlier.get(name):
            return found
    of_watcher = watcher_options.options(section)
    # The options of libraries, such as oslo.log, are in the section DEFAULT.
    if name in of_watcher or (section == "DEFAULT" and name in conf):
        raise _NotOurs
    raise ValueError(f"no such option; {accepted(name, known or of_watcher)}")


def _options_of(
    section: str, own: Mapping[str, Sequence[cfg.Opt]]
) -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """Yield the section, with some of its options; first those that need no import of a plugin.

    Raises as :func:`_option`.
    """
    group, _, name = section.partition(".")
    if section in own:
        yield section, own[section]
    elif group in _NAMESPACES:
        own_names = [s.removeprefix(f"{group}.") for s in own if s.startswith(f"{group}.")]
        yield from _options_of_plugin(_NAMESPACES[group], name, own_names)
    elif section.lower() in map(str.lower, registry.names(registry.CLOUDS)):
        yield from _options_of_plugin(registry.CLOUDS, section, ())
    elif section != "DEFAULT":
        if watcher_options.has_section(section):
            raise _NotOurs
        _refuse_similar(section, _sections(own), _SIMILAR)
        raise _NotOurs("no such section, neither here nor in Watcher: it has no effect")


def _options_of_plugin(
    group: str, name: str, own_names: Sequence[str]
) -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    known = {n.lower(): n for n in registry.names(group)}
    if name not in known:
        _refuse_similar(name, [*known, *own_names], _SIMILAR_NAME)
        raise _NotOurs(f"no {name!r} is installed in {group}: the section has no effect")
    registered = registry.section_of(group, known[name])
    if group == registry.ACTIONS:
        yield registered, plugin_options.OF_EVERY_TYPE
    try:
        if group == registry.PLANNERS:
            yield registered, registry.planner(known[name]).OPTIONS
            return
        plugin = registry.load(group, known[name])
        if group == registry.ENGINES:
            yield registered, plugin_options.of_engine(name, plugin)
        elif group == registry.ACTIONS:
            yield registered, plugin_options.of_action_type(name, plugin)
        else:
            yield registered, plugin_options.of_cloud(name, plugin)
    except PlannerError as reason:
        raise _NotOurs(f"not checked: {reason}") from reason


def _refuse_similar(name: str, known: Iterable[str], cutoff: float) -> None:
    """Raise ValueError for the name of a section, or its last part, that is like a known one."""
    if near := _similar(name, known, cutoff):
        raise ValueError(f"no such section; did you mean {near!r}?")


def _similar(name: str, known: Iterable[str], cutoff: float) -> str | None:
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def _unset(holding: Iterable[Option]) -> Iterator[str]:
    """Yield the place of each required option that is not set, of plugins with others that are."""
    known = {(option.section, option.opt.dest) for option in holding}
    for option in holding:
        for opt in option.required:
            if (option.section, opt.dest) not in known:
                yield f"[{option.section}] {opt.dest}"


def _value(conf: cfg.ConfigOpts, option: Option, text: str) -> Any:
    """Return the value of an option; raises ValueError if it cannot be used."""
    section, opt = option.section, option.opt
    conf.register_opt(opt, group=section)
    if isinstance(opt.type, types.Integer | types.Float) and "\n" in text.strip():
        raise ValueError(f"one number is expected; {_CONTINUED}")
    try:
        value = conf[section][opt.dest]
    except (cfg.Error, ValueError, RecursionError) as error:
        raise ValueError(explained(opt, error)) from None
    if isinstance(opt.type, types.Integer | types.Float):
        plain = text.strip().strip("\"'")
        shown = "its value" if opt.secret else repr(plain)
        if value is None and opt.default is not None:
            raise ValueError("it is empty: a number is expected")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{shown} is not a finite number")
        if value is not None and "$" not in plain and not _NUMBER.fullmatch(plain):
            raise ValueError(f"{shown} is not a number in the digits 0 to 9")
    return value


def _require_kept(option: Option, value: Any, *, one_line: bool) -> None:
    """Raise ValueError for characters that no file name, address or record can have.

    With ``one_line``, also for a line break within a text.
    """
    texts = list(_texts(value))
    if found := next(filter(None, map(safe_text.UNKEPT.search, texts)), None):
        raise ValueError(safe_text.refused_character(found[0]))
    if one_line and any("\n" in text for text in texts):
        is_list = isinstance(option.opt.type, types.List | types.Dict)
        more = "commas separate the entries of a list" if is_list else "one line is expected"
        raise ValueError(f"{more}; {_CONTINUED}")


def _texts(value: Any) -> Iterator[str]:
    """Yield each text in a value of an option."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for part in pair for text in _texts(part))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (text for part in value for text in _texts(part))


def _not_installed(conf: cfg.ConfigOpts, option: Option, value: Any) -> Iterator[str]:
    """Raise ValueError if an option names a planner or an engine that is not installed.

    If Watcher reads the file as well, yield a warning instead: a plugin of Watcher may be meant.
    """
    found = _NAMES_OF.get((option.section, option.opt.dest))
    if found is None or value == IN_WATCHER:
        return
    what, namespace = found
    known = registry.names(namespace)
    if value not in known:
        text = str(UnknownPlugin(what, str(value), known))
        if not any(map(shared_file.is_of_watcher, files_of(conf))):
            raise ValueError(text)
        default = plugin_options.DEFAULT_ENGINE
        yield f"{text}; {default} runs plans" if namespace == registry.ENGINES else text


def _without_effect(opt: cfg.Opt, value: Any) -> Iterator[str]:
    """Yield a warning for each action type in a value that no plugin offers."""
    if isinstance(opt.type, NumberByType):
        names = list(value or ())
    elif isinstance(opt.type, LimitsType):
        names = [t.removeprefix("type:") for t in value or () if t.startswith("type:")]
    else:
        return
    known = registry.names(registry.ACTIONS)
    for name in names:
        if name not in known and name != "*":
            yield f"no action type {name!r} is installed; {accepted(name, known)}"
