# SPDX-License-Identifier: Apache-2.0
"""The HTTP API: Watcher's under ``/v1``, and ours under ``/v2``.

``applier.api:application`` is the WSGI application for servers such as gunicorn. It reads the
configuration from the usual place when it is first used.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Make the WSGI application, which a server asks for by its name."""
    if name != "application":
        raise AttributeError(name)
    from applier.api.main import configured_application

    globals()[name] = made = configured_application()
    return made
