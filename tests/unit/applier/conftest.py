# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of several rooms of the applier."""

from __future__ import annotations

from contextlib import ExitStack, closing
from importlib.metadata import EntryPoint

import pytest
from stevedore import ExtensionManager
from temporary_store import TemporaryStore
from trials import Trial

from planner.making import registry


@pytest.fixture
def store():
    """Return an empty store."""
    with closing(TemporaryStore()) as made:
        yield made


@pytest.fixture
def open_trial():
    """Return a function that makes trials, which are closed after the test."""
    with ExitStack() as trials:
        yield lambda *given, **options: trials.enter_context(Trial(*given, **options))


@pytest.fixture
def offer():
    """Return a function that registers a plugin, in place of any other of its name."""

    def forget():
        registry.entries.cache_clear()
        registry.names.cache_clear()
        registry.load.cache_clear()

    def register(namespace, name, target):
        others = [entry for entry in registry.entries(namespace) if entry.name != name]
        offered = [*others, EntryPoint(name, target, namespace)]
        patched.setitem(ExtensionManager.ENTRY_POINT_CACHE, namespace, offered)
        forget()

    with pytest.MonkeyPatch.context() as patched:
        yield register
    forget()


@pytest.fixture
def ended_pid():
    """Return a pid that no process has: it is above the highest that Linux gives (2**22)."""
    return 2**31 - 1
