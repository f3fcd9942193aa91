# SPDX-License-Identifier: Apache-2.0
"""Watcher's API for action plans, actions and services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.api.parts import Parts


def routes(parts: Parts) -> Mapping[str, Any]:  # noqa: ARG001
    """Return the resource of each path."""
    return {}
