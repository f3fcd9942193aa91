# SPDX-License-Identifier: Apache-2.0
"""Turns off the echo of typed characters while a block is redrawn on the terminal.

A typed line feed would move the block, and a shell would run, after the run, what was typed unseen.
After ``kill -9`` the terminal stays silent; ``stty sane`` helps.
"""

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
#: The index of the local modes in the list that tcgetattr() returns.
_LOCAL = 3


@contextmanager
def unechoed() -> Iterator[None]:
    """Turn the terminal's echo off inside a block; restore it even if a signal ends the program.

    Characters typed inside the block are discarded, so that the shell does not run a command that
    nobody saw. Ctrl-C and Ctrl-Z work. Without a terminal, or in the background, nothing changes.
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
    """Turn the echo off; return the function that restores it, None if nothing was changed."""
    try:
        terminal = sys.stdin.fileno()
        # The kernel stops a background process that changes the terminal (SIGTTOU).
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
    """Restore the terminal before a signal that the program does not handle ends it."""

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
