# SPDX-License-Identifier: Apache-2.0
"""Rules by type that say whether the work of an interrupted action is done.

A rule gets Watcher's object of the action, and changes nothing. A type without a rule is in doubt:
its pre_condition cannot tell, because it also skips actions whose instance does not exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg
from watcher.common import nova_helper

from applier.contracts import Verified

CONF = cfg.CONF
#: Never set: used to wait.
_NEVER = threading.Event()


def patience_s() -> float:
    """Return how long a rule may take: as long as Watcher itself waits for a move."""
    return float(CONF.nova.migration_max_retries * CONF.nova.migration_interval) + 30.0


def migrated(action: Any) -> Verified:
    """Wait until Nova does not move the instance any more; then its host says it.

    It is done on the destination, or without one on any host but the source. A cold move that
    waits for its confirmation is in doubt.
    """
    nova = nova_helper.NovaHelper()
    server = nova.find_instance(action.instance_uuid)
    for _ in range(CONF.nova.migration_max_retries):
        if not server.task_state:
            break
        _NEVER.wait(CONF.nova.migration_interval)
        server = nova.find_instance(action.instance_uuid)
    if server.task_state or not server.host or server.status == "VERIFY_RESIZE":
        return Verified.IN_DOUBT
    if server.host == action.source_node:
        return Verified.NOT_DONE
    if action.destination_node in (None, server.host):
        return Verified.DONE
    return Verified.IN_DOUBT


VERIFIERS: Mapping[str, Callable[[Any], Verified]] = {"migrate": migrated}
