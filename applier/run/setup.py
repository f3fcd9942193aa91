# SPDX-License-Identifier: Apache-2.0
"""Everything that a runner needs, in one value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from applier.contracts import Claimant, Listener
from applier.engines import Engine
from applier.engines.environment import ActionEnvironment
from applier.scheduling.verdict import OnFailure
from applier.store import RunStore
from planner.model import ActionPlan

UTC_NOW = partial(datetime.now, UTC)


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """The parts and settings that a runner uses, and the claimant that it runs as.

    ``on_failure`` applies to plans that have no policy themselves. While the store cannot be
    reached, no action starts, and writes are retried for up to ``store_patience_s`` seconds.
    Plugins may take up to ``verify_patience_s`` seconds to verify an interrupted action.
    ``listener_of`` makes one more listener, for a plan that was claimed; its block is the run.
    """

    store: RunStore
    engine: Engine
    environment: ActionEnvironment
    claimant: Claimant
    on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS
    listeners: tuple[Listener, ...] = ()
    listener_of: Callable[[ActionPlan], AbstractContextManager[Listener]] | None = None
    clock: Callable[[], datetime] = UTC_NOW
    request_interval_s: float = 1.0
    heartbeat_interval_s: float = 5.0
    store_patience_s: float = 120.0
    verify_patience_s: float = 30.0
