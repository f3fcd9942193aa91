# SPDX-License-Identifier: Apache-2.0
"""Writes the differences of two plans: a line for each action, a line for each field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.text import Text

from applier.cli.reporters.formatting import wrapped
from applier.cli.reporters.plan_table import console
from applier.operations.differences import Comparison, lines
from planner.making.registry import ActionTypes


def show(made: Comparison, names: Sequence[str], types: ActionTypes, stream: TextIO) -> None:
    """Write the differences; ``names`` are the references by which the user named the two plans."""
    out = console(stream)
    for line in lines(made, names, types):
        indent = len(line) - len(line.lstrip()) + 4
        for part in wrapped(line, indent, out.width):
            out.print(Text(part))
