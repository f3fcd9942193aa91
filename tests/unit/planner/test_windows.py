# SPDX-License-Identifier: Apache-2.0
"""Windows: read, refused, and open when the clocks of their zones say so."""

from __future__ import annotations

import pytest

from planner import windows

PRAGUE = "sat 22:00-04:00 Europe/Prague"


@pytest.mark.parametrize(
    "text",
    [
        "22:00-04:00 Europe/Prague",
        "sat 22:00-24:00 UTC",
        "sat 22-04 UTC",
        "sat 22:00-04:00",
        "samstag 22:00-04:00 UTC",
        "sat, sun 22:00-04:00 UTC",
        "sat 22:00-04:00 Europe/Praha",
        "sat 22:00-04:00 ../etc/passwd",
        "s\u0430t 22:00-04:00 UTC",
    ],
)
def test_what_is_no_window_is_told(text):
    with pytest.raises(ValueError, match=r"DAYS FROM-TO ZONE|no zone"):
        windows.windows([text])


def test_all_wrong_windows_are_told():
    with pytest.raises(ValueError, match=r"'a' is not .*; 'b' is not"):
        windows.windows(f"a, {PRAGUE}\nb")


@pytest.mark.parametrize(
    ("text", "days"),
    [("daily", (0, 1, 2, 3, 4, 5, 6)), ("mon-fri", (0, 1, 2, 3, 4)), ("sat-mon,wed", (0, 2, 5, 6))],
)
def test_days_are_lists_and_ranges(text, days):
    assert windows.window(f"{text} 01:00-02:00 UTC").days == days
