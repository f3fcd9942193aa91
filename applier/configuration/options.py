# SPDX-License-Identifier: Apache-2.0
"""The options of the product that belong to no plugin."""

from __future__ import annotations

from collections.abc import Sequence

from oslo_config import cfg

from applier.configuration import option_types
from applier.configuration.api_options import API, API_OPTIONS
from applier.configuration.event_options import EVENT_OPTIONS, EVENTS
from applier.configuration.guard_options import GUARD_OPTIONS
from applier.configuration.option_types import CheckedText
from applier.configuration.plugin_options import DEFAULT_ENGINE, InstalledCloud
from applier.configuration.worker_options import WORKER_OPTIONS, WORKERS
from applier.run.plan_cloud import SIMULATED
from applier.watcher import options as watcher
from planner import options as planning_options
from planner import ranges

ACTIONPLAN = cfg.OptGroup("actionplan", title="The record, and the cloud that actions work on")
APPLIER = cfg.OptGroup("watcher_applier", title="How plans are applied")
SSH = cfg.OptGroup("ssh", title="How nodes that have an address are reached")
SIMULATED_NODES = cfg.OptGroup("simulated_nodes", title="What becomes of nodes without an address")

ACTIONPLAN_OPTIONS = (
    cfg.Opt(
        "connection",
        type=CheckedText(option_types.record),
        secret=True,
        sample_default="sqlite:////var/lib/actionplan/actionplan.sqlite",
        help="SQLAlchemy URL of the record, the database in which plans are stored. "
        "Default: a SQLite file in the user's state folder. For a server: "
        "postgresql://USER:PASSWORD@HOST/NAME or mysql://USER:PASSWORD@HOST/NAME. It must not be "
        "the database of Watcher.",
    ),
    cfg.StrOpt(
        "synchronous",
        choices=[
            ("FULL", "recorded changes survive a loss of power"),
            ("NORMAL", "faster; recorded changes survive a crash of the program"),
        ],
        default="FULL",
        help="How SQLite writes the record to disk (PRAGMA synchronous).",
    ),
    cfg.Opt(
        "cloud",
        type=InstalledCloud(),
        default=SIMULATED,
        help="The cloud that actions work on: an entry point of actionplan.clouds, such as "
        "'simulated', which touches nothing real. A plan runs only on the cloud that it was made "
        "for. The options of another cloud are in the section of its name.",
    ),
    cfg.StrOpt(
        "simulator",
        sample_default="/var/lib/actionplan/simulator.json",
        help="File with the state of the simulated cloud. Default: a file in the user's "
        "state folder.",
    ),
    cfg.FloatOpt(
        "simulator_speed",
        default=1.0,
        min=0.001,
        max=1_000_000,
        help="Simulated seconds per second of real time. Without a real cloud, also in pauses and "
        "sleeps of plans.",
    ),
)
SSH_OPTIONS = (
    cfg.StrOpt(
        "known_hosts",
        default="~/.ssh/known_hosts",
        help="File of the trusted host keys, in the format of ssh. A node whose key is "
        "not in it is always refused.",
    ),
    cfg.ListOpt(
        "key_files",
        default=[],
        sample_default="/etc/actionplan/id_ed25519",
        help="Private keys without a passphrase. Default: those of the user's agent and in ~/.ssh.",
    ),
    cfg.FloatOpt(
        "connect_timeout_s",
        default=10.0,
        min=0.1,
        max=ranges.LONGEST_S,
        help="Seconds that connecting to a node, with login, may take.",
    ),
    cfg.FloatOpt(
        "reconnect_timeout_s",
        default=300.0,
        min=0,
        max=ranges.LONGEST_S,
        help="Seconds for which a lost connection to a node is tried again while a command runs "
        "there. After that, the action is in doubt; the command may go on.",
    ),
)
SIMULATED_NODES_OPTIONS = (
    cfg.ListOpt(
        "failures",
        item_type=CheckedText(option_types.failing_task),
        default=[],
        sample_default="0.01,3/netconfig",
        help="Tasks of simulated nodes that fail: a fraction of all tasks, 0 to 1, or NODE/TASK, "
        "where * matches any part of a name.",
    ),
    cfg.IntOpt(
        "seed",
        default=0,
        min=0,
        max=ranges.MOST,
        help="Seed for the choice of the tasks that fail by a fraction. The same seed chooses the "
        "same tasks, in whatever order they run.",
    ),
    cfg.StrOpt(
        "log",
        sample_default="/var/log/actionplan/simulated-nodes.log",
        help="File with a line for each start and end of a task on a simulated node: time, event "
        "(start, changed, failed or stopped), node, task. It is written independently of the "
        "record. Default: no file.",
    ),
)
APPLIER_OPTIONS = (
    cfg.StrOpt(
        "on_failure",
        choices=[
            ("skip_descendants", "actions that need a failed one do not run; all others do"),
            ("pause", "no more actions start; resume runs failed actions again"),
            ("continue", "as in Watcher, all actions run in spite of failures"),
        ],
        default="skip_descendants",
        help="Effect of a failed action, for plans that do not define it.",
    ),
    cfg.StrOpt(
        "workflow_engine",
        default=DEFAULT_ENGINE,
        help="Workflow engine that runs plans: an entry point of actionplan.engines. In Watcher, "
        "'actionplan' is this product; for its own commands that means its default.",
    ),
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        max=ranges.MOST,
        help="Number of plans that an applier service runs at once.",
    ),
    cfg.FloatOpt(
        "heartbeat_interval_s",
        default=5.0,
        min=0.05,
        max=ranges.LONGEST_S,
        help="Seconds between two heartbeats of an applier service, and of each plan that it runs. "
        "A service without a heartbeat for six intervals counts as dead, and its plans "
        "are taken over.",
    ),
    cfg.IntOpt(
        "grace_s",
        default=60,
        min=1,
        max=ranges.LONGEST_S,
        help="Seconds that an applier service, when told to end, waits for running "
        "actions. Actions that still run then are interrupted; the applier that takes the plan "
        "over verifies them.",
    ),
    cfg.PortOpt(
        "metrics_port",
        min=1,
        sample_default=9323,
        help="Port on 127.0.0.1 on which an applier service shows its metrics to Prometheus: what "
        "only a process that runs plans knows. Default: none, and runs are measured only with "
        "--with-api, whose /metrics has them as well.",
    ),
    cfg.BoolOpt(
        "traces",
        default=False,
        help="Whether 'actionplan apply' and an applier service send a trace of each run by "
        "OpenTelemetry. The standard variables say where to: OTEL_EXPORTER_OTLP_ENDPOINT and "
        "its like. Needs the extra traces.",
    ),
    *GUARD_OPTIONS,
)

#: The sections that belong to no plugin.
OWN: tuple[tuple[cfg.OptGroup | str, Sequence[cfg.Opt]], ...] = (
    (planning_options.GROUP, planning_options.OPTIONS),
    (APPLIER, APPLIER_OPTIONS),
    (ACTIONPLAN, ACTIONPLAN_OPTIONS),
    (SSH, SSH_OPTIONS),
    (SIMULATED_NODES, SIMULATED_NODES_OPTIONS),
    (API, API_OPTIONS),
    (EVENTS, EVENT_OPTIONS),
    (WORKERS, WORKER_OPTIONS),
    *watcher.SECTIONS,
)
