# SPDX-License-Identifier: Apache-2.0
"""Turns what should change into an action plan. Planning is pure: equal problems, equal plans.

From a document to what happened, in ten hops:

1. ``planner.documents`` reads the document.
2. :func:`planner.planning.make_plan` finds the planner through ``planner.registry``.
3. ``Planner.parse`` checks the document, ``Planner.plan`` returns an :class:`ActionPlan`.
4. ``planner.graph.validate`` checks that its links make a graph.
5. ``applier.storage.plans`` stores it: RECOMMENDED.
6. An operator starts it: PENDING; ``applier.run.runner`` claims it: ONGOING.
7. ``applier.engines.taskflow_engine`` builds a flow and runs it by ``applier.engines.linear``.
8. ``applier.scheduling`` decides what may start, what ends without running, and why.
9. ``applier.recording.recorder`` commits that; then ``applier.engines.tasks`` does the work.
10. ``applier.run.outcome`` computes the state of the plan from those of its actions.
"""

from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.model import ActionPlan

if TYPE_CHECKING:
    from planner.planning import make_plan

__all__ = ["ActionPlan", "PlannerError", "make_plan"]


def __getattr__(name: str) -> Any:
    # Who reads a plan needs none of the libraries that making one needs.
    if name == "make_plan":
        from planner.planning import make_plan

        return make_plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
