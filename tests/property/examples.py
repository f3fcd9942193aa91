# SPDX-License-Identifier: Apache-2.0
"""How many examples a property is tried on: all of them with ``--hypothesis-profile full``."""

from hypothesis import settings


def examples(number: int) -> int:
    """Return ``number`` in the profile ``full``, and a tenth of it without one.

    The profiles are in ``tests/conftest.py``: one tries 100 examples, the other 10.
    """
    return max(1, number * settings.default.max_examples // 100)
