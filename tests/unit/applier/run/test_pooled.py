# SPDX-License-Identifier: Apache-2.0
"""Quantiles of samples in nested groups."""

from __future__ import annotations

from collections import Counter
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.run.expected_durations import PRIOR, Pooled

seconds = st.integers(0, 1000).map(float)


@given(st.lists(seconds, min_size=1))
def test_without_smaller_groups_the_quantiles_are_those_of_the_samples(samples):
    found = Pooled([sorted(samples)])
    assert found.quantile(0.5) == median(samples)
    nine = found.quantile(0.9)
    assert sum(s <= nine for s in samples) >= 0.9 * len(samples)
    assert sum(s < nine for s in samples) < 0.9 * len(samples)


@st.composite
def nested(draw):
    every = sorted(draw(st.lists(seconds, min_size=1)))
    some = sorted(draw(st.lists(st.sampled_from(every), max_size=len(every))))
    return every, some


@given(nested(), st.floats(0, 1))
def test_a_quantile_is_a_sample_between_those_of_the_group_and_of_all(groups, share):
    every, some = groups
    found = Pooled(groups).quantile(share)
    ends = [Pooled([every]).quantile(share), *([Pooled([some]).quantile(share)] if some else [])]
    assert min(ends) <= found <= max(ends)
    assert found in every or share == 0.5


@given(nested(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_takes_as_long_or_longer(groups, one, other):
    pooled = Pooled(groups)
    low, high = sorted((one, other))
    assert pooled.quantile(low) <= pooled.quantile(high)


@given(nested(), st.floats(0, 1, exclude_max=True))
def test_only_samples_are_drawn(groups, chance):
    assert Pooled(groups).draw(chance) in groups[0]


@pytest.mark.parametrize("number", [1, PRIOR, 100])
def test_samples_are_drawn_as_often_as_their_group_counts(number):
    pooled = Pooled([[1.0] * 1000 + [2.0] * number, [2.0] * number])
    drawn = Counter(pooled.draw(i / 10_000) for i in range(10_000))
    own = number / (number + PRIOR)
    expected = own + (1 - own) * number / (1000 + number)
    assert drawn[2.0] / 10_000 == pytest.approx(expected, abs=0.001)
