# SPDX-License-Identifier: Apache-2.0
"""How all output looks: the colours of states, widths of columns, and where texts are broken.

A text is broken at blanks first. Only if the table does not fit like that, its long words are
broken after hyphens and slashes, except for those of a date, then after any punctuation, and last
of all anywhere.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from planner.plan.model import ActionPlan
from planner.plan.states import ActionState

#: Width of output that is not written to a terminal.
WIDTH = 100
#: Colour of each state, which is also written as a word.
STYLES = {
    ActionState.SUCCEEDED: "green",
    ActionState.SKIPPED: "cyan",
    ActionState.ONGOING: "bold",
    ActionState.FAILED: "bold red",
    ActionState.UNKNOWN: "bold red",
    ActionState.REVERT_FAILED: "bold red",
    ActionState.FAILED_DEPENDENCIES: "red",
    ActionState.CANCELLED: "yellow",
}
#: Columns of a recap, in order.
RESULTS = ("changed", "already", "skipped", "failed", "in doubt", "stopped", "not run")


def ages_s(plan: ActionPlan, at: datetime) -> dict[str, float]:
    """Return, for each ONGOING action by uuid, the seconds from its start to a time."""
    running = (a for a in plan.actions if a.state is ActionState.ONGOING)
    return {a.uuid: age_s(a.started_at, at) for a in running if a.started_at is not None}


def age_s(then: datetime, at: datetime) -> float:
    """Return the seconds from one time to another; 0 if a clock is behind that of the applier."""
    return max((at - then).total_seconds(), 0.0)


def through(uuids: Iterable[str], joins: Mapping[str, Iterable[str]]) -> list[str]:
    """Return uuids with each join replaced by the actions that it stands for, each once.

    ``joins`` maps the uuid of each join to the uuids of those actions, which may be joins, too.

    >>> through(["a", "j"], {"j": ["b", "k"], "k": ["a", "c"]})
    ['a', 'b', 'c']
    """
    found: dict[str, None] = {}
    ahead, seen = [iter(uuids)], set[str]()
    while ahead:
        uuid = next(ahead[-1], None)
        if uuid is None:
            ahead.pop()
        elif uuid not in joins:
            found[uuid] = None
        elif uuid not in seen:
            seen.add(uuid)
            ahead.append(iter(joins[uuid]))
    return list(found)


#: Patterns of the parts into which a word is broken, the preferred first; see above.
_BREAKS = (
    re.compile(r"(?:\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b|[^-/])+[-/]*|[-/]+"),
    re.compile(r"[^-/_.:,=]*[-/_.:,=]+|[^-/_.:,=]+"),
)
#: The minimum width of a column as a last resort, because a letter may be two cells wide, and the
#: minimum width that is tried before for columns whose words are broken anywhere.
_LEAST, _ANYWHERE = 2, 6


class Extent(NamedTuple):
    """Widths of a column, in cells. ``wanted`` keeps each text on one line, unless it is bounded.

    ``least`` are the minimum widths if texts are broken at blanks only, also after hyphens, also
    after other punctuation, and anywhere. ``kept`` is one more minimum width, which applies only if
    the table then fits without broken words.
    """

    wanted: int
    least: tuple[int, ...]
    kept: int = 0


def extent(texts: Sequence[str], kept: int = 0, most: int | None = None) -> Extent:
    """Return the widths of a column of these texts, with ``wanted`` bounded by ``most``.

    A bound that is less than the widest word has no effect.

    >>> extent(["move web-frontend now"])
    Extent(wanted=21, least=(12, 8, 8, 6), kept=0)
    """
    wanted = max(map(cell_len, texts), default=0)
    words = {word for text in texts for word in text.split()}
    least = [max(map(cell_len, words), default=0)]
    for parts in _BREAKS:
        least.append(max([cell_len(p) for w in words for p in parts.findall(w)], default=0))
    if most is not None:
        wanted = max(least[0], min(wanted, most))
    return Extent(wanted, (*least, min(least[-1], _ANYWHERE)), min(kept, wanted))


def widths(columns: Sequence[Extent], room: int) -> list[int]:
    """Return the widths of columns that share ``room`` cells; the widest are narrowed first.

    Words are broken only if the table does not fit otherwise. If there is too little room even
    then, the sum of the widths is more than ``room``.

    >>> widths([extent(["switch-off-compute-1"]), extent(["power it off, nothing is on it"])], 36)
    [20, 16]
    >>> widths([extent(["switch-off-compute-1"]), extent(["change_node_power_state"])], 36)
    [13, 23]
    """
    at_blanks = [column.least[0] for column in columns]
    levels = [[max(least, c.kept) for least, c in zip(at_blanks, columns, strict=True)]]
    levels += [[column.least[i] for column in columns] for i in range(len(_BREAKS) + 2)]
    levels.append([min(_LEAST, column.wanted) for column in columns])
    least = next((level for level in levels if sum(level) <= room), levels[-1])
    return _narrowed([column.wanted for column in columns], least, room)


def _narrowed(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths whose sum fits ``room``: the widest are narrowed, but not below ``least``."""
    found = [max(one, bound) for one, bound in zip(wanted, least, strict=True)]
    while (over := sum(found) - room) > 0:
        can_be = [i for i, one in enumerate(found) if one > least[i]]
        if not can_be:
            break
        widest = max(found[i] for i in can_be)
        those = [i for i in can_be if found[i] == widest]
        below = max((found[i] for i in can_be if found[i] < widest), default=0)
        step = min(max(1, over // len(those)), widest - max(below, 1) or 1)
        for i in those[: max(1, over)]:
            found[i] = max(least[i], found[i] - step)
    return found


def lines(text: str, width: int) -> list[tuple[int, int]]:
    """Return the begin and the end, as indices, of each line of a text that is broken to a width.

    >>> text = "power off switch-off-compute-1"
    >>> [text[begin:end] for begin, end in lines(text, 12)]
    ['power off', 'switch-off-', 'compute-1']
    >>> [part for part in _BREAKS[0].findall("on-2026-11-24")]
    ['on-', '2026-11-24']
    """
    found: list[tuple[int, int]] = []
    for word in re.finditer(r"\S+", text):
        begin = word.start()
        for part in _parts(word[0], width):
            end = begin + len(part)
            # The first part of a word is one blank away from the word before it.
            if found and cell_len(text[found[-1][0] : end]) <= width:
                found[-1] = found[-1][0], end
            else:
                found.append((begin, end))
            begin = end
    return found or [(0, 0)]


def _parts(word: str, width: int, levels: Sequence[re.Pattern[str]] = _BREAKS) -> Iterator[str]:
    """Yield the parts of a word that fit a width, by the first of ``levels`` that suffices."""
    if cell_len(word) <= width:
        yield word
    elif not levels:
        yield from chop_cells(word, max(width, _LEAST))
    else:
        for part in levels[0].findall(word):
            yield from _parts(part, width, levels[1:])


def wrapped(text: str, indent: int, width: int) -> list[str]:
    """Return the lines of a text broken to a width; all but the first are indented.

    >>> wrapped("- move-web-frontend-1 after it", 4, 14)
    ['-', '    move-web-', '    frontend-1', '    after it']
    """
    rest = " " * indent
    found = textwrap.wrap(
        text, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return [part for line in found for part in _fitting(line, rest, width)]


def _fitting(line: str, rest: str, width: int) -> Iterator[str]:
    """Yield a line that fits, else its parts; ``rest`` is the indent of all parts but the first."""
    if len(line) <= width:
        yield line
        return
    words = line.strip()
    first = line[: len(line) - len(line.lstrip())]
    for begin, end in lines(words, max(width - len(rest), 1)):
        yield (rest if begin else first) + words[begin:end]
