# SPDX-License-Identifier: Apache-2.0
"""Who starts when many wait: what tests/property/test_gates.py tries at random, one by one."""

from __future__ import annotations

import pytest

from applier.scheduling.gates import Gates


def taken(gates: Gates) -> list[str]:
    """Take all that may start."""
    return list(iter(gates.take, None))


@pytest.mark.parametrize(("patience", "starts"), [(1, []), (2, []), (3, ["small"])])
def test_who_was_examined_in_vain_often_enough_collects_its_tokens(patience, starts):
    """``big`` is examined once when both tokens are held, and again when x comes free."""
    gates = Gates({"x": 1, "y": 1}, 9, patience=patience)
    gates.submit("holds x", ["x"])
    gates.submit("holds y", ["y"])
    assert taken(gates) == ["holds x", "holds y"]
    gates.submit("big", ["x", "y"], rank=0)
    assert taken(gates) == []
    gates.submit("small", ["x"], rank=1)
    gates.release("holds x")
    assert taken(gates) == starts
    gates.release("holds y")
    for key in starts:
        assert taken(gates) == []
        gates.release(key)
    assert taken(gates) == ["big"]


def test_what_is_lost_keeps_a_token_from_those_that_wait():
    gates = Gates({"x": 2, "y": 1}, 9)
    for key in ("a", "b"):
        gates.submit(key, ["x", "y"] if key == "a" else ["x"])
    assert taken(gates) == ["a", "b"]
    gates.submit("wants x", ["x"])
    gates.submit("wants y", ["free", "y"])
    assert gates.unobtainable("wants x") is None
    gates.give_up("a")
    assert gates.unobtainable("wants x") is None, "b will give one back"
    assert gates.unobtainable("wants y") == ("y", "a")
    gates.give_up("b")
    assert gates.unobtainable("wants x") == ("x", "a")
    gates.set_limit("x", 3)
    assert gates.unobtainable("wants x") is None


@pytest.mark.parametrize("number", [0, -1])
def test_a_limit_below_one_is_refused(number):
    with pytest.raises(ValueError, match=f"limit x is {number}: a limit is at least 1"):
        Gates({"x": number}, 1)
    with pytest.raises(ValueError, match="max_workers"):
        Gates({}, number)
    gates = Gates({}, 1)
    with pytest.raises(ValueError, match="limit x"):
        gates.set_limit("x", number)
    with pytest.raises(ValueError, match="max_workers"):
        gates.set_workers(number)
