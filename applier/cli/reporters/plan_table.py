# SPDX-License-Identifier: Apache-2.0
"""Shows a plan as a table: wave by wave, each action with its description and its reason."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from applier.cli.reporters.cloud_name import cloud_of
from applier.cli.reporters.formatting import STYLES, WIDTH
from applier.cli.reporters.joins import through
from applier.cli.terminal import exact
from applier.wording import count, duration, one_line, resources, some
from planner import graph
from planner.errors import shortened, shown
from planner.model import JOIN, Action, ActionPlan
from planner.states import ActionState
from planner.visible_text import visible

#: A plan with more actions than this is shown with one line for each wave, unless --all is given.
MOST_ROWS = 60

#: Names up to this width are not folded, however narrow the terminal is.
_NAME = 24
#: The number of last waves that are shown if not all are.
_LAST = 5
#: The number of blanks between two columns.
BETWEEN = 2
#: Smallest width of a folded column, if the terminal has room for it.
NARROW = 6


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Make hidden characters visible, except those with which rich itself draws."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)

    def on_broken_pipe(self) -> None:
        # applier.cli.main handles this for all output, in place of rich.
        raise BrokenPipeError


def console(stream: TextIO) -> Console:
    """Return a console of at most 100 columns, with colours on terminals only."""
    made = _Console(file=exact(stream), highlight=False, markup=False, emoji=False)
    made.width = min(made.width, WIDTH) if made.is_terminal else WIDTH
    return made


def show(
    plan: ActionPlan,
    stream: TextIO,
    *,
    whole: bool = False,
    max_workers: int | None = None,
    run_by: Iterable[str] = (),
) -> None:
    """Write a plan: title, waves, touched resources, warnings."""
    out = console(stream)
    name = f"  {one_line(plan.name)}" if plan.name else ""
    planner = one_line(plan.planner)
    out.print(Text(f"Plan {plan.uuid[:8]}{name}  {plan.state}  planner {planner}", "bold"))
    for line in (f"Cloud: {cloud_of(plan)}", *run_by, plan.status_message):
        if line:
            out.print(Text(one_line(line)), soft_wrap=not out.is_terminal)
    for line in gains(plan):
        out.print(Text(line), soft_wrap=not out.is_terminal)
    waves = graph.waves(plan.actions)
    if waves:
        rows = sum(map(len, waves))
        short = rows > MOST_ROWS and not whole
        prefix = "" if short else shared_prefix([a.label for wave in waves for a in wave])
        if prefix:
            out.print(Text(f"Names of actions begin with {one_line(prefix)}"))
        put(out, _by_wave(waves) if short else _by_action(plan, waves, prefix))
        if short:
            out.print(f"{rows} actions: a line for each wave; every action with --all")
    for line in footer(plan, waves, max_workers):
        out.print(Text(line))
    if plan.warnings:
        for warning in shown([shortened(one_line(warning)) for warning in plan.warnings]):
            out.print(Text(f"Warning: {warning}", "yellow"))


def gains(plan: ActionPlan) -> Iterator[str]:
    """Yield the efficacy indicators of the plan, one line each."""
    for indicator in (*plan.efficacy_indicators, *plan.global_efficacy):
        if not isinstance(indicator, Mapping) or not indicator.get("description"):
            continue
        text, value = str(indicator["description"]), indicator.get("value")
        if isinstance(value, str | int | float):
            text = f"{text} {value} {indicator.get('unit') or ''}"
        yield one_line(text.rstrip())


def table_of(*columns: str, numbers: Container[str] = ("wave", "est", "longest")) -> Table:
    """Return an empty table in the common style; the columns ``numbers`` are right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in numbers else "left"
        table.add_column(column, justify=side, overflow="fold")
    return table


def put(out: Console, table: Table) -> None:
    """Write a table without trailing blanks; columns that are too wide are folded."""
    # rich does not shrink other columns for a min_width: it cuts off the end of every line.
    head = next(iter(Segment.split_lines(out.render(table))))
    if Segment.get_line_length(head) > out.width:
        _make_room(table.columns, out.width)
    with out.capture() as written:
        out.print(table)
    for line in written.get().splitlines():
        out.file.write(f"{line.rstrip()}\n")


def _make_room(columns: Sequence[Column], width: int) -> None:
    """Shrink other columns for those with a min_width, the narrowest first."""
    left = width - len(columns) * (NARROW + BETWEEN)
    for column in sorted(columns, key=lambda column: column.min_width or 0):
        least = column.min_width or 0
        if least and least - NARROW <= left:
            column.width, left = least, left - (least - NARROW)
        column.min_width = None


