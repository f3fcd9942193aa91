# SPDX-License-Identifier: Apache-2.0
"""The options of the product, and the places where its configuration file is searched.

There is no global configuration: an entry point makes one with :func:`load`, and passes values to
the other modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg
from platformdirs import user_config_path, user_state_path

from applier import configuration_check, plugin_options
from applier.errors import ConfigurationError
from planner import options as planning_options
from planner import ranges, registry
from planner.errors import PlannerError

if TYPE_CHECKING:
    from applier.machines import OpenMachines

#: The name of the configuration file; it may be the one of Watcher's services.
FILE = "watcher.conf"
SITE_FILE = Path("/etc/watcher") / FILE

ACTIONPLAN = cfg.OptGroup("actionplan", title="The record, and the cloud that actions work on")
APPLIER = cfg.OptGroup("watcher_applier", title="How plans are applied")
SSH = cfg.OptGroup("ssh", title="How nodes that have an address are reached")
SIMULATED_NODES = cfg.OptGroup("simulated_nodes", title="What becomes of nodes without an address")

ACTIONPLAN_OPTIONS = (
    cfg.StrOpt(
        "connection",
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
        help="Simulated seconds per second of real time, also in pauses and sleeps of plans.",
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
        default="taskflow",
        help="Workflow engine that runs plans: an entry point of watcher_workflow_engines.",
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
)

#: The sections that belong to no plugin.
_OWN: tuple[tuple[cfg.OptGroup | str, Sequence[cfg.Opt]], ...] = (
    (planning_options.GROUP, planning_options.OPTIONS),
    (APPLIER, APPLIER_OPTIONS),
    (ACTIONPLAN, ACTIONPLAN_OPTIONS),
    (SSH, SSH_OPTIONS),
    (SIMULATED_NODES, SIMULATED_NODES_OPTIONS),
)


def list_opts() -> list[tuple[cfg.OptGroup | str, Sequence[cfg.Opt]]]:
    """List all options by section, with those of installed plugins, all of which are imported.

    A planner that cannot be imported is left out; using it raises the error.
    """
    return [*_OWN, *_of_planners(), *plugin_options.listed()]


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register the options of every installed plugin, which :func:`load` does not do."""
    for section, options in list_opts():
        conf.register_opts(options, group=section)


def _of_planners() -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    for name in registry.names(registry.PLANNERS):
        try:
            options = registry.planner(name).OPTIONS
        except PlannerError:
            continue
        if options:
            yield planning_options.group_of(name), options


def files() -> list[str]:
    """Find the configuration file that is read unless another is named: the user's, else the
    site's. Never one in the working directory."""
    for path in (user_config_path("actionplan") / FILE, SITE_FILE):
        if path.is_file():
            return [str(path)]
    return []


def load(
    config_files: Sequence[str] | None = None,
    *,
    arguments: Sequence[str] = (),
    description: str | None = None,
    prepare: Callable[[cfg.ConfigOpts], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    checked: bool = True,
) -> cfg.ConfigOpts:
    """Read and check the configuration; raises ConfigurationError with all mistakes.

    Sections may also contain options of Watcher. ``arguments`` are command line arguments that
    oslo.config parses, such as ``--config-file``; ``description`` is shown in their help.
    ``prepare`` registers further options, ``warn`` is called with each warning. Without
    ``checked``, invalid values raise an error when they are read.
    """
    conf = cfg.ConfigOpts()
    prepare(conf)
    for section, options in _OWN:
        conf.register_opts(options, group=section)
    try:
        conf(
            args=list(arguments),
            project="actionplan",
            version=version("actionplan") if arguments else None,
            description=description,
            default_config_files=list(config_files) if config_files else files(),
            default_config_dirs=[],
        )
    except cfg.ConfigFilesNotFoundError as reason:
        raise ConfigurationError(
            f"no configuration file {', '.join(reason.config_files)}"
        ) from reason
    except cfg.Error as reason:
        raise ConfigurationError(str(reason)) from reason
    if checked:
        for text in configuration_check.check(conf, _by_section(), os.environ):
            warn(text)
    return conf


def _by_section() -> dict[str, Sequence[cfg.Opt]]:
    return {g if isinstance(g, str) else g.name: options for g, options in _OWN}


def state_path() -> Path:
    """Return the folder of the user's SQLite file and simulated cloud."""
    return Path(user_state_path("actionplan"))


def connection(conf: cfg.ConfigOpts) -> str:
    """Return the URL of the database."""
    given = conf.actionplan.connection
    return str(given) if given else f"sqlite:///{state_path() / 'actionplan.sqlite'}"


def simulator_path(conf: cfg.ConfigOpts) -> Path:
    """Return the file of the simulated cloud."""
    given = conf.actionplan.simulator
    return Path(os.path.expanduser(given)) if given else state_path() / "simulator.json"


def jobs_path(conf: cfg.ConfigOpts) -> Path:
    """Return the folder of the commands that run on this machine: beside a record in a file."""
    given = conf.actionplan.connection or ""
    path = given.removeprefix("sqlite:///") if given.startswith("sqlite:///") else ""
    file = path.partition("?")[0]
    return (Path(file).absolute().parent if file else state_path()) / "jobs"


def machines(conf: cfg.ConfigOpts) -> OpenMachines:
    """Return the machines for tasks, without connecting to any; raises ConfigurationError.

    The caller has to close them.
    """
    from applier.machines import OpenMachines
    from applier.machines.settings import SimulationSettings, SshSettings

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
        jobs_path(conf),
    )
