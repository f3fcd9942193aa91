# SPDX-License-Identifier: Apache-2.0
"""The uuids of plan and action that the log lines of a thread carry. Pure: writes no log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_FIELDS: ContextVar[Mapping[str, str] | None] = ContextVar("fields", default=None)


def current() -> Mapping[str, str]:
    """Return the fields for log lines of this thread: ``plan`` and ``action``, if they are set."""
    return _FIELDS.get() or {}


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Add fields to the lines that this thread logs in a block.

    >>> with about(plan="p"), about(action="a"):
    ...     current()
    {'plan': 'p', 'action': 'a'}
    >>> current()
    {}
    """
    token = _FIELDS.set({**current(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)
