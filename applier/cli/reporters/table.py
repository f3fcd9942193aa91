# SPDX-License-Identifier: Apache-2.0
"""Rows as a table, for verbs that list."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TextIO

from cliff.formatters.base import ListFormatter

from applier.cli.reporters.formatting import WIDTH
from applier.wording import one_line

#: Columns that are no wider than this are broken last, except the widest one.
_SHORT = 26
#: The number of blanks between two columns.
_BETWEEN = "  "
#: The environment variables that make rich treat any output as a terminal.
_TERMINAL_ASSUMED = ("FORCE_COLOR", "TTY_COMPATIBLE")


class RowTable(ListFormatter):
    """Writes rows in the style of all tables, as wide as the terminal; else at most 100 columns."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add no options."""

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,  # noqa: ARG002
    ) -> None:
        """Write the table; if it is too wide, its widest columns are broken."""
        rows = list(data)
        numbers = {
            name
            for i, name in enumerate(column_names)
            if rows and all(isinstance(row[i], int | float) for row in rows)
        }
        cells = [[one_line(str(cell)) for cell in row] for row in rows]
        lines = None if _is_terminal(stdout) else plain(column_names, cells, numbers)
        if lines is None:
            _write_with_rich(column_names, cells, numbers, stdout)
        else:
            stdout.writelines(f"{line}\n" for line in lines)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() or any(os.environ.get(name) for name in _TERMINAL_ASSUMED)


def plain(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str]
) -> list[str] | None:
    """Return the lines of a table; None if it is too wide or has letters beyond ASCII.

    The lines are the same as those of rich, which takes long to import.

    >>> plain(["name", "actions"], [["web", "12"], ["db", "3"]], {"actions"})[2:]
    ['web        12', 'db          3']
    """
    if not all(cell.isascii() for row in (columns, *rows) for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    width = sum(widths) + len(_BETWEEN) * (len(columns) - 1)
    if width > WIDTH:
        return None
    lines = [
        _BETWEEN.join(
            cell.rjust(wide) if name in numbers else cell.ljust(wide)
            for cell, name, wide in zip(row, columns, widths, strict=True)
        ).rstrip()
        for row in (columns, *rows)
    ]
    return [lines[0], "─" * width, *lines[1:]]


def _write_with_rich(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Collection[str],
    stdout: TextIO,
) -> None:
    from rich.text import Text

    from applier.cli.reporters.plan_table import console, put, table_of

    table = table_of(*columns, numbers=numbers)
    cells = [[Text(cell) for cell in row] for row in rows]
    widths = [max(row[i].cell_len for row in cells) for i in range(len(columns))]
    for column, width in zip(table.columns, widths, strict=True):
        if width < max(widths) and width <= _SHORT:
            column.min_width = max(width, len(str(column.header)))
    for cell_row in cells:
        table.add_row(*cell_row)
    put(console(stdout), table)
