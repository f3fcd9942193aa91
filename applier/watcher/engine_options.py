# SPDX-License-Identifier: Apache-2.0
"""The options of ``[watcher_workflow_engines.actionplan]``; can be imported without Watcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oslo_config import cfg

from planner.making import options as planning_options
from planner.making.options import LIMITS, ReadBy
from planner.plan.model import Touch
from planner.schemas import ranges

SECTION = "watcher_workflow_engines.actionplan"


class TypeTouches(NamedTuple):
    """The touches of the actions of one type, as texts.

    A reference such as ``{uuid}`` in a text stands for the value of that parameter of an action.
    """

    action_type: str
    texts: tuple[str, ...]

    def of(self, parameters: Mapping[str, Any]) -> tuple[Touch, ...]:
        """Return the touches of one action; leave out those with a missing or empty parameter.

        >>> moves = TypeTouches("move", ("instance:{uuid}", "leaves node:{host}"))
        >>> [str(touch.resource) for touch in moves.of({"uuid": "i1", "host": None})]
        ['instance:i1']
        """
        return Touch.fill(self.texts, parameters)


def _table(value: str | Mapping[str, TypeTouches]) -> Mapping[str, TypeTouches]:
    """Return the touches by action type; raises ValueError that names each wrong part."""
    if isinstance(value, Mapping):
        return value
    table: dict[str, TypeTouches] = {}
    wrong: list[str] = []
    for line in value.replace("\n", ";").split(";"):
        name, _, rest = (part.strip() for part in line.partition(":"))
        texts = tuple(text.strip() for text in rest.split(",") if text.strip())
        if not line.strip():
            continue
        if not (name and texts):
            wrong.append(f"{line.strip()!r} is not TYPE: [EFFECT ]KIND:{{PARAMETER}}, ...")
        elif name in table:
            wrong.append(f"{name} has two entries")
        else:
            wrong += _mistakes(texts)
            table[name] = TypeTouches(name, texts)
    if wrong:
        raise ValueError("; ".join(wrong))
    return table


def _table_text(table: Mapping[str, TypeTouches]) -> str:
    return "; ".join(f"{t.action_type}: {', '.join(t.texts)}" for t in table.values())


def _mistakes(texts: Iterable[str]) -> list[str]:
    found = []
    for text in texts:
        try:
            Touch.parse(text)
        except ValueError as reason:
            found.append(str(reason))
    return found


#: Touches as text, with an entry ``TYPE: [EFFECT ]KIND:{PARAMETER}, ...`` for each type; ``;`` or a
#: new line separates them.
TOUCHES = ReadBy("touches of action types", _table, _table_text)

ENGINE_OPTIONS: Sequence[cfg.Opt] = (
    cfg.IntOpt(
        "max_workers",
        default=ranges.WORKERS,
        min=1,
        max=ranges.MOST,
        help="Number of actions of a plan that may run at once.",
    ),
    cfg.StrOpt(
        "on_failure",
        choices=[
            ("skip_descendants", "actions that need a failed one do not run; all others do"),
            ("continue", "all actions run in spite of failures, as with the engine taskflow"),
        ],
        default="skip_descendants",
        help="Effect of a failed action.",
    ),
    cfg.Opt(
        "limits",
        type=LIMITS,
        default={},
        sample_default="node:*=2, type:migrate=4",
        help="How many actions of a plan may hold a resource at once. token=number, such as "
        "node:compute-1=1, or KIND:*=number for each resource of a kind.",
    ),
    cfg.BoolOpt(
        "resume",
        default=False,
        help="Whether a plan goes on by itself whose applier has died, while this service runs: "
        "actionplan-watcher resume --follow. If not, Watcher cancels it when an applier starts, "
        "and it goes on after: actionplan-watcher resume PLAN.",
    ),
    cfg.Opt(
        "touches",
        type=TOUCHES,
        default={},
        sample_default="rack_move: instance:{resource_id}, leaves node:{source_node}",
        help="What the actions of third parties' types touch: TYPE: [EFFECT ]KIND:{PARAMETER}, "
        "..., the types on lines of their own or separated by semicolons. EFFECT is uses (the "
        "default), leaves, enters, takes_down, brings_up, disables or enables. Actions of a type "
        "without an entry keep their order, and hold no resources.",
    ),
    cfg.FloatOpt(
        "heartbeat_interval_s",
        default=5.0,
        min=0.05,
        max=ranges.LONGEST_S,
        help="Seconds between two heartbeats of the applier that runs a plan. It counts as dead "
        "after six intervals without one.",
    ),
)

#: The sections of ``watcher.conf`` that Watcher's services read, and our commands accept as well.
SECTIONS: tuple[tuple[str, Sequence[cfg.Opt]], ...] = (
    (planning_options.SECTION_IN_WATCHER, planning_options.OPTIONS_IN_WATCHER),
    (SECTION, ENGINE_OPTIONS),
)
