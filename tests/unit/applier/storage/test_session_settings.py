# SPDX-License-Identifier: Apache-2.0
"""What is set up in each new connection."""

from __future__ import annotations

import pytest

from applier.storage.connection import _settings
from applier.storage.dialects import POSTGRESQL


@pytest.mark.parametrize(
    ("answer_s", "statements"), [(None, ()), (20, ("SET statement_timeout = 20000",))]
)
def test_postgresql_gives_up_a_statement_after_so_many_milliseconds(answer_s, statements):
    assert _settings(POSTGRESQL, "FULL", 5.0, answer_s) == statements
