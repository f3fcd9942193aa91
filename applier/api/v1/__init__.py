# SPDX-License-Identifier: Apache-2.0
"""Watcher's API for action plans, actions and services."""

from __future__ import annotations

from applier.api.endpoints import endpoints_of
from applier.api.v1 import actions, plans, services, versions

ENDPOINTS = endpoints_of(versions, plans, actions, services)
