# SPDX-License-Identifier: Apache-2.0
"""The watcher.conf of the lab."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

Sections = Mapping[str, Mapping[str, str]]

#: The drivers that are installed with Watcher.
_DRIVERS = {"mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg2"}


def base(folder: Path, database: str, transport: str, keystone: str, prometheus: int) -> Sections:
    """Return the configuration of all services of a lab.

    ``database`` is a URL without a driver, ``prometheus`` a port of the loopback.
    """
    backend, _, rest = database.partition("://")
    client = {
        "auth_type": "password",
        "auth_url": keystone,
        "username": "admin",
        "password": "x",
        "project_name": "admin",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    tokens = {"www_authenticate_uri": keystone, "service_token_roles_required": "false"}
    region = {"region_name": "lab"}
    looks = {"migration_interval": "0.5", "migration_max_retries": "480"}
    return {
        "DEFAULT": {
            "transport_url": transport,
            "rpc_response_timeout": "120",
            # Whether a service answers is asked by a ping.
            "rpc_ping_enabled": "true",
            "state_path": str(folder),
            "use_stderr": "false",
        },
        "database": {"connection": f"{_DRIVERS[backend.partition('+')[0]]}://{rest}"},
        "oslo_concurrency": {"lock_path": str(folder / "lock")},
        "keystone_authtoken": {**tokens, **client},
        "watcher_clients_auth": client,
        "keystone": region,
        # A move may take 240 s, in looks at it.
        "nova": {**region, "api_version": "2.96", **looks},
        "placement": region,
        "watcher_datasources": {"datasources": "prometheus"},
        "prometheus_client": {"host": "127.0.0.1", "port": str(prometheus)},
        "collector": {"collector_plugins": "compute"},
        # No notification of Nova's leaves its process, so its state is read again and again.
        "watcher_cluster_data_model_collectors.compute": {"period": "5"},
        "watcher_applier": {"workers": "2"},
        "watcher_workflow_engines.taskflow": {"max_workers": "4"},
    }


def merged(first: Sections, second: Sections) -> Sections:
    """Return the options of both; those of the second win."""
    names = {**first, **second}
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in names}


def write(path: Path, sections: Sections) -> None:
    """Write a configuration."""
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    parser.read_dict(sections)
    with path.open("w") as file:
        parser.write(file)
