# SPDX-License-Identifier: Apache-2.0
"""Shows a plan as a table: wave by wave, each action with its description and its reason."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from applier.cli.reporters import formatting
from applier.cli.reporters.formatting import STYLES, WIDTH, through, wrapped
from applier.cli.terminal import exact
from applier.run import plan_cloud
from applier.store.plans import LongPlan, Overview
from applier.wording import count, duration, gains, one_line, some, standing
from planner.errors import shortened, shown
from planner.plan import graph
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState
from planner.safe_text import HIDDEN, visible

#: A plan with more actions than this is shown with one line for each wave, unless --all is given.
MOST_ROWS = 60

#: Names up to this width are broken only if nothing else can be.
_NAME = 24
#: The key of the number of workers in the limits that operators have changed.
_WORKERS = "max_workers"
#: The number of actions that are named because their failure costs most.
_DANGERS = 3
#: The number of blanks between two columns.
BETWEEN = 2


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make hidden characters visible in texts, of which all else is made."""
        found = super().render(renderable, options)
        if not (isinstance(renderable, (str, Text)) and HIDDEN.search(str(renderable))):
            return found
        return [s if s.control else Segment(visible(s.text), s.style) for s in found]

    def on_broken_pipe(self) -> None:
        # applier.cli.main handles this for all output, in place of rich.
        raise BrokenPipeError


def console(stream: TextIO) -> Console:
    """Return a console as wide as the terminal, with colours; elsewhere of 100 columns, without."""
    made = _Console(file=exact(stream), highlight=False, markup=False, emoji=False)
    made.width = made.width if made.is_terminal else WIDTH
    return made


def show(
    plan: ActionPlan,
    stream: TextIO,
    *,
    whole: bool = False,
    max_workers: int | None = None,
    run_by: Iterable[str] = (),
    changed: Mapping[str, int] = {},
    kept: LongPlan | None = None,
) -> None:
    """Write a plan: title, waves, touched resources, warnings.

    ``run_by`` are further lines below the title. ``max_workers`` is left out if it is None.
    ``changed`` are the limits that operators have changed for the current run, by token. With
    ``kept``, the plan is shown by that, and not by its actions.
    """
    out = console(stream)
    waves = [] if kept else graph.waves(plan.actions)
    seen = kept.overview if kept else plan_cloud.overview(plan, waves)
    name = f"  {one_line(plan.name)}" if plan.name else ""
    planner, state = one_line(plan.planner), standing(plan.state, plan.start_at)
    put_line(out, f"Plan {plan.uuid[:8]}{name}  {state}  planner {planner}", "bold")
    cloud = plan_cloud.cloud_with(plan, seen.outside)
    for line in (f"Cloud: {cloud}", *run_by, plan.status_message):
        if line:
            out.print(Text(one_line(line)), soft_wrap=not out.is_terminal)
    for line in (*seen.guarantees, *gains(plan)):
        out.print(Text(line), soft_wrap=not out.is_terminal)
    if kept or (seen.actions > MOST_ROWS and not whole):
        put(out, _by_wave(seen, kept.states if kept else _states(waves)))
        out.print(f"{seen.actions} actions: a line for each wave; every action with --all")
    elif waves:
        prefix = shared_prefix([a.label for wave in waves for a in wave])
        if prefix:
            out.print(Text(f"Names of actions begin with {one_line(prefix)}"))
        put(out, _by_action(plan, waves, prefix))
    for line in footer(plan, seen, max_workers, changed):
        out.print(Text(line))
    for line in [] if kept else _dangers(plan, out.width):
        out.print(Text(line))
    if plan.warnings:
        for warning in shown([shortened(one_line(warning)) for warning in plan.warnings]):
            out.print(Text(f"Warning: {warning}", "yellow"))


def table_of(*columns: str, numbers: Container[str] = ("wave", "est", "longest")) -> Table:
    """Return an empty table in the common style; the columns ``numbers`` are right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in numbers else "left"
        table.add_column(column, justify=side)
    return table


def table_with(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table in the common style with rows of texts."""
    table = table_of(*columns)
    for row in rows:
        table.add_row(*map(cell, row))
    return table


def put_line(out: Console, text: str, style: str = "") -> None:
    """Write a line of text, broken with its rest indented if it is too long."""
    for part in wrapped(text, 2, out.width):
        out.print(Text(part, style))


def put(out: Console, table: Table) -> None:
    """Write a table without trailing blanks.

    Columns are as wide as their widest text. If the table does not fit like that, texts are broken
    at blanks, and words only if it does not fit otherwise.
    """
    with out.capture() as written:
        out.print(_fitted(table, out.width))
    for line in written.get().splitlines():
        out.file.write(f"{line.rstrip()}\n")


