# SPDX-License-Identifier: Apache-2.0
"""Rules that verify the work of interrupted actions, by action type.

A rule is called with Watcher's object of the action, and changes nothing. Actions of a type without
a rule are in doubt. Their pre_condition cannot replace a rule, because it also skips actions whose
instance does not exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg
from watcher.common import nova_helper

from applier.contracts import Verified

CONF = cfg.CONF
#: Never set; its ``wait`` is used to sleep.
_NEVER = threading.Event()


def patience_s() -> float:
    """Return how many seconds a rule may take: 30 more than Watcher waits for a migration."""
    return float(CONF.nova.migration_max_retries * CONF.nova.migration_interval) + 30.0


def migrated(action: Any) -> Verified:
    """Wait until Nova has no task for the instance; then decide by the host of the instance.

    The migration is DONE if that is the destination or, without a destination, any host but the
    source. It is NOT_DONE if that is the source. It is IN_DOUBT on another host, while a cold
    migration waits for its confirmation, and if Nova's task does not end in time.
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


#: The rules by action type.
VERIFIERS: Mapping[str, Callable[[Any], Verified]] = {"migrate": migrated}
