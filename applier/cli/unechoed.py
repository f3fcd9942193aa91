# SPDX-License-Identifier: Apache-2.0
"""Lets the terminal show nothing of what is typed while a block is redrawn on it."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: Signals that end a program at once, unless it handles them.
_DEADLY = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
#: The place of the local modes in the attributes of a terminal.
_LOCAL = 3


@contextmanager
def unechoed() -> Iterator[None]:
    """Turn the echo of the terminal off; on again at the end, also if a signal ends the program.

    What was typed meanwhile is dropped, so that no shell runs what nobody saw. Ctrl-C and Ctrl-Z
    work. Without a terminal, or in the background, nothing is changed.
    """
    restore = _without_echo()
    if restore is None:
        yield
        return
    try:
        with _restored_by_signals(restore):
            yield
    finally:
        restore()


def _without_echo() -> Callable[[], None] | None:
    """Turn the echo off; return what restores it, None if there is nothing to restore."""
    try:
        terminal = sys.stdin.fileno()
        # A program in the background that changes the terminal is stopped.
        if os.tcgetpgrp(terminal) != os.getpgrp():
            return None
        before = termios.tcgetattr(terminal)
        changed = [*before]
        changed[_LOCAL] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, changed)
    except (AttributeError, OSError, ValueError, termios.error):
        return None

    def restore() -> None:
        with suppress(OSError, termios.error):
            if os.tcgetpgrp(terminal) == os.getpgrp():
                termios.tcsetattr(terminal, termios.TCSAFLUSH, before)

    return restore


@contextmanager
def _restored_by_signals(restore: Callable[[], None]) -> Iterator[None]:
    """Restore the terminal before a signal ends the program that does not handle it."""

    def handle(number: int, _: FrameType | None) -> None:
        restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    try:
        taken = [n for n in _DEADLY if signal.getsignal(n) is signal.SIG_DFL]
        for number in taken:
            signal.signal(number, handle)
    except ValueError:  # not in the main thread, where no signal is handled
        yield
        return
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
