"""Rows as a table, for verbs that list."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from cliff.formatters.base import ListFormatter
from rich.text import Text

from applier.cli.reporters.plan_table import console, put, table_of


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
        """Write the table."""
        rows = list(data)
        numbers = {
            name
            for i, name in enumerate(column_names)
            if rows and all(isinstance(row[i], int | float) for row in rows)
        }
        table = table_of(*column_names, numbers=numbers)
        for row in rows:
            table.add_row(*(Text(str(cell)) for cell in row))
        put(console(stdout), table)
