# SPDX-License-Identifier: Apache-2.0
"""How many members a group is to have."""

from __future__ import annotations

import pytest

from planner.planners.rolling_update.template import Configuration, Group


def group(desired: int | None, least: int, most: int | None) -> Group:
    configuration = Configuration(name="c", value={})
    return Group(
        name="g",
        configuration=configuration,
        places={},
        desired=desired,
        least=least,
        most=most,
        policy=None,
    )


@pytest.mark.parametrize(
    ("desired", "least", "most", "capacity", "size"),
    [
        (4, 1, 3, 9, 4),
        (0, 1, 3, 9, 0),
        (None, 1, 3, None, 1),
        (None, 1, 3, 0, 1),
        (None, 1, 3, 2, 2),
        (None, 1, 3, 9, 3),
        (None, 1, None, 9, 9),
        (None, 2, None, 1, 2),
    ],
)
def test_it_is_what_is_desired_or_what_there_is_within_its_bounds(
    desired: int | None, least: int, most: int | None, capacity: int | None, size: int
) -> None:
    assert group(desired, least, most).size(capacity) == size
