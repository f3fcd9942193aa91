# SPDX-License-Identifier: Apache-2.0
"""Makes the listeners that trace runs, if the extra ``actionplan[traces]`` is installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from applier.contracts import Listener
from applier.extras import MissingExtra
from planner.plan.model import ActionPlan

LOG = logging.getLogger(__package__)


@contextmanager
def listeners() -> Iterator[Callable[[ActionPlan], AbstractContextManager[Listener]] | None]:
    """Yield a function that makes the listener of a run from its plan.

    Yields None if the extra is not installed or the variables ``OTEL_*`` are wrong; both are
    logged. The end of the block sends the remaining spans, for a bounded time.
    """
    try:
        from applier.monitoring.traces import TracedRun, sent
    except ImportError:
        LOG.error("%s", MissingExtra("[watcher_applier] traces", "traces"))
        yield None
        return
    with sent() as tracer:
        yield partial(TracedRun, tracer) if tracer else None
