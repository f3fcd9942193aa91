# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error; nothing is shown if standard error is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str, number: int) -> Iterator[Callable[[], None]]:
    """Show a bar of ``number`` steps; yield the function that advances it by one.

    If the function is called more often, the number grows. The bar is removed after the block.
    """
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=number)

        def advance() -> None:
            done = shown.tasks[0].completed + 1
            shown.update(task, completed=done, total=max(number, done))

        yield advance
