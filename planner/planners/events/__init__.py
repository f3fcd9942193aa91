# SPDX-License-Identifier: Apache-2.0
"""Events: plans of the actions that a change can affect in dependent resources.

Source: Solar, "events propagation". ``document`` reads the problem. ``event_graph`` finds the
actions that are reachable over events from the staged ones. ``unroll`` removes cycles: the action
that closes one runs twice; the requested part is kept. ``planner`` makes the plan.
"""
