# SPDX-License-Identifier: Apache-2.0
"""Which lower limit is advised, of those that were rehearsed."""

from __future__ import annotations

import pytest

from applier.rehearsal.advice import Lowered, best
from applier.rehearsal.rehearsal_figures import Quantiles, RehearsalFigures


def figures(wrong_mean, makespan_s=60.0, homeless=0.0):
    none = Quantiles(0.0, 0.0, 0.0)
    return RehearsalFigures(
        runs=100,
        states={},
        makespan_s=Quantiles(makespan_s, makespan_s, makespan_s),
        wrong=none,
        wrong_mean=wrong_mean,
        not_run_mean=0.0,
        stopped_by={},
        homeless=Quantiles(homeless, homeless, homeless),
        homeless_runs=0,
        homeless_left=0,
        actions=(),
        half_done=(),
    )


def advised(planned, *tried):
    found = best(planned, [Lowered("max_workers", 8, i, one) for i, one in enumerate(tried)])
    return None if found is None else found.new


PLANNED = figures(4.0)


@pytest.mark.parametrize(
    ("tried", "number"),
    [
        ([], None),
        ([figures(4.0), figures(3.9)], None),
        ([figures(5.0), figures(1.0)], 1),
        # Of those that help about alike, the fastest; one that helps much more is worth its time.
        ([figures(1.0, 90.0), figures(1.0, 70.0)], 1),
        ([figures(3.0, 10.0), figures(1.0, 90.0)], 1),
        # One that lets nothing go wrong.
        ([figures(2.0, 10.0), figures(0.0, 90.0)], 1),
        ([figures(0.0, 90.0), figures(0.0, 70.0)], 1),
        # Neither may get worse.
        ([figures(1.0, homeless=1.0)], None),
    ],
)
def test_the_limit_that_lets_least_go_wrong_is_advised(tried, number):
    assert advised(PLANNED, *tried) == number


def test_fewer_instances_without_a_home_help_as_well():
    assert advised(figures(4.0, homeless=9.0), figures(4.0, homeless=2.0)) == 0
