# SPDX-License-Identifier: Apache-2.0
"""The HTTP API: that of OpenStack Watcher below ``/v1``, and our own below ``/v2``.

``applier.api:application`` is the WSGI application for servers such as gunicorn. The default
configuration files are read when this attribute is first accessed.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the WSGI application for the name ``application``; create it at the first access.

    Raises AttributeError for any other name, ConfigurationError if the options are not valid.
    """
    if name != "application":
        raise AttributeError(name)
    from applier.api.main import configured_application

    globals()[name] = made = configured_application()
    return made
