# SPDX-License-Identifier: Apache-2.0
"""The command line in processes that need no start of an interpreter.

A process that has imported the program once is copied (fork) for each command. A copy is a process
like any other, with a number, signals, a terminal and an end of its own.
"""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import os
import pwd
import subprocess
import sys
import termios
import threading
import time
import types
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.reduction import DupFd
from typing import Any
from unittest import mock

_CONTEXT = multiprocessing.get_context("forkserver")
#: What the first one imports; a command imports the rest.
_IMPORTED = """
applier.actions.markers applier.actions.node_commands applier.cli.apply applier.cli.program
applier.cli.watch applier.cli.reporters.plan_table applier.cli.reporters.recap
applier.configuration.check applier.engines.taskflow_engine applier.machines
applier.operations.last_run applier.run.runner applier.storage.sql_store jsonschema_rs networkx
planner.planners.weight planner.making.planning rich.console
"""
_CONTEXT.set_forkserver_preload(_IMPORTED.split())


class ForkedProgram(subprocess.Popen[str]):
    """A ``Popen`` of ``actionplan WORD...``; ``before`` is called in its process first."""

    def __init__(
        self, words: Sequence[str], *, before: Callable[[], None] | None = None, **options: Any
    ) -> None:
        self._before = before
        super().__init__(list(words), **options)

    # The parts of Popen that differ between systems; they are the same in Python 3.11 to 3.13.

    def _execute_child(self, words: Any, *given: Any) -> None:
        folder, environment = given[4:6]
        pipes, in_new_session = given[9:15], given[20]
        child = (pipes[0], pipes[3], pipes[5])
        streams = [_Handle(i if handle == -1 else handle) for i, handle in enumerate(child)]
        self._process = _CONTEXT.Process(
            target=_run, args=(words, folder, environment, streams, in_new_session, self._before)
        )
        # Otherwise the copy would first run what is the main program here.
        with mock.patch.dict(sys.modules, {"__main__": types.ModuleType("__main__")}):
            self._process.start()
        self.pid = self._process.pid
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._process.join(timeout)
        if self._internal_poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode


def bound_by_rights() -> None:
    """Let the rights of files bind this process, which as root's they otherwise do not."""
    libc, version = ctypes.CDLL(None, use_errno=True), 0x20080522
    header, sets = (ctypes.c_uint32 * 2)(version, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    dac_override = 1 << 1
    sets[0] &= ~dac_override
    sets[1] &= ~dac_override
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


class _Handle:
    """A file descriptor that another process gets a copy of."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _detached, (DupFd(self._number),)


def _detached(handle: Any) -> int:
    return int(handle.detach())


def _run(
    words: list[str],
    folder: str,
    environment: dict[str, str],
    streams: list[int],
    in_new_session: bool,
    before: Callable[[], None] | None,
) -> None:
    """Become the program, as far as a new interpreter would, and run it."""
    if in_new_session:
        os.setsid()
    for number, handle in enumerate(streams):
        os.dup2(handle, number)
    for handle in set(streams):
        os.close(handle)
    if in_new_session and os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["actionplan", *words]
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", closefd=False, buffering=1 if lines else -1)  # noqa: SIM115
        for number, lines in ((1, os.isatty(1)), (2, True))
    )
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)
    user = pwd.getpwuid(os.getuid())
    name = environment.get("TEST_USER", user.pw_name)
    pwd.getpwuid = lambda _: pwd.struct_passwd((name, *user[1:]))
    if before is not None:
        before()
    from applier.cli.main import main

    try:
        code = main(words)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    sys.stdout.flush()
    os._exit(code)
