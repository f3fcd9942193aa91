# SPDX-License-Identifier: Apache-2.0
"""A host is told from its containers; a user has the name that the system knows."""

from __future__ import annotations

import os
import pwd
import socket

import pytest

from applier.run.this_process import this_host, user

#: The largest number that a user can have; nobody is called that.
NAMELESS = 2**32 - 2


def test_no_variable_makes_somebody_else_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "bo")
    assert user() == pwd.getpwuid(os.getuid()).pw_name


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NAMELESS)
    assert user() == str(NAMELESS)


@pytest.mark.parametrize(
    ("namespace", "named"),
    [("pid:[4026531836]", ""), ("pid:[4026532501]", " pid:[4026532501]"), (None, "")],
)
def test_a_container_is_told_from_the_host_whose_name_it_shares(
    monkeypatch: pytest.MonkeyPatch, namespace: str | None, named: str
) -> None:
    def readlink(path: str) -> str:
        assert path == "/proc/self/ns/pid"
        if namespace is None:
            raise FileNotFoundError(path)
        return namespace

    monkeypatch.setattr(os, "readlink", readlink)
    assert this_host() == f"{socket.gethostname()}{named}"
