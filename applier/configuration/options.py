# SPDX-License-Identifier: Apache-2.0
"""The options of the product that belong to no plugin."""

from __future__ import annotations

from collections.abc import Sequence

from oslo_config import cfg

from applier.configuration import option_types
from applier.configuration.guard_options import GUARD_OPTIONS
from applier.configuration.option_types import CheckedText, Webhooks
from applier.configuration.plugin_options import DEFAULT_ENGINE, InstalledCloud
from applier.run.plan_cloud import SIMULATED
from applier.watcher import engine_options
from planner.making import options as planning_options
from planner.schemas import ranges

ACTIONPLAN = cfg.OptGroup("actionplan", title="The record, and the cloud that actions work on")
APPLIER = cfg.OptGroup("watcher_applier", title="How plans are applied")
SSH = cfg.OptGroup("ssh", title="How nodes that have an address are reached")
SIMULATED_NODES = cfg.OptGroup("simulated_nodes", title="What becomes of nodes without an address")
API = cfg.OptGroup("api", title="The HTTP API")
EVENTS = cfg.OptGroup("events", title="Where the events of plans are delivered")
WORKERS = cfg.OptGroup("workers", title="One plan over many machines: actions run at workers")

ACTIONPLAN_OPTIONS = (
    cfg.Opt(
        "connection",
        type=CheckedText(option_types.record),
        secret=True,
        sample_default="sqlite:////var/lib/actionplan/actionplan.sqlite",
        help="URL of the record, the database in which plans are stored. "
        "Default: a SQLite file in the user's state folder. For a server: "
        "postgresql://USER:PASSWORD@HOST/NAME or mysql://USER:PASSWORD@HOST/NAME. It must not be "
        "the database of Watcher.",
    ),
    cfg.Opt(
        "cloud",
        type=InstalledCloud(),
        default=SIMULATED,
        help="The cloud that actions work on: an entry point of actionplan.clouds, such as "
        "'simulated', which touches nothing real. A plan runs only on the cloud that it was made "
        "for. The options of another cloud are in the section of its name.",
    ),
    cfg.ListOpt(
        "plugins",
        default=[],
        help="Python files with action types and planners that need not be installed, such as "
        "./my_actions.py: absolute paths, or relative to the configuration file that names them.",
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
    cfg.BoolOpt(
        "rollback_when_actionplan_failed",
        default=False,
        help="Whether a plan that ended FAILED gets a plan that undoes what it did, and that is "
        "started at once; the history of both names both. Not inside Watcher.",
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
API_OPTIONS = (
    cfg.HostAddressOpt(
        "host",
        default="127.0.0.1",
        help="Address on which actionplan-api listens.",
    ),
    cfg.PortOpt("port", default=9322, help="Port on which actionplan-api listens."),
    cfg.StrOpt(
        "auth_strategy",
        choices=[
            ("none", "nobody is asked for a name; only on a loopback address"),
            ("http_basic", "user and password of the file http_basic_auth_user_file"),
            ("keystone", "a token of Keystone, as [keystone_authtoken] says"),
        ],
        default="none",
        help="How callers prove who they are. Without any proof they have the role 'operator', "
        "users of the file those that 'roles' names, and Keystone knows the roles of its own.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="/etc/actionplan/htpasswd",
        help="File with a line USER:HASH for each user, with bcrypt: 'htpasswd -B FILE USER' "
        "writes one.",
    ),
    cfg.DictOpt(
        "roles",
        default={},
        sample_default={"ada": "admin", "bob": "operator"},
        help="Roles of the users of that file, as USER:ROLE. A 'reader' may look, an 'operator' "
        "may also make, run and steer plans, an 'admin' may do everything. Users that are not "
        "named are readers.",
    ),
    cfg.StrOpt(
        "reader_role",
        sample_default="cloud_reader",
        help="Role of Keystone that may read all plans, with the names of servers and commands of "
        "all projects. Default: only 'admin' and 'operator' may. The role 'reader' of Keystone "
        "is one that every member of any project has.",
    ),
    cfg.StrOpt(
        "command_role",
        default="admin",
        help="Role that may store a plan whose actions run commands, write files or ask other "
        "systems than the cloud, such as shell and http_check: they do so as the user of the "
        "applier, from its machine.",
    ),
    cfg.FloatOpt(
        "requests_per_second",
        default=100.0,
        min=0.01,
        max=ranges.MOST,
        help="Requests that one caller may make in a second, on average; ten seconds' worth may "
        "come at once. More are answered with 429.",
    ),
)
EVENT_OPTIONS = (
    cfg.Opt(
        "webhooks",
        secret=True,
        type=Webhooks(),
        default={},
        sample_default="ops:https://ops.example.org/hooks/actionplan",
        help="Addresses to which actionplan-applier posts each event as a CloudEvent, as "
        "NAME:URL, separated by commas. With another name, it is another receiver.",
    ),
    cfg.DictOpt(
        "secret_files",
        default={},
        sample_default="ops:/etc/actionplan/ops.secret",
        help="Files with the keys by which requests to webhooks are signed, as NAME:FILE.",
    ),
    cfg.StrOpt(
        "file",
        sample_default="/var/log/actionplan/events.jsonl",
        help="File to which actionplan-applier appends each event as a line of JSON.",
    ),
    cfg.BoolOpt(
        "notifications",
        default=False,
        help="Whether actionplan-applier sends events as the notifications of Watcher, by the "
        "options that Watcher has for that: [DEFAULT] transport_url, "
        "[oslo_messaging_notifications] and [oslo_messaging_rabbit].",
    ),
    cfg.FloatOpt(
        "give_up_after_s",
        default=86400.0,
        min=1,
        max=ranges.LONGEST_S,
        help="Seconds for which an event is delivered again before it is given up; those are "
        "listed by: actionplan event list --dead.",
    ),
    cfg.FloatOpt(
        "keep_s",
        default=86400.0,
        min=60,
        max=ranges.LONGEST_S,
        help="Seconds for which events are kept for readers, who ask for them over HTTP. Readers "
        "count as gone when they have not asked for that long.",
    ),
)
WORKER_OPTIONS = (
    cfg.Opt(
        "broker",
        type=CheckedText(option_types.broker),
        secret=True,
        sample_default="amqp://actionplan:SECRET@broker.example//",
        help="Address of the message broker between appliers and workers: amqp:// or amqps:// for "
        "RabbitMQ, redis:// or rediss:// for Redis. Needs the extra workers.",
    ),
    cfg.StrOpt(
        "broker_ca_file",
        sample_default="/etc/ssl/certs/broker-ca.pem",
        help="File with the certificates of the authorities by which a broker at amqps:// or "
        "rediss:// is known. Without it, those of the system count. The certificate always has to "
        "be of the host that 'broker' names.",
    ),
    cfg.ListOpt(
        "queues",
        default=["default"],
        sample_default="site-b,default",
        help="The queues that a worker serves. Actions that no route leads elsewhere are in the "
        "queue 'default'.",
    ),
    cfg.FloatOpt(
        "lease_s",
        default=30.0,
        min=1,
        max=ranges.LONGEST_S,
        help="Seconds after which a worker that was not heard of counts as lost. A shorter outage "
        "of the record, of the broker or of a link costs no action. The same value for appliers "
        "and workers.",
    ),
    cfg.ListOpt(
        "route",
        item_type=CheckedText(option_types.token_kind),
        default=[],
        sample_default="region",
        help="Kinds of tokens that name the queue of an action: with 'region', an action with the "
        "token region:site-b is in the queue site-b. The first kind of which it has one counts.",
    ),
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
    *engine_options.SECTIONS,
)
BY_SECTION = {g if isinstance(g, str) else g.name: options for g, options in OWN}
