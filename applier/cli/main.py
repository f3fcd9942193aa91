# SPDX-License-Identifier: Apache-2.0
"""Entry point of ``actionplan``: standard streams, exit codes, and the message about a bug."""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from applier.cli import terminal
from applier.console_scripts import INTERRUPTED, INTERRUPTED_TEXT
from applier.errors import interrupt_in, shortage_in

#: The exit code after the reader of standard output has gone (SIGPIPE).
UNREAD = 141
#: The number of new objects after which the garbage collector runs. Imports create tens of
#: thousands of objects that exist until the end. With Python's default of 700, the collector takes
#: a tenth of the start-up time.
_COLLECT_AFTER = 100_000


def main(
    argv: Sequence[str] | None = None, program: Callable[[], Callable[[], Any]] | None = None
) -> int:
    """Run a command line of ``actionplan``, and return the exit code.

    ``argv`` are the words after the name of the program; by default, those of this process.
    ``program`` imports the class of another program, and returns it.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(_COLLECT_AFTER)
    # When it ends, Python would look for cycles among all objects: a fifth of the time of `list`.
    atexit.register(gc.freeze)
    if "--debug" not in words:
        sys.excepthook = _tell_bug
        threading.excepthook = _tell_bug_of_thread
    try:
        _open_streams()
        code = _run((program or _actionplan)(), words)
        sys.stdout.flush()
    except BrokenPipeError:
        code = UNREAD
        _drop_output()
    except KeyboardInterrupt:
        code = INTERRUPTED
        sys.stderr.write(INTERRUPTED_TEXT)
    except OSError as reason:
        if reason.filename is not None or interrupt_in(reason) or shortage_in(reason):
            raise
        code = 1
        sys.stderr.write(f"Standard output cannot be written: {reason.strerror}\n")
        _drop_output()
    return code


def _actionplan() -> Callable[[], Any]:
    # taskflow imports eventlet wherever it is installed, which takes long and warns.
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    # Imported here, so that main() also handles Ctrl-C during the import.
    from applier.cli.program import Program

    return Program


def _run(program: Callable[[], Any], words: Sequence[str]) -> int:
    try:
        return int(program().run(words))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


def _open_streams() -> None:
    """Replace closed standard streams by /dev/null.

    In text that is written, escape control characters, and characters that the encoding lacks.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, terminal.with_visible_text(stream))


def _drop_output() -> None:
    """Redirect standard output to /dev/null, so that its flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_bug(
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,  # noqa: ARG001
) -> None:
    if interrupt_in(error):
        sys.stderr.write(INTERRUPTED_TEXT)
        return
    what = " ".join("".join(traceback.format_exception_only(kind, error)).split())
    line = shlex.join([os.path.basename(sys.argv[0]), "--debug", *sys.argv[1:]])
    text = f"This is a bug in ActionPlan or in a plugin: {what}\nTo see where: {line}\n"
    sys.stderr.write(text)


def _tell_bug_of_thread(hook: threading.ExceptHookArgs) -> None:
    if hook.exc_value is not None:
        _tell_bug(hook.exc_type, hook.exc_value, hook.exc_traceback)
