# SPDX-License-Identifier: Apache-2.0
"""Executes one action on the cloud ``lab``: ``python one_action.py TYPE PARAMETERS``.

For tests that kill it. PARAMETERS are JSON; what the action prints is printed.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from applier.clouds.openstack.cloud import OpenStackCloud
from applier.contracts import ActionContext, ActionPlugin
from planner.making.registry import ActionTypes


def action(cloud: OpenStackCloud, kind: str, parameters: Any) -> ActionPlugin:
    """Return an action of a type on a cloud."""
    context = ActionContext(
        cloud=lambda: cloud, output=lambda text: print(text, end="", flush=True)
    )
    made: ActionPlugin = ActionTypes()[kind](parameters, context)  # type: ignore[call-arg]
    return made


if __name__ == "__main__":
    print(
        action(OpenStackCloud(cloud="lab"), sys.argv[1], json.loads(sys.argv[2])).execute(
            threading.Event()
        )
    )
