# SPDX-License-Identifier: Apache-2.0
"""The colours of states, the columns of a recap, and the width of output."""

from __future__ import annotations

from planner.states import ActionState

#: Width of output that is not written to a terminal.
WIDTH = 100
#: Colour of each state, which is also written as a word.
STYLES = {
    ActionState.SUCCEEDED: "green",
    ActionState.SKIPPED: "cyan",
    ActionState.ONGOING: "bold",
    ActionState.FAILED: "bold red",
    ActionState.UNKNOWN: "bold red",
    ActionState.REVERT_FAILED: "bold red",
    ActionState.FAILED_DEPENDENCIES: "red",
    ActionState.CANCELLED: "yellow",
}
#: Columns of a recap, in order.
RESULTS = ("changed", "already", "skipped", "failed", "in doubt", "not run")
