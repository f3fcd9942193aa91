# SPDX-License-Identifier: Apache-2.0
"""The interfaces of plugins and listeners, and the values that they use.

All methods return on success and raise an error on failure. None decides which action runs next.
The interface of clouds is :class:`applier.contracts.clouds.Cloud`.
"""

from applier.contracts.actions import REVERT, ActionContext, ActionPlugin, Verified, undone_by
from applier.contracts.machines import Content, Ended, Machine, Machines, Print, StopSignal, silent
from applier.contracts.reports import (
    CANCELS,
    MAX_WORKERS,
    PAUSES,
    ActionOf,
    Approval,
    Claimant,
    HistoryEntry,
    JobOffer,
    Listener,
    Once,
    Report,
    Request,
    RequestVerb,
    RunOptions,
)

__all__ = (
    "CANCELS",
    "MAX_WORKERS",
    "PAUSES",
    "REVERT",
    "ActionContext",
    "ActionOf",
    "ActionPlugin",
    "Approval",
    "Claimant",
    "Content",
    "Ended",
    "HistoryEntry",
    "JobOffer",
    "Listener",
    "Machine",
    "Machines",
    "Once",
    "Print",
    "Report",
    "Request",
    "RequestVerb",
    "RunOptions",
    "StopSignal",
    "Verified",
    "silent",
    "undone_by",
)
