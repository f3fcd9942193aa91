# SPDX-License-Identifier: Apache-2.0
"""An action type in a file that watcher.conf names: ``[actionplan] plugins = ./my_actions.py``."""

from applier.actions.functions import action
from applier.contracts import ActionContext, StopSignal
from applier.errors import ActionFailed


@action(touches=["node:{node}"], runs_on=["address"], rerun_safe=True)
def restart(
    context: ActionContext, stop: StopSignal, node: str, service: str, address: str | None = None
) -> None:
    """Restart a service of a node."""
    ended = context.run(["systemctl", "restart", service], stop, address=address)
    if ended.code != 0:
        raise ActionFailed(f"{node}: systemctl ended with {ended.code}: {ended.last_line}")
