# SPDX-License-Identifier: Apache-2.0
"""Events: a change runs through resources that depend on each other and touches only what it must.

Source: Solar, "events propagation". ``document`` reads the problem, ``event_graph`` finds what a
change can reach, ``unroll`` ends loops by letting an action run twice, ``selection`` keeps the
wanted part, ``planner`` writes the plan.
"""
