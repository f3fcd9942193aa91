# SPDX-License-Identifier: Apache-2.0
"""The user of a process has the name that the system knows, else a number."""

from __future__ import annotations

import os
import pwd

import pytest

from applier.run.user import user

#: The largest number that a user can have; nobody is called that.
NAMELESS = 2**32 - 2


def test_no_variable_makes_somebody_else_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "bo")
    assert user() == pwd.getpwuid(os.getuid()).pw_name


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NAMELESS)
    assert user() == str(NAMELESS)
