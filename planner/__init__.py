# SPDX-License-Identifier: Apache-2.0
"""Turns a document that describes wanted changes into an action plan.

The page "Architecture" (doc/architecture/index.rst) follows a document in ten hops, from its file
through this package and :mod:`applier` to the recorded results.
"""

from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.plan.model import ActionPlan

if TYPE_CHECKING:
    from planner.making.planning import make_plan
    from planner.plan.graph import order_graph

__all__ = ["ActionPlan", "PlannerError", "make_plan", "order_graph"]


def __getattr__(name: str) -> Any:
    # Imported on first use: code that only reads plans does not need the libraries for planning.
    if name == "make_plan":
        from planner.making.planning import make_plan

        return make_plan
    if name == "order_graph":
        from planner.plan.graph import order_graph

        return order_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
