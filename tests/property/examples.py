# SPDX-License-Identifier: Apache-2.0
"""How many examples a property is tried on."""

from hypothesis import settings


def examples(number: int) -> int:
    """Return ``number``, or the share of it that the chosen profile of hypothesis tries.

    The profiles are in ``tests/conftest.py``; without a choice a property is tried on 100 examples.
    """
    return max(1, number * settings.default.max_examples // 100)
