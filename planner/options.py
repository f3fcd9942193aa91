"""Options of planning: where each value comes from, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg, types

from planner.contract import Planner
from planner.errors import Mistake, accepted

#: Section of the options that all planners share.
GROUP = "watcher_planner"


class Limits(types.ConfigType):
    """Limits as text: ``node:*=2, type:migrate=4``; a mapping is read in the same way."""

    def __init__(self) -> None:
        super().__init__(type_name="limits")

    def __call__(self, value: str | Mapping[str, object]) -> dict[str, int]:
        """Read token=number pairs; raises ValueError naming each that is wrong."""
        if isinstance(value, Mapping):
            pairs = [(str(token), number) for token, number in value.items()]
        else:
            texts = [text.strip() for text in value.replace("\n", ",").split(",") if text.strip()]
            pairs = [(t.strip(), n.strip()) for t, _, n in (x.rpartition("=") for x in texts)]
        limits, wrong = {}, []
        for token, number in pairs:
            if not token or not str(number).isdecimal() or int(str(number)) < 1:
                wrong.append(f"{token}={number} is not KIND:NAME=N or KIND:*=N with N from 1 up")
            else:
                limits[token] = int(str(number))
        if wrong:
            raise ValueError("; ".join(wrong))
        return limits

    def _formatter(self, value: Mapping[str, int]) -> str:
        return ", ".join(f"{token}={number}" for token, number in value.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits)

    def __hash__(self) -> int:
        return hash(Limits)

    def __repr__(self) -> str:
        return "Limits"


#: Options of ``[watcher_planner]``.
OPTIONS = (
    cfg.StrOpt(
        "planner",
        default="weight",
        help="Planner of documents that neither name one nor are of a kind that has its own.",
    ),
    cfg.Opt(
        "limits",
        type=Limits(),
        default={},
        help="How many actions at once may hold a resource, for every plan: token=number, such as "
        "node:compute-1=1, or KIND:*=number for each of a kind by itself, such as node:*=2.",
    ),
)


def configuration(conf: cfg.ConfigOpts | None) -> cfg.ConfigOpts:
    """Give a configuration that has the options of planning; without one, their defaults."""
    if conf is None:
        conf = cfg.ConfigOpts()
        conf(args=[], default_config_files=[], default_config_dirs=[])
    conf.register_opts(OPTIONS, group=GROUP)
    return conf


def group_of(planner: str) -> str:
    """Name the configuration section of a planner."""
    return f"watcher_planners.{planner}"


def layers(
    planner_class: type[Planner[Any]],
    conf: cfg.ConfigOpts,
    value: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Give what sets options, weakest first, each with the place that its mistakes are given."""
    if planner_class.OPTIONS:
        group = group_of(planner_class.NAME)
        conf.register_opts(planner_class.OPTIONS, group=group)
        yield f"[{group}]", _Section(conf, group)
    own = value.get("options")
    yield None, own if isinstance(own, Mapping) else {}
    yield "option", options


class _Section(Mapping[str, Any]):
    """The values that one section of the configuration has, read when they are asked for."""

    def __init__(self, conf: cfg.ConfigOpts, group: str) -> None:
        self._section = conf[group]

    def __getitem__(self, name: str) -> Any:
        return getattr(self._section, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._section)

    def __len__(self) -> int:
        return len(self._section)


def resolve(
    planner_class: type[Planner[Any]],
    layers: Iterator[tuple[str | None, Mapping[str, Any]]],
    mistakes: list[Mistake],
) -> SimpleNamespace:
    """Give the value of each option; later layers win, mappings are merged.

    Unknown names and values out of range are added to ``mistakes``.
    """
    opts = {opt.name: opt for opt in planner_class.OPTIONS}
    values = {
        name: dict(opt.default) if isinstance(opt.default, dict) else opt.default
        for name, opt in opts.items()
    }
    for place, layer in layers:
        for name in layer:
            path = () if place else ("options", name)
            where = f"{place} {name}" if place else None
            if name not in opts:
                text = f"planner {planner_class.NAME!r} has no option {name!r}; "
                mistakes.append(Mistake(text + accepted(name, opts), path, where))
                continue
            try:
                read = opts[name].type(layer[name])
            except (ValueError, TypeError, cfg.Error) as reason:
                mistakes.append(Mistake(str(reason), path, where))
                continue
            values[name] = {**values[name], **read} if isinstance(read, dict) else read
    return SimpleNamespace(**values)


def unknown_keys(planner_class: type[Planner[Any]], conf: cfg.ConfigOpts) -> list[Mistake]:
    """Find keys in the sections that planning reads which are the name of no option."""
    known = {
        GROUP: {opt.name for opt in OPTIONS},
        group_of(planner_class.NAME): {opt.name for opt in planner_class.OPTIONS},
    }
    mistakes = []
    for file in conf.config_file or [] if "config_file" in conf else []:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(file, sections).parse()
        for group, names in known.items():
            for key in sections.get(group, {}):
                if key not in names:
                    where = f"{file}: [{group}] {key}"
                    text = f"no such option; {accepted(key, names)}"
                    mistakes.append(Mistake(text, place=where))
    return mistakes


def limits_of(conf: cfg.ConfigOpts, mistakes: list[Mistake]) -> dict[str, int]:
    """Give the configured limits; what is wrong with them is added to ``mistakes``."""
    try:
        return dict(conf[GROUP].limits)
    except (cfg.Error, ValueError) as reason:
        mistakes.append(Mistake(str(reason), place=f"[{GROUP}] limits"))
        return {}
