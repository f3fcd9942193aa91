# SPDX-License-Identifier: Apache-2.0
"""Sends a plan to the appliers some times: ``python cast.py CONFIGURATION PLAN NUMBER``."""

from __future__ import annotations

import sys

# oslo.messaging's import would choose eventlet for good.
from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from watcher.common import service  # noqa: E402


def main(configuration, plan, number):
    """Send the plan."""
    service.prepare_service(["cast", "--config-file", configuration])
    from applier.watcher import resume

    cast = resume.to_appliers()
    for _ in range(int(number)):
        cast(plan)


if __name__ == "__main__":
    main(*sys.argv[1:])
