# SPDX-License-Identifier: Apache-2.0
"""Parses the times of requests, which need an offset: the server cannot know the client's zone."""

from __future__ import annotations

from datetime import datetime

from planner import ranges


def moment(text: str) -> datetime:
    """Return a time in UTC; raises ValueError for one without an offset, or that does not exist."""
    found = ranges.moment(text)
    if datetime.fromisoformat(text).tzinfo is None:
        example = "2026-08-01T00:00:00Z or 2026-08-01T02:00:00+02:00"
        raise ValueError(f"{text!r} has no offset; accepted: a time such as {example}")
    return found
