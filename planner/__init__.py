# SPDX-License-Identifier: Apache-2.0
"""Turns a document that describes wanted changes into an action plan.

The way of a document, from the file to the recorded results, in ten steps:

1. ``planner.documents`` reads the document.
2. :func:`planner.making.planning.make_plan` finds the planner through ``planner.making.registry``.
3. ``Planner.parse`` parses the document, ``Planner.plan`` returns an :class:`ActionPlan`.
4. ``planner.plan.graph.validate`` checks that the links between the actions have no cycle;
   :func:`planner.plan.graph.order_graph` gives the order of a plan as a ``networkx.DiGraph``.
5. ``applier.storage.plans`` stores the plan, which is RECOMMENDED.
6. An operator starts it: it is PENDING. ``applier.run.runner`` claims it: it is ONGOING.
7. ``applier.engines.taskflow_engine`` makes a ``taskflow.patterns.graph_flow.Flow`` of that order
   and runs it by ``applier.engines.linear``, up to ``max_workers`` actions at once.
8. ``applier.scheduling`` decides which actions may start, which end without running, and why.
9. ``applier.engines.recorder`` commits that; then ``applier.engines.tasks`` calls the plugins.
10. ``applier.scheduling.decisions`` computes the final state of the plan from its actions.
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
