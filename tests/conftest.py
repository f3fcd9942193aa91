# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests, however they are started and however fast the machine is."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import programs
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

settings.register_profile("full", deadline=None)
settings.register_profile("fast", settings.get_profile("full"), max_examples=10)
settings.load_profile("fast")

#: Where files need no disk: most of what a test of SQLite waits for is the disk.
MEMORY = "/dev/shm"  # noqa: S108 - pytest makes a folder of its own there
#: Bytes that must be free there.
ROOM = 4 * 1024**3
if os.access(MEMORY, os.W_OK):
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize > ROOM and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)

#: Not tests, and named like a module of Python's installation.
collect_ignore = ["shifted_clock", "user_database"]
#: No doctests are in them, and as modules they would all have one name.
collect_ignore_glob = ["**/conftest.py"]

# A shell ignores Ctrl-C for what it starts in the background, nohup ignores the end of the
# terminal, and programs pass that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: All of their tests start the command line or another program.
SLOW_FOLDERS = (Path(__file__).parent / "functional",)
#: Seconds of processor time from which a test without the mark is listed at the end.
LONG_S = 1.0
#: Audit events of Python that start a process; ``multiprocessing`` raises none for ``spawn``.
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})

#: The test that runs, if it is not marked as slow.
_fast_test: pytest.Item | None = None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the packages alone: here are none, and each file would be read twice."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of folders that are slow as a whole."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in SLOW_FOLDERS):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the processor time of a test, and let it start no process without the mark."""
    global _fast_test
    is_slow = any(item.get_closest_marker(mark) for mark in ("slow", "server"))
    _fast_test = None if is_slow else item
    try:
        return (yield)
    finally:
        _fast_test = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose programs are missing, before its fixtures start them."""
    programs.require(*(name for mark in item.iter_markers("needs") for name in mark.args))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note the processor time of a test that is not marked as slow."""
    began = time.process_time()
    try:
        return (yield)
    finally:
        if _fast_test is item:
            item.user_properties.append(("processor_s", time.process_time() - began))


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """Return the URL of an empty database of PostgreSQL."""
    from scratch_database import database_for_tests

    with database_for_tests("postgresql") as url:
        yield url


@pytest.fixture(scope="session")
def mysql_url() -> Iterator[str]:
    """Return the URL of an empty database of MySQL or MariaDB."""
    from scratch_database import database_for_tests

    with database_for_tests("mysql") as url:
        yield url


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that take long and are not marked as slow."""
    long = [
        (seconds, report.nodeid)
        for report in terminalreporter.stats.get("passed", ())
        for name, seconds in report.user_properties
        if name == "processor_s" and seconds > LONG_S
    ]
    if long:
        terminalreporter.section("More than a second, and not marked as slow")
        for seconds, name in sorted(long, reverse=True):
            terminalreporter.write_line(f"{seconds:5.1f} s of processor time  {name}")


def _refuse_process(event: str, _: object) -> None:
    if _fast_test is not None and event in STARTS:
        raise RuntimeError(f"{_fast_test.nodeid} starts a process: mark it as slow")


sys.addaudithook(_refuse_process)
