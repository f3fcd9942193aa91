# SPDX-License-Identifier: Apache-2.0
"""Events: a change propagates through dependent resources, and runs only the affected actions.

Source: Solar, "events propagation". ``document`` reads the problem. ``event_graph`` finds the
actions that a change can reach. ``unroll`` removes cycles by running an action twice. ``selection``
keeps the requested part. ``planner`` makes the plan.
"""
