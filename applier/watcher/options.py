# SPDX-License-Identifier: Apache-2.0
"""The sections of ``watcher.conf`` with options of ActionPlan; can be imported without Watcher.

Watcher's services read them. The commands of ActionPlan accept them in a file that both read.
"""

from __future__ import annotations

from collections.abc import Sequence

from oslo_config import cfg

from applier.watcher import engine_options
from planner import options as planning_options

SECTIONS: tuple[tuple[str, Sequence[cfg.Opt]], ...] = (
    (planning_options.SECTION_IN_WATCHER, planning_options.OPTIONS_IN_WATCHER),
    (engine_options.SECTION, engine_options.ENGINE_OPTIONS),
)
