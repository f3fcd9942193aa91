# SPDX-License-Identifier: Apache-2.0
"""What is said when somebody else was faster."""

from __future__ import annotations

from applier.storage.transitions import changed_meanwhile


def test_a_plan_that_changed_meanwhile_is_named_as_in_lists():
    refusal = changed_meanwhile("6a1f0c2e-77aa-4b0e-9d6e-1f5f0a6f7c11", "PENDING", "CANCELLED")
    said = "plan 6a1f0c2e was PENDING and is CANCELLED now: somebody else changed it"
    assert (str(refusal), refusal.state) == (said, "CANCELLED")
