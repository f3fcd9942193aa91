# SPDX-License-Identifier: Apache-2.0
"""The power of the lab's nodes, steered by the ``extra`` of a node.

===================  ======================================================================
lab_hold = PATH      a change of the power waits until this file is gone
lab_power = fail     a change of the power fails; so does a soft power-off
lab_soft = fail      a soft power-off fails, as where the operating system does not obey
lab_soft = refuse    the computer knows no soft power-off
===================  ======================================================================

``lab_targets`` of the ``driver_internal_info`` lists what the node was told.
"""

from __future__ import annotations

import time
from pathlib import Path

from ironic.common import states
from ironic.drivers.modules import fake


def set_power_state(self, task, power_state, timeout=None):
    """Change the power of a node, or fail."""
    extra = task.node.extra
    told = task.node.driver_internal_info.get("lab_targets", [])
    task.node.set_driver_internal_info("lab_targets", [*told, power_state])
    task.node.save()
    while "lab_hold" in extra and Path(extra["lab_hold"]).exists():
        time.sleep(0.05)
    if extra.get("lab_power") == "fail":
        raise RuntimeError("lab_power=fail")
    if power_state == states.SOFT_POWER_OFF and extra.get("lab_soft") == "fail":
        raise RuntimeError(f"lab_soft=fail within {timeout} s")


def supported(self, task):
    """Return the targets that a node knows."""
    targets = [states.POWER_ON, states.POWER_OFF, states.SOFT_POWER_OFF]
    return targets[:2] if task.node.extra.get("lab_soft") == "refuse" else targets


fake.FakePower.set_power_state = set_power_state
fake.FakePower.get_supported_power_states = supported
