# SPDX-License-Identifier: Apache-2.0
"""Options of planning: merges the values from all sources, and finds mistakes in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from oslo_config import cfg, types

from planner.errors import Mistake, Path, accepted
from planner.making import registry
from planner.making.configuration_files import entries, files_of, place_of
from planner.schemas import ranges

if TYPE_CHECKING:
    from planner.contract import Planner

#: The configuration section of the options that all planners share.
GROUP = "watcher_planner"
#: Maps each simple option type to its Python type, the pattern of a valid text, and its name in
#: messages.
_PLAIN: Mapping[type[types.ConfigType], tuple[type, str, str]] = {
    types.Boolean: (bool, r"(?i)true|1|on|yes|false|0|off|no", "true or false"),
    types.Integer: (int, r"\s*([-+]?[0-9]+\s*)?", "a whole number"),
}


class ReadBy(types.ConfigType):
    """Option type: ``read`` makes a value of a text or of a value of JSON, ``write`` a text of it.

    ``read`` raises a ValueError that names each wrong part.
    """

    def __init__(
        self, type_name: str, read: Callable[[Any], Any], write: Callable[[Any], str]
    ) -> None:
        super().__init__(type_name=type_name)
        self.read, self.write = read, write

    def __call__(self, value: Any) -> Any:
        return self.read(value)

    def _formatter(self, value: Any) -> str:
        return self.write(value)


def pairs_text(value: Mapping[str, object]) -> str:
    """Return a mapping as ``KEY=VALUE, KEY=VALUE``."""
    return ", ".join(f"{key}={one}" for key, one in value.items())


def _limits(value: str | Mapping[str, object]) -> dict[str, int]:
    expected = "KIND:NAME=N or KIND:*=N with N of 1 or more, at most nine digits"
    return dict(ranges.pairs(value, _limit, expected))


def _limit(token: str, number: str) -> tuple[str, int] | None:
    is_token = all(token.partition(":"))
    return (token, int(number)) if is_token and re.fullmatch("0*[1-9][0-9]{,8}", number) else None


#: Limits as text (``node:*=2, type:migrate=4``) or as a mapping.
LIMITS = ReadBy("limits", _limits, pairs_text)
#: Options of ``[watcher_planner]``.
OPTIONS = (
    cfg.StrOpt(
        "planner",
        default="weight",
        help="Planner for documents that name no planner and whose kind has no planner of its own. "
        "'actionplan', which is this product in Watcher, means the one of "
        "[watcher_planners.actionplan].",
    ),
    cfg.Opt(
        "limits",
        type=LIMITS,
        default={},
        help="Limits for all plans: how many actions may hold a resource at once. "
        "token=number, such as node:compute-1=1, or KIND:*=number for each resource of a kind, "
        "such as node:*=2.",
    ),
)


#: The name of this product as a planner of Watcher, and the section that names its planner.
IN_WATCHER = "actionplan"
SECTION_IN_WATCHER = f"watcher_planners.{IN_WATCHER}"
OPTIONS_IN_WATCHER = (
    cfg.StrOpt(
        "planner",
        default="weight",
        help="Planner of this product that plans solutions if [watcher_planner] planner is "
        "'actionplan', and in Watcher: an entry point of actionplan.planners. Its options may "
        "stand in this section as well, which only this product reads; they override those of its "
        "own section, such as [watcher_planners.weight], which Watcher may read in another way.",
    ),
)


def configuration(conf: cfg.ConfigOpts | None) -> cfg.ConfigOpts:
    """Return ``conf`` with the options of planning registered; None: one with all defaults."""
    if conf is None:
        conf = cfg.ConfigOpts()
        conf(args=[], default_config_files=[], default_config_dirs=[], use_env=False)
    conf.register_opts(OPTIONS, group=GROUP)
    conf.register_opts(OPTIONS_IN_WATCHER, group=SECTION_IN_WATCHER)
    return conf


def configured_planner(conf: cfg.ConfigOpts) -> tuple[str, str]:
    """Return the name of the configured planner, and the place of that setting for messages."""
    inside = conf[GROUP].planner == IN_WATCHER
    section = SECTION_IN_WATCHER if inside else GROUP
    return conf[section].planner, place_of(conf, section, "planner")


def sections_of(planner: str, conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """Return the sections with the options of a planner; a later one overrides an earlier one.

    Watcher reads some options of ``[watcher_planners.weight]`` in another way. So the options of
    the planner that ``[watcher_planners.actionplan]`` names may stand there as well.
    """
    own = registry.section_of(registry.PLANNERS, planner)
    return (own, SECTION_IN_WATCHER) if conf[SECTION_IN_WATCHER].planner == planner else (own,)


def is_set(conf: cfg.ConfigOpts, section: str, name: str) -> bool:
    """Return whether a registered option has another value than its default, or a wrong one."""
    try:
        found = conf.get_location(name, section)
    except (cfg.Error, ValueError, RecursionError):
        return True
    return found is None or found.location is not cfg.Locations.opt_default


def layers(
    planner_class: type[Planner[Any]],
    conf: cfg.ConfigOpts,
    value: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Iterator[Layer]:
    """Yield the sources of option values; a later one overrides an earlier one.

    They are the configuration, the fields of the document that are named like options, the field
    ``options`` of the document, and the argument ``options``.
    """
    for section in sections_of(planner_class.NAME, conf) if planner_class.OPTIONS else ():
        conf.register_opts(planner_class.OPTIONS, group=section)
        names = [o.dest for o in planner_class.OPTIONS if is_set(conf, section, o.dest)]
        # oslo.config converts the values, and refuses a wrong one when it is read.
        read = partial(_configured, conf[section])
        yield Layer(names, read, partial(place_of, conf, section))
    fields = {opt.dest: value.get(opt.dest) for opt in planner_class.OPTIONS}
    yield given({name: found for name, found in fields.items() if found is not None}, path=())
    own = value.get("options")
    yield given(own if isinstance(own, Mapping) else {})
    yield given(options, lambda name: f"option {name}")


def _configured(section: cfg.ConfigOpts.GroupAttr, opt: cfg.Opt) -> Any:
    return getattr(section, opt.dest)


class Layer(NamedTuple):
    """The options that one source sets; ``read`` returns the value of one, ``place`` its place."""

    names: Iterable[str]
    read: Callable[[cfg.Opt], Any]
    place: Callable[[str], str | None]
    #: The path of the mapping that holds the options, if they are in the document.
    path: Path = ("options",)


def given(
    values: Mapping[str, Any],
    place: Callable[[str], str | None] = lambda _: None,
    path: Path = ("options",),
) -> Layer:
    """Return the layer of values by name, from a document, the command line or a caller."""
    return Layer(values, lambda opt: _read(opt, values[opt.dest]), place, path)


def resolve(
    planner_class: type[Planner[Any]], layers: Iterable[Layer], mistakes: list[Mistake]
) -> SimpleNamespace:
    """Merge the layers into one value for each option; a later layer wins, mappings are merged.

    Unknown names and invalid values are added to ``mistakes``.
    """
    opts = {opt.dest: opt for opt in planner_class.OPTIONS}
    values = {
        name: dict(opt.default) if isinstance(opt.default, dict) else opt.default
        for name, opt in opts.items()
    }
    for layer in layers:
        for name in layer.names:
            place = layer.place(name)
            path = () if place else (*layer.path, name)
            if name not in opts:
                text = f"planner {planner_class.NAME!r} has no option {name!r}; "
                mistakes.append(Mistake(text + accepted(name, opts), path, place))
                continue
            try:
                read = layer.read(opts[name])
            except (ValueError, TypeError, cfg.Error) as reason:
                said = path and any(m.path == path for m in mistakes)  # by the schema
                if not said:
                    mistakes.append(Mistake(_why(reason), path, place))
                continue
            values[name] = {**values[name], **read} if isinstance(read, dict) else read
    return SimpleNamespace(**values)


def _read(opt: cfg.Opt, value: Any) -> Any:
    """Convert a value from the document, the command line or a file; raises ValueError."""
    if value is opt.default is None:
        return None
    if type(opt.type) in _PLAIN:
        kind, text, words = _PLAIN[type(opt.type)]
        of_kind = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        if not of_kind and not (isinstance(value, str) and re.fullmatch(text, value)):
            raise ValueError(f"{value!r} is not {words}")
    return opt.type(value)


def _why(reason: Exception) -> str:
    """Return the message of a ValueError, without the text that oslo.config adds."""
    own = reason.__context__ if isinstance(reason, cfg.ConfigFileValueError) else None
    return str(own or reason)


def unknown_keys(planner_class: type[Planner[Any]], conf: cfg.ConfigOpts) -> list[Mistake]:
    """Find keys that are not options, in the configuration sections that planning reads."""
    own = {opt.dest for opt in planner_class.OPTIONS}
    known = {GROUP: {opt.name for opt in OPTIONS}}
    for section in sections_of(planner_class.NAME, conf):
        known[section] = own
    if SECTION_IN_WATCHER in known:
        known[SECTION_IN_WATCHER] = own | {opt.name for opt in OPTIONS_IN_WATCHER}
    mistakes = []
    for file in files_of(conf):
        for entry in entries(file):
            names = known.get(entry.section)
            if names is not None and entry.option not in names:
                text = f"no such option; {accepted(entry.option, names)}"
                mistakes.append(Mistake(text, place=entry.place))
    return mistakes


def limits_of(conf: cfg.ConfigOpts, mistakes: list[Mistake]) -> dict[str, int]:
    """Return the configured limits; an invalid value is added to ``mistakes``."""
    try:
        return dict(conf[GROUP].limits)
    except (cfg.Error, ValueError) as reason:
        mistakes.append(Mistake(_why(reason), place=place_of(conf, GROUP, "limits")))
        return {}
