# SPDX-License-Identifier: Apache-2.0
"""Loads the configuration, and returns the paths at which the product keeps its state.

There is no global configuration: an entry point makes one with :func:`load`, and passes values to
the other modules.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from oslo_config import cfg
from platformdirs import user_config_path, user_state_path

from applier.configuration import check, plugin_options
from applier.configuration.options import BY_SECTION, OWN
from applier.errors import ConfigurationError
from planner.errors import Mistake, PlannerError
from planner.making import registry
from planner.making.configuration_files import place_of

if TYPE_CHECKING:
    from applier.machines.open_machines import OpenMachines

#: The name of the configuration file; it may be the one of Watcher's services.
FILE = "watcher.conf"
SITE_FILE = Path("/etc/watcher") / FILE
#: The most bytes of a configuration file: 50 times the sample of Watcher with all its options.
MOST_BYTES = 4 * 1024 * 1024


def list_opts() -> list[tuple[cfg.OptGroup | str, Sequence[cfg.Opt]]]:
    """List all options by section, with those of installed plugins, all of which are imported.

    A plugin that cannot be imported is left out; using it raises the error.
    """
    return [*OWN, *plugin_options.listed()]


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register the options of every installed plugin, which :func:`load` does not do."""
    for section, options in list_opts():
        conf.register_opts(options, group=section)
    for section in plugin_options.sections_of_types():
        conf.register_opts(plugin_options.OF_EVERY_TYPE, group=section)


def files() -> list[str]:
    """Return the path of the configuration file that is read unless another is named.

    It is the user's, else the site's, and never one in the working directory. The list is empty if
    there is none.
    """
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

    Sections may also contain options of Watcher. Without ``config_files``, that of :func:`files` is
    read. ``arguments`` are command line arguments that oslo.config parses, such as
    ``--config-file``; ``description`` is shown in their help. ``prepare`` registers further
    options, ``warn`` is called with each warning. Without ``checked``, an invalid value raises an
    error only when it is read.
    """
    named = list(config_files) if config_files else files()
    for file in (*named, *_named_in(arguments)):
        _require_readable(file)
    conf = cfg.ConfigOpts()
    prepare(conf)
    for section, options in OWN:
        conf.register_opts(options, group=section)
    try:
        conf(
            args=list(arguments),
            project="actionplan",
            version=version("actionplan") if arguments else None,
            description=description,
            default_config_files=named,
            default_config_dirs=[],
        )
    except cfg.ConfigFilesNotFoundError as reason:
        raise ConfigurationError(
            f"no configuration file {', '.join(reason.config_files)}"
        ) from reason
    except cfg.Error as reason:
        raise ConfigurationError(str(reason)) from reason
    _load_plugin_files(conf)
    if checked:
        for text in check.check(conf, BY_SECTION, os.environ):
            warn(text)
    return conf


def _named_in(arguments: Sequence[str]) -> list[str]:
    """Return the configuration files that command line arguments name."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--config-file", action="append", default=[])
    with suppress(argparse.ArgumentError):  # oslo.config explains it
        return list(parser.parse_known_args(arguments)[0].config_file)
    return []


def _require_readable(file: str) -> None:
    """Raise ConfigurationError for a file that does not end, or that can be read only once.

    oslo.config reads a file whole, and each check of its options reads it once more. What is
    missing or a folder, oslo.config refuses.
    """
    with suppress(OSError):
        found = os.stat(file)
        if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode) or file == os.devnull):
            raise ConfigurationError(f"configuration {file}: it is no regular file")
        if found.st_size > MOST_BYTES:
            text = f"it has {found.st_size} bytes, at most {MOST_BYTES} are read"
            raise ConfigurationError(f"configuration {file}: {text}")


def _load_plugin_files(conf: cfg.ConfigOpts) -> None:
    """Load the files that ``[actionplan] plugins`` names.

    A relative path counts from the folder of the configuration file. Raises one ConfigurationError
    that names each file that cannot be loaded.
    """
    mistakes: list[Mistake] = []
    files: Sequence[str] = ()
    with suppress(cfg.Error, RecursionError):  # the check below tells it
        files = conf.actionplan.plugins
    for given in files:
        path, found = Path(given).expanduser(), conf.get_location("plugins", "actionplan")
        if found and found.location == cfg.Locations.user:
            path = Path(found.detail).absolute().parent / path
        try:
            if not path.is_absolute():
                raise ConfigurationError(f"{given} is not an absolute path")
            if not path.is_file():
                raise ConfigurationError(f"there is no file {path}")
            registry.load_file(path.resolve())
        except (ConfigurationError, PlannerError) as reason:
            mistakes.append(Mistake(str(reason), place=place_of(conf, "actionplan", "plugins")))
    if mistakes:
        raise ConfigurationError("; ".join(map(str, mistakes)), mistakes)


def state_path() -> Path:
    """Return the folder of the user's SQLite file and simulated cloud."""
    return Path(user_state_path("actionplan"))


def connection(conf: cfg.ConfigOpts) -> str:
    """Return the URL of the database: by default, of a SQLite file in :func:`state_path`."""
    given = conf.actionplan.connection
    return str(given) if given else f"sqlite:///{state_path() / 'actionplan.sqlite'}"


def simulator_path(conf: cfg.ConfigOpts) -> Path:
    """Return the path of the file of the simulated cloud."""
    given = conf.actionplan.simulator
    return Path(os.path.expanduser(given)) if given else state_path() / "simulator.json"


def jobs_path(conf: cfg.ConfigOpts) -> Path:
    """Return the folder of the jobs (commands) on this machine, without symbolic links.

    It is beside the database if that is a SQLite file, else in :func:`state_path`.
    """
    file = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", conf.actionplan.connection or "")
    beside = Path(file[1]).resolve().parent if file else state_path().resolve()
    return beside / "jobs"


def open_machines(conf: cfg.ConfigOpts) -> OpenMachines:
    """Return the machines that a configuration describes, without connecting to any.

    Raises ConfigurationError.
    """
    from applier.machines import open_machines
    from applier.machines.address import SshSettings
    from applier.machines.simulated_nodes import SimulationSettings

    ssh, simulated = conf.ssh, conf.simulated_nodes
    return open_machines.OpenMachines(
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
