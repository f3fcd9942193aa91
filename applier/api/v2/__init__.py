# SPDX-License-Identifier: Apache-2.0
"""ActionPlan's own API, with all operations of the command line on a database of plans."""

from __future__ import annotations

from applier.api.endpoints import endpoints_of
from applier.api.v2 import (
    actions,
    events,
    openapi,
    plan_views,
    plans,
    plugins,
    record,
    services,
)
from applier.api.v2.operation import Operation

_MODULES = (plans, actions, plan_views, events, record, plugins, services)
_DESCRIBED = tuple(one for one in endpoints_of(*_MODULES) if isinstance(one, Operation))
ENDPOINTS = (*_DESCRIBED, openapi.description_of(_DESCRIBED))
