# SPDX-License-Identifier: Apache-2.0
"""Numbers by type, as text and as values."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from planner.planners.number_options import at_least_one, finite, unnamed, weights_option


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5), ("5", 5), (" -5 ", -5), ("2.5", 2.5), ("1e2", 100.0), (10**400, 10**400)],
)
def test_a_finite_number_is_read(value: object, number: float) -> None:
    found = finite(value)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize("value", ["", "x", "inf", "-inf", "nan", "1e999", None, True, [1]])
def test_anything_else_is_refused_by_what_it_is(value: object) -> None:
    with pytest.raises(ValueError, match="is not a "):
        finite(value)


@pytest.mark.parametrize("value", [0, -1, 0.5, "0", "x", None, True, float("inf")])
def test_below_one_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a whole number of 1 or more"):
        at_least_one(value)


def test_an_option_refuses_a_type_that_stands_twice() -> None:
    with pytest.raises(ValueError, match="Duplicate key nop"):
        weights_option({}).type("nop:1,nop:2")


def test_an_option_of_one_s_own_configuration_reads_the_same() -> None:
    conf = cfg.ConfigOpts()
    conf.register_opt(weights_option({"nop": 1}))
    conf([])
    assert conf.weights == {"nop": 1}
    conf.set_override("weights", "nop:2.5")
    assert conf.weights == {"nop": 2.5}


def test_types_without_a_number_are_named_once_in_alphabetical_order() -> None:
    assert unnamed("weight", {"b": 1}, ["c", "a", "b", "c"], 0) == [
        "action type 'a' has no weight: 0 is used",
        "action type 'c' has no weight: 0 is used",
    ]