def _fitted(table: Table, room: int) -> Table:
    """Return a table with the same rows whose texts are broken so that it fits."""
    texts = [
        [one if isinstance(one, Text) else Text(str(one)) for one in (column.header, *column.cells)]
        for column in table.columns
    ]
    extents = [
        formatting.Extent(column.width, (column.width,) * 4)
        if column.width
        else formatting.extent(
            [text.plain for text in cells], column.min_width or 0, column.max_width
        )
        for column, cells in zip(table.columns, texts, strict=True)
    ]
    widths = formatting.widths(extents, room - BETWEEN * (len(extents) - 1))
    cells = [
        column
        if whole.width
        else [text if text.cell_len <= width else _broken(text, width) for text in column]
        for column, width, whole in zip(texts, widths, table.columns, strict=True)
    ]
    made = table_of()
    for column, (header, *_), width in zip(table.columns, cells, widths, strict=True):
        made.add_column(header, justify=column.justify, width=width, no_wrap=True)
    for number, row in enumerate(table.rows, 1):
        style, ends = row.style, row.end_section
        made.add_row(*[column[number] for column in cells], style=style, end_section=ends)
    return made


def _broken(text: Text, width: int) -> Text:
    """Break a text into lines that fit a width; it keeps its colours."""
    return Text("\n").join(text[begin:end] for begin, end in formatting.lines(text.plain, width))


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
    # Users type names, so this column is broken last.
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


def _states(waves: list[list[Action]]) -> dict[int, Mapping[str, int]]:
    """Return the number of actions in each state, by the number of their wave."""
    return {n: Counter(str(a.state) for a in wave) for n, wave in enumerate(waves, 1)}


def _by_wave(seen: Overview, states: Mapping[int, Mapping[str, int]]) -> Table:
    begun = any(state != ActionState.PENDING for counts in states.values() for state in counts)
    table = table_of("wave", "actions", "hosts", "longest", *(["states"] if begun else []))
    before = 0
    for number, types, hosts, longest_s in seen.shown:
        if number > before + 1:
            table.add_row("...", f"{number - before - 1} more waves")
        before = number
        table.add_row(
            str(number),
            cell(_counted(types)),
            cell(hosts),
            duration(longest_s),
            *([cell(_counted(states.get(number, {})))] if begun else []),
        )
    return table


def _counted(words: Mapping[str, int]) -> str:
    return ", ".join(f"{number} x {word}" for word, number in words.items())


def of_all(number: int, word: str, totals: Mapping[str, int]) -> str:
    """Return the number of touched resources with their kind, and the total if that is known.

    >>> of_all(1, "host", {"hosts": 14}), of_all(2, "host", {})
    ('1 of 14 hosts', '2 hosts')
    """
    total = totals.get(f"{word}s")
    return count(number, word) if total is None else f"{number} of {count(total, word)}"


def footer(
    plan: ActionPlan,
    seen: Overview,
    max_workers: int | None,
    changed: Mapping[str, int] = {},
) -> list[str]:
    """Return lines about the size of the plan, touched resources and limits."""
    if not seen.actions:
        return ["Nothing to do: the plan has no actions."]
    size = f"{count(seen.actions, 'action')} in {count(seen.waves, 'wave')}, the widest of "
    alone = "" if seen.alone_s is None else f"; one by one about {duration(seen.alone_s)}"
    # Else a first wave of all nodes looks as if all were out of service at once.
    without = " without limits" if any(t.startswith("serial:") for t in plan.limits) else ""
    lines = [f"{size}{seen.widest}{without}{alone}."]
    totals = {share.name: share.total for share in plan.guards.extent}
    touched = [
        of_all(number, word, totals)
        for kind, word in (("node", "host"), ("instance", "instance"), ("volume", "volume"))
        if (number := seen.touched[kind])
    ]
    max_workers = changed.get(_WORKERS, max_workers)
    bound = f"at most {max_workers} at once" if max_workers else ""
    holding = {**plan.limits, **{t: n for t, n in changed.items() if t != _WORKERS}}
    limits = ", ".join(
        f"{token} {number}" + (f" (planned: {plan.limits.get(token, 'none')})" * (token in changed))
        for token, number in holding.items()
    )
    parts = [
        f"Touches {', '.join(touched)}" if touched else "Touches no host or instance",
        *([bound] if bound else []),
        *([f"limits: {one_line(limits)}"] if limits else []),
    ]
    return [*lines, "; ".join(parts) + "."]


def _dangers(plan: ActionPlan, width: int) -> list[str]:
    """Return lines that name the actions whose failure keeps most others from running, if any."""
    if len(plan.actions) < 2 or plan.on_failure in ("continue", "only_after_failure"):
        return []
    from planner.plan.failure_costs import FailureCosts, sentence

    told = sentence(FailureCosts(plan.actions).highest(_DANGERS))
    return wrapped(one_line(told), 2, width) if told else []