def cell(text: str) -> Text:
    """Return a cell with text that may contain line breaks or control characters."""
    return Text(one_line(text))


def _begun(actions: Iterable[Action]) -> bool:
    return any(a.state is not ActionState.PENDING for a in actions)


def shared_prefix(names: Sequence[str]) -> str:
    """Return the common beginning of several names, up to a slash.

    >>> shared_prefix(["web/batch-1/create-1", "web/batch-1/pause"]), shared_prefix(["1/a", "2/b"])
    ('web/batch-1/', '')
    """
    # A common beginning of the first and the last name in alphabetical order is common to all.
    first, last = min(names, default=""), max(names, default="")
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    prefix = "".join(letter for letter, _ in alike) if len(names) > 1 else ""
    return prefix[: prefix.rfind("/") + 1]


def _by_action(plan: ActionPlan, waves: list[list[Action]], prefix: str) -> Table:
    names = {action.uuid: action.label.removeprefix(prefix) for action in plan.actions}
    joins = {a.uuid: a.needs for a in plan.actions if a.action_type == JOIN}
    begun = _begun(plan.actions)
    timed = any(a.estimate_s is not None for a in plan.actions)
    reasoned = not begun and any(a.reason for a in plan.actions)
    last = ["state"] if begun else ["why here"] if reasoned else []
    table = table_of("wave", "action", "what", *(["est"] if timed else []), "needs", *last)
    # Users type names, so this column is folded last.
    rows = [action.uuid for wave in waves for action in wave]
    table.columns[1].min_width = min(_NAME, max(cell(names[uuid]).cell_len for uuid in rows))
    for number, wave in enumerate(waves, 1):
        for k, action in enumerate(wave):
            needs = through(action.needs, joins) if joins else action.needs
            table.add_row(
                str(number) if k == 0 else "",
                cell(names[action.uuid]),
                cell(action.description or action.action_type),
                *([duration(action.estimate_s)] if timed else []),
                cell(some([names[uuid] for uuid in needs], 2)),
                *([Text(str(action.state), STYLES.get(action.state, ""))] if begun else []),
                *([cell(action.reason or "")] if reasoned else []),
            )
    return table


def _by_wave(waves: list[list[Action]]) -> Table:
    begun = any(map(_begun, waves))
    table = table_of("wave", "actions", "hosts", "longest", *(["states"] if begun else []))
    for number, wave in _first_and_last(list(enumerate(waves, 1))):
        if wave is None:
            table.add_row("...", f"{number} more waves")
            continue
        types = Counter(action.action_type for action in wave)
        longest = max((a.estimate_s for a in wave if a.estimate_s is not None), default=None)
        states = Counter(str(action.state) for action in wave)
        table.add_row(
            str(number),
            cell(_counted(types)),
            cell(some(resources(wave, "node"), 3)),
            duration(longest),
            *([cell(_counted(states))] if begun else []),
        )
    return table


def _first_and_last(
    waves: list[tuple[int, list[Action]]],
) -> Iterator[tuple[int, list[Action] | None]]:
    """Yield all waves, or the first and the last ones with the number of waves between them."""
    if len(waves) <= MOST_ROWS:
        yield from waves
        return
    shown = MOST_ROWS // 2
    yield from waves[:shown]
    yield len(waves) - shown - _LAST, None
    yield from waves[-_LAST:]


def _counted(words: Counter[str]) -> str:
    return ", ".join(f"{number} x {word}" for word, number in words.items())


def footer(plan: ActionPlan, waves: list[list[Action]], max_workers: int | None) -> list[str]:
    """Return lines about the size of the plan, the touched resources, and the limits."""
    if not waves:
        return ["Nothing to do: the plan has no actions."]
    estimates = [a.estimate_s for wave in waves for a in wave if a.estimate_s is not None]
    rows = sum(map(len, waves))
    size = f"{count(rows, 'action')} in {count(len(waves), 'wave')}, the widest of "
    alone = f"; one by one about {duration(sum(estimates))}" if len(estimates) == rows else ""
    lines = [f"{size}{max(map(len, waves))}{alone}."]
    touched = [
        count(len(found), word)
        for kind, word in (("node", "host"), ("instance", "instance"), ("volume", "volume"))
        if (found := resources(plan.actions, kind))
    ]
    bound = f"at most {max_workers} at once" if max_workers else ""
    limits = ", ".join(f"{token} {number}" for token, number in plan.limits.items())
    parts = [
        f"Touches {', '.join(touched)}" if touched else "Touches no host or instance",
        *([bound] if bound else []),
        *([f"limits: {one_line(limits)}"] if limits else []),
    ]
    return [*lines, "; ".join(parts) + "."]
