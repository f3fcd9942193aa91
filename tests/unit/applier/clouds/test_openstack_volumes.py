# SPDX-License-Identifier: Apache-2.0
"""When the work on a volume of Cinder is over, by the states that a real one went through."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from applier.clouds.openstack import volumes

A, B = "lab@b1#p1", "lab@b2#p1"


def volume(status, migration, host=A, kind="t1"):
    return SimpleNamespace(
        id="7b2e", name="", status=status, migration_status=migration, host=host, volume_type=kind
    )


COPIED = [
    volume("available", "starting"),
    volume("available", "migrating"),
    volume("available", "completing"),
    # For a moment, before the end.
    volume("available", None, B),
    volume("available", "success", B),
]
ATTACHED = [volume("in-use", "starting"), volume("in-use", "migrating"), volume("in-use", "error")]
RETYPED_BY_COPY = [
    volume("retyping", "success"),
    volume("retyping", "starting"),
    volume("retyping", "migrating"),
    volume("retyping", "completing"),
    volume("available", None, B, "t2"),
    volume("available", "success", B, "t2"),
]
RETYPED_IN_PLACE = [volume("retyping", "success"), volume("available", "success", A, "t2")]
#: By the driver of a backend, between two of its pools; the migration status stays as it was.
RETYPED_INTO_A_POOL = [volume("retyping", None), volume("available", None, "lab@b1#p2", "t2")]
RETYPED_AFTER_AN_ERROR = [
    volume("retyping", "error"),
    volume("available", "error", "lab@b1#p2", "t2"),
]
NOT_RETYPED = [volume("retyping", None), volume("available", None)]
EXTENDED = [volume("extending", "success"), volume("available", "success")]


@pytest.mark.parametrize(
    "states",
    [
        *(COPIED, ATTACHED, RETYPED_BY_COPY, RETYPED_IN_PLACE),
        *(RETYPED_INTO_A_POOL, RETYPED_AFTER_AN_ERROR, NOT_RETYPED, EXTENDED),
    ],
)
def test_work_is_over_with_its_last_state_and_not_before(states):
    is_over = volumes.over(states[0])
    assert [is_over(state) for state in states] == [False] * (len(states) - 1) + [True]
    assert volumes.task_of(states[-1]) is None
    assert volumes.task_of(states[0]) in ("starting", "retyping", "extending")


def test_an_old_success_is_no_work():
    settled = volume("available", "success")
    assert volumes.task_of(settled) is None
    assert not volumes.is_moving(settled)
    assert volumes.over(settled)(settled)


def test_a_state_in_words():
    told = volumes.described(volume("in-use", "error"))
    plain = volumes.described(volume("available", None))
    for fact in ("type t1", "lab@b1#p1"):
        assert fact in told
        assert fact in plain
    assert (told.startswith("in-use"), plain.startswith("available")) == (True, True)
    assert ("error" in told, "error" in plain) == (True, False)
    assert volumes.name_of(volume("available", None)) == "7b2e"
