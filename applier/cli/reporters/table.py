"""Rows as a table, for verbs that list."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from cliff.formatters.base import ListFormatter
from rich.text import Text

from applier.cli.reporters.formatting import one_line
from applier.cli.reporters.plan_table import console, put, table_of

#: Columns that are no wider than this are not folded, unless one is the widest.
_SHORT = 26


class RowTable(ListFormatter):
    """Writes rows in the look that all tables have, never wider than 100 columns."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: there is nothing to choose."""

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,  # noqa: ARG002
    ) -> None:
        """Write the table; where it is too wide, its widest column is folded."""
        rows = list(data)
        numbers = {
            name
            for i, name in enumerate(column_names)
            if rows and all(isinstance(row[i], int | float) for row in rows)
        }
        table = table_of(*column_names, numbers=numbers)
        cells = [[Text(one_line(str(cell))) for cell in row] for row in rows]
        widths = [max(row[i].cell_len for row in cells) for i in range(len(column_names))]
        for column, width in zip(table.columns, widths, strict=True):
            if width < max(widths) and width <= _SHORT:
                column.min_width = max(width, len(str(column.header)))
        for row in cells:
            table.add_row(*row)
        put(console(stdout), table)
