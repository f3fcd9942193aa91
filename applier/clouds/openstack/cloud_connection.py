# SPDX-License-Identifier: Apache-2.0
"""Opens the connection to a cloud that ``clouds.yaml`` or the environment describes."""

from __future__ import annotations

import os
from typing import Any

from applier.errors import ConfigurationError
from applier.extras import MissingExtra

#: Seconds after which a request without an answer fails, unless clouds.yaml has ``api_timeout``.
_REQUEST_TIMEOUT_S = 60.0


def region(cloud: str | None) -> Any:
    """Return the settings of a cloud in clouds.yaml; without a name, of the one in ``OS_CLOUD``.

    It does not connect. Raises ConfigurationError if the settings are missing or invalid, or if
    openstacksdk is not installed.
    """
    try:
        import openstack.config
        from keystoneauth1 import exceptions as keystone
        from openstack import exceptions
    except ImportError as reason:
        missing = MissingExtra("the cloud 'openstack'", "openstack")
        raise ConfigurationError(str(missing)) from reason
    named = cloud or os.environ.get("OS_CLOUD")
    if not named:
        raise ConfigurationError(
            "no cloud is named: set [openstack] cloud or OS_CLOUD to a name in clouds.yaml"
        )
    try:
        found = openstack.config.OpenStackConfig().get_one(cloud=named)
    except (exceptions.ConfigException, keystone.ClientException) as reason:
        raise ConfigurationError(f"the cloud {named!r} cannot be used: {reason}") from reason
    if not found.auth.get("auth_url"):
        raise ConfigurationError(f"the cloud {named!r} in clouds.yaml has no auth_url")
    return found


def name_of(region: Any) -> str:
    """Return ``openstack NAME (KEYSTONE, REGION)``, with the name in clouds.yaml."""
    place = ", ".join(filter(None, (region.auth["auth_url"], region.region_name)))
    return f"openstack {region.name} ({place})"


def connect(region: Any) -> Any:
    """Return a connection, which requests a token when it is first used."""
    from openstack.connection import Connection

    if region.config.get("api_timeout") is None:
        region.config["api_timeout"] = _REQUEST_TIMEOUT_S
    return Connection(config=region, app_name="actionplan")
