# SPDX-License-Identifier: Apache-2.0
"""Reads the options of SSH, of simulated nodes, and the folder of the jobs on this machine."""

from __future__ import annotations

from oslo_config import cfg

from applier import configuration
from applier.machines import OpenMachines
from applier.machines.address import SshSettings
from applier.machines.simulated_nodes import SimulationSettings


def open_machines(conf: cfg.ConfigOpts) -> OpenMachines:
    """Return the machines that a configuration describes, without connecting to any.

    Raises ConfigurationError.
    """
    ssh, simulated = conf.ssh, conf.simulated_nodes
    return OpenMachines(
        SshSettings(
            known_hosts=ssh.known_hosts,
            keys=tuple(ssh.key_files),
            connect_timeout_s=ssh.connect_timeout_s,
            reconnect_timeout_s=ssh.reconnect_timeout_s,
        ),
        SimulationSettings(
            speed=conf.actionplan.simulator_speed,
            failures=tuple(simulated.failures),
            seed=simulated.seed,
            log=simulated.log,
        ),
        configuration.jobs_path(conf),
    )
